//! Folded stacks for other tools: `thread;outermost;…;innermost samples`.

use super::breakdown::Breakdown;
use profile::hot::{CallStack, StackFrame};
use std::collections::{BTreeMap, HashMap};

/// Stacks as lines with their samples. With a breakdown the node that the time goes to is the last frame; the
/// samples of a stack are divided among the nodes by the shares of its innermost function.
pub fn folded(stacks: &[CallStack], breakdown: Option<&Breakdown>) -> Vec<(String, u64)> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let mut divided: HashMap<&StackFrame, Divided> = HashMap::new();
    for stack in stacks {
        let names = stack.thread.iter().chain(stack.frames.iter().map(|frame| &frame.name));
        let line: Vec<String> = names.map(|name| clean(name)).collect();
        let line = line.join(";");
        let Some((breakdown, leaf)) = breakdown.zip(stack.function()) else {
            *lines.entry(line).or_default() += stack.samples;
            continue;
        };
        let of = divided
            .entry(leaf)
            .or_insert_with(|| Divided::new(breakdown.shares(&leaf.name, &leaf.module)));
        for (node, samples) in of.take(stack.samples) {
            *lines.entry(format!("{line};{}", clean(&node))).or_default() += samples;
        }
    }
    lines.into_iter().collect()
}

/// Whole samples of a function divided among nodes: over all its stacks none is more than one sample off.
pub(super) struct Divided {
    /// Node, its share, and what it has not got yet.
    nodes: Vec<(String, f64, f64)>,
}

impl Divided {
    /// Nothing divided yet.
    pub(super) fn new(shares: Vec<(String, f64)>) -> Self {
        Self { nodes: shares.into_iter().map(|(node, share)| (node, share, 0.0)).collect() }
    }

    /// The next samples, by node.
    pub(super) fn take(&mut self, samples: u64) -> Vec<(String, u64)> {
        let mut given = vec![0; self.nodes.len()];
        for (given, (_, share, open)) in given.iter_mut().zip(&mut self.nodes) {
            *open += *share * samples as f64;
            // A cast of a float saturates; what is owed to others is negative.
            *given = open.floor() as u64;
            *open -= *given as f64;
        }
        for _ in given.iter().sum::<u64>()..samples {
            let most =
                (0..given.len()).max_by(|a, b| self.nodes[*a].2.total_cmp(&self.nodes[*b].2));
            let Some(most) = most else { break };
            given[most] += 1;
            self.nodes[most].2 -= 1.0;
        }
        let names = self.nodes.iter().map(|(node, ..)| node.clone());
        names.zip(given).filter(|(_, samples)| *samples > 0).collect()
    }
}

/// Samples of each stack by node; nothing where no node is known.
pub(super) fn divided<'a>(
    stacks: impl IntoIterator<Item = &'a CallStack>,
    breakdown: &Breakdown,
) -> Vec<Vec<(String, u64)>> {
    let mut of: HashMap<StackFrame, Divided> = HashMap::new();
    let mut parts = |stack: &CallStack| match stack.function().filter(|_| !breakdown.is_empty()) {
        None => Vec::new(),
        Some(leaf) => {
            let shares = || Divided::new(breakdown.shares(&leaf.name, &leaf.module));
            of.entry(leaf.clone()).or_insert_with(shares).take(stack.samples)
        }
    };
    stacks.into_iter().map(&mut parts).collect()
}

/// A name without separators of folded stacks.
fn clean(name: &str) -> String {
    name.chars().map(|c| if c == ';' || c.is_control() { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str], samples: u64) -> CallStack {
        let frame = |name: &&str| StackFrame { name: (*name).to_owned(), module: "m".to_owned() };
        let frames = names.iter().map(frame).collect();
        CallStack { thread: None, frames, samples, weight: samples as f64 }
    }

    #[test]
    fn samples_are_divided_among_nodes_and_none_is_lost() {
        let mut breakdown = Breakdown::of("counted");
        breakdown.insert("f", "m", &[("Memory;Bound".into(), 0.75), ("Retiring".into(), 0.25)]);
        // Forty stacks of one sample: each goes to one node, and three of four to the larger one.
        let single: Vec<CallStack> =
            (0..40).map(|i| stack(&[format!("caller{i}").as_str(), "f"], 1)).collect();
        let lines = folded(&single, Some(&breakdown));
        let of = |node: &str| -> u64 {
            lines.iter().filter(|(line, _)| line.ends_with(node)).map(|(_, n)| n).sum()
        };
        assert_eq!((of(";f;Memory_Bound"), of(";f;Retiring")), (30, 10));
        let unknown = folded(&[stack(&["main", "g"], 3)], Some(&breakdown));
        assert_eq!(unknown, [("main;g;not known".to_owned(), 3)]);
    }
}
