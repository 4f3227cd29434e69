//! Nested regions and their times, from events made by hand.

use super::*;

/// By hand: names 0 and 1; each probe takes 10 ticks.
#[test]
fn probes_inside_a_region_are_not_of_its_time() {
    let mut tree = Tree::default();
    let thread = tree.thread(7);
    let at = |time: u64| Times(time, time + 10);
    tree.begin(thread, 0, None, at(0));
    tree.begin(thread, 1, None, at(100));
    tree.end(thread, 1, at(150));
    tree.begin(thread, 0, None, at(200));
    tree.end(thread, 0, at(300));
    tree.end(thread, 0, at(400));
    tree.end(thread, 1, at(500));
    let stats = &tree.threads[thread].stats;
    let outer = Stats {
        entries: 2,
        recursive: 1,
        time: 390 - 40,
        shortest: 350,
        longest: 350,
        edges: 20,
        inside: 40,
        ..Stats::default()
    };
    assert_eq!(stats[&0], outer);
    assert_eq!((stats[&1].time, stats[&1].entries), (40, 1));
    assert_eq!(tree.threads[thread].stray[&1], 1);
    assert_eq!(tree.nodes[1], Node { name: 1, parent: Some(0) });
    assert_eq!((tree.events, tree.ticks), (7, 70));
    let spans: Vec<(u64, u64, u32)> =
        tree.threads[thread].spans().iter().map(|span| (span.from, span.to, span.node)).collect();
    // Neither in probes, nor in two regions at once.
    let expected = [(10, 100, 0), (110, 150, 1), (160, 200, 0), (210, 300, 0), (310, 400, 0)];
    assert_eq!(spans, expected);
}

#[test]
fn what_never_ends_has_entries_and_no_time() {
    let mut tree = Tree::default();
    let thread = tree.thread(7);
    tree.begin(thread, 0, None, Times(0, 10));
    tree.begin(thread, 1, None, Times(20, 30));
    tree.end(thread, 0, Times(100, 110));
    tree.begin(thread, 1, None, Times(120, 130));
    tree.leave(thread, 8);
    let stats = &tree.threads[thread].stats;
    assert_eq!((stats[&0].time, stats[&0].unfinished), (80, 0));
    assert_eq!((stats[&1].time, stats[&1].unfinished, stats[&1].entries), (0, 1, 1));
    // The second one is not inside the first region.
    assert_eq!(tree.nodes.len(), 3);
    assert_eq!((stats[&2].unfinished, stats[&2].timed()), (1, 0));
}
