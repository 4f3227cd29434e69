//! Samples over time, each with the node that its time goes to.

use super::breakdown::Breakdown;
use super::folded::Divided;
use super::graph::About;
use crate::documents::timeline::Timeline;
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
