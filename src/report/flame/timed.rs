//! Samples over time, each with the node that its time goes to.

use super::breakdown::Breakdown;
use super::folded::Divided;
use super::graph::About;
use crate::documents::report_parts::Timeline;
use profile::hot::{StackFrame, Timeline as Taken};
use std::collections::HashMap;

/// The samples of a recording. Those of a function are divided among its nodes: over all of them no node is more than
/// one sample off.
pub fn timed(taken: Taken, breakdown: &Breakdown, about: &About) -> Timeline {
    let mut timeline = Timeline {
        event: about.event.clone(),
        taken,
        source: breakdown.source.clone().filter(|_| !breakdown.is_empty()),
        notes: about.notes.clone(),
        ..Timeline::default()
    };
    if timeline.taken.every > 1 {
        let every = timeline.taken.every;
        timeline.notes.push(format!("of the samples one in {every} is shown, for {every} of them"));
    }
    if breakdown.is_empty() {
        timeline.node_of = vec![None; timeline.taken.samples.len()];
        return timeline;
    }
    let mut divided: HashMap<StackFrame, Divided> = HashMap::new();
    let mut nodes: Vec<String> = Vec::new();
    let mut node_of = Vec::with_capacity(timeline.taken.samples.len());
    for sample in &timeline.taken.samples {
        let node = timeline.function(sample.stack).and_then(|function| {
            let shares = || Divided::new(breakdown.shares(&function.name, &function.module));
            let of = divided.entry(function.clone()).or_insert_with(shares);
            of.take(1).into_iter().next().map(|(node, _)| node)
        });
        node_of.push(node.map(|node| {
            nodes.iter().position(|known| *known == node).unwrap_or_else(|| {
                nodes.push(node);
                nodes.len() - 1
            })
        }));
    }
    (timeline.nodes, timeline.node_of) = (nodes, node_of);
    timeline
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::hot::TimedSample;

    #[test]
    fn the_samples_of_a_function_are_divided_among_its_nodes() {
        let frame = |name: &str| StackFrame { name: name.to_owned(), module: "m".to_owned() };
        let sample = |time: u64| TimedSample { time, thread: 0, stack: u32::from(time >= 100) };
        let taken = Taken {
            // The innermost function was inlined: the time is of the one around it.
            frames: vec![frame("main"), frame("f"), frame("g (inlined)")],
            stacks: vec![vec![0, 1, 2], vec![0]],
            samples: (0..120).map(sample).collect(),
            every: 1,
            ..Taken::default()
        };
        let mut breakdown = Breakdown::of("counted");
        breakdown.insert("f", "m", &[("Memory".into(), 0.75), ("Retiring".into(), 0.25)]);
        let timeline = timed(taken, &breakdown, &About::default());
        let of = |name: &str| {
            let number = timeline.nodes.iter().position(|node| node == name);
            timeline.node_of.iter().filter(|node| **node == number).count()
        };
        // By hand: 100 samples of f, 20 of main, of which nothing is known.
        assert_eq!((of("Memory"), of("Retiring"), of("not known")), (75, 25, 20));
    }
}
