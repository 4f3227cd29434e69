//! Stacks of two sides → one flame graph, as wide as B, with the time that each function itself gained or lost.
//! Stacks are paired by the names of their functions, as B. Gregg's `difffolded.pl` does; addresses and modules may
//! have changed.

use crate::documents::flame::{Change, Compared, FlameGraph, Frame};
use profile::event::EventKind;
use profile::hot::{CallStack, half_width};
use std::collections::{BTreeMap, BTreeSet};

/// The stacks of one side.
#[derive(Debug, Clone, Default)]
pub struct StackSide {
    /// Its files.
    pub name: String,
    /// The sampled event.
    pub event: String,
    /// Stacks of all its runs.
    pub stacks: Vec<CallStack>,
    /// Its runs.
    pub runs: usize,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// A function with its callers, on both sides.
#[derive(Default)]
struct Sum {
    name: String,
    children: BTreeMap<String, usize>,
    /// Weight of the function itself, and with callees.
    own: [f64; 2],
    all: [f64; 2],
    /// Samples of B, with callees.
    samples: u64,
}

/// Scale of a weight in the document.
struct Scale {
    /// By side.
    per_weight: [f64; 2],
    samples: [f64; 2],
    /// Weight by side.
    totals: [f64; 2],
}

/// The graph of B, with its changes from A.
pub fn differential(sides: &[StackSide; 2]) -> FlameGraph {
    let sums = merged(sides);
    let totals = sums[0].all;
    let (scale, unit) = scale(sides, totals);
    let [a, b] = sides;
    let mut notes: Vec<String> = Vec::new();
    for note in a.notes.iter().chain(&b.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let mut graph = FlameGraph {
        title: format!("{} compared with {}", b.name, a.name),
        event: b.event.clone(),
        samples: sums[0].samples,
        notes,
        ..FlameGraph::default()
    };
    if totals.iter().any(|total| *total <= 0.0) {
        graph.notes.push("a side has no samples: nothing is compared".to_owned());
        return graph;
    }
    let gone: f64 = sums.iter().filter(|s| s.all[1] <= 0.0).map(|s| s.own[0]).sum();
    let compared = Compared {
        sides: [a.name.clone(), b.name.clone()],
        totals: [0, 1].map(|side| totals[side] * scale.per_weight[side]),
        gone: gone * scale.per_weight[0],
        unit: unit.to_owned(),
    };
    if a.event != b.event {
        let events = format!("{} and {}", a.event, b.event);
        graph.notes.push(format!("sides sampled on {events}: shares are compared, not times"));
    }
    if gone > 0.0 {
        graph.notes.push(format!(
            "{:.1} % of A is in stacks that B has not; A and B exchanged shows them",
            100.0 * gone / totals[0]
        ));
    }
    graph.compared = Some(compared);
    draw(&sums, &scale, &mut graph);
    graph
}

/// Both sides' stacks as one tree.
fn merged(sides: &[StackSide; 2]) -> Vec<Sum> {
    // A program may be called otherwise on the other side; a side with one thread needs no name for it.
    let threads = |side: &StackSide| {
        side.stacks.iter().filter_map(|s| s.thread.clone()).collect::<BTreeSet<_>>().len()
    };
    let is_threaded = sides.iter().any(|side| threads(side) > 1);
    let mut sums = vec![Sum { name: "all".to_owned(), ..Sum::default() }];
    for (side, of) in sides.iter().enumerate() {
        for stack in of.stacks.iter().filter(|stack| !stack.frames.is_empty()) {
            let thread = stack.thread.iter().filter(|_| is_threaded);
            let names = thread.chain(stack.frames.iter().map(|frame| &frame.name));
            let samples = if side == 1 { stack.samples } else { 0 };
            let mut at = 0;
            let take = |at: usize, sums: &mut Vec<Sum>| {
                sums[at].all[side] += stack.weight;
                sums[at].samples += samples;
            };
            take(at, &mut sums);
            for name in names {
                let next = sums.len();
                let child = *sums[at].children.entry(name.clone()).or_insert(next);
                if child == next {
                    sums.push(Sum { name: name.clone(), ..Sum::default() });
                }
                at = child;
                take(at, &mut sums);
            }
            sums[at].own[side] += stack.weight;
        }
    }
    sums
}

fn scale(sides: &[StackSide; 2], totals: [f64; 2]) -> (Scale, &str) {
    let [a, b] = sides;
    let samples = [a, b].map(|side| side.stacks.iter().map(|stack| stack.samples as f64).sum());
    let (per_weight, unit) = if a.event != b.event {
        (totals.map(|total| 1.0 / total), "ratio")
    } else if EventKind::of(&b.event).is_clock() {
        ([a, b].map(|side| 1e-9 / side.runs.max(1) as f64), "s")
    } else {
        ([a, b].map(|side| 1.0 / side.runs.max(1) as f64), b.event.as_str())
    };
    (Scale { per_weight, samples, totals }, unit)
}

impl Scale {
    /// Both sides in the unit of the document, and the margin of their difference.
    fn compared(&self, weights: [f64; 2]) -> ([f64; 2], f64) {
        let margin = |side: usize| {
            let share = weights[side] / self.totals[side];
            half_width(share, self.samples[side]) * self.totals[side] * self.per_weight[side]
        };
        let values = [0, 1].map(|side| weights[side] * self.per_weight[side]);
        (values, margin(0).hypot(margin(1)))
    }

    fn change(&self, sum: &Sum) -> Change {
        let (own, own_margin) = self.compared(sum.own);
        let (all, all_margin) = self.compared(sum.all);
        Change { own, own_margin, all, all_margin }
    }
}

/// Enters the frames of B.
fn draw(sums: &[Sum], scale: &Scale, drawn: &mut FlameGraph) {
    let total = scale.totals[1];
    let mut open = vec![(0, 0, 0.0)];
    while let Some((at, depth, from)) = open.pop() {
        let sum = &sums[at];
        if sum.all[1] / total < FlameGraph::NARROWEST {
            // A note counts the functions that only A has.
            drawn.omitted += usize::from(sum.all[1] > 0.0);
            continue;
        }
        drawn.frames.push(Frame {
            name: sum.name.clone(),
            depth,
            from: from / total,
            share: sum.all[1] / total,
            samples: sum.samples,
            own: sum.own[1] / total,
            change: Some(scale.change(sum)),
            ..Frame::default()
        });
        let mut right = from;
        let mut children = Vec::new();
        for child in sum.children.values() {
            children.push((*child, depth + 1, right));
            right += sums[*child].all[1];
        }
        open.extend(children.into_iter().rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::hot::StackFrame;

    /// Lines as `difffolded.pl` reads them, of a clock that samples each millisecond.
    fn side(thread: &str, lines: &[(&str, u64)]) -> StackSide {
        let frame = |name: &str| StackFrame { name: name.to_owned(), module: thread.to_owned() };
        let stack = |(names, samples): &(&str, u64)| CallStack {
            thread: Some(thread.to_owned()),
            frames: names.split(';').map(frame).collect(),
            samples: *samples,
            weight: *samples as f64 * 1e6,
        };
        let stacks = lines.iter().map(stack).collect();
        let (name, event) = (thread.to_owned(), "cpu-clock".to_owned());
        StackSide { name, event, stacks, runs: 1, notes: Vec::new() }
    }

    #[test]
    fn frames_of_renamed_programs_are_matched_and_coloured_by_their_own_time() {
        let a = side("old", &[("main;walk", 600), ("main;add", 300), ("main;gone", 100)]);
        let b = side("new", &[("main;walk", 200), ("main;add", 300), ("main;come", 300)]);
        let graph = differential(&[a, b]);
        let of = |name: &str| graph.frames.iter().find(|f| f.name == name).expect(name);
        let change = |name: &str| of(name).change.clone().expect("a change");
        // By hand: 600 against 200 ms, 300 against 300, nothing against 300.
        assert!((change("walk").own_beyond_margin() + 0.4).abs() < 1e-9);
        assert_eq!(change("add").own_beyond_margin(), 0.0);
        assert!((change("come").own_beyond_margin() - 0.3).abs() < 1e-9);
        // Its callees changed, not main itself.
        assert_eq!(change("main").own, [0.0, 0.0]);
        assert!((change("main").all[1] - 0.8).abs() < 1e-9);
        assert!(!graph.frames.iter().any(|f| f.name == "gone"));
        assert!((graph.compared.as_ref().expect("sides").gone - 0.1).abs() < 1e-9);
        assert!((of("walk").share - 0.25).abs() < 1e-9 && of("walk").samples == 200);
    }

    #[test]
    fn several_runs_are_compared_by_their_mean() {
        let twice = StackSide { runs: 2, ..side("a", &[("main", 2000)]) };
        let graph = differential(&[twice, side("b", &[("main", 1000)])]);
        let change = graph.frames[1].change.clone().expect("a change");
        assert!((change.own[0] - 1.0).abs() < 1e-9 && change.own_beyond_margin() == 0.0);
    }

    #[test]
    fn other_events_are_compared_by_shares() {
        let a = StackSide { event: "cycles".into(), ..side("a", &[("f", 10), ("g", 990)]) };
        let graph = differential(&[a, side("b", &[("f", 1000), ("g", 1000)])]);
        assert_eq!(graph.compared.expect("sides").unit, "ratio");
        let f = graph.frames.iter().find(|frame| frame.name == "f").expect("f");
        assert_eq!(f.change.clone().expect("a change").own, [0.01, 0.5]);
    }
}
