//! Stacks with the shares of nodes in the time of each function: as lines of text, and merged to a flame graph.

use crate::documents::flame::{FlameGraph, FlameNode, Frame};
use profile::hot::{CallStack, StackFrame};
use std::collections::{BTreeMap, HashMap};

/// Shares of nodes in the time of each function, counted, sampled or estimated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Breakdown {
    /// Where the shares come from, for the legend; `None`: there are none.
    pub source: Option<String>,
    /// By name and module: nodes and their shares of its time.
    functions: HashMap<(String, String), Vec<(String, f64)>>,
}

impl Breakdown {
    /// None known yet, from this source.
    pub fn of(source: &str) -> Self {
        Self { source: Some(source.to_owned()), functions: HashMap::new() }
    }

    /// Sets the shares of a function. What is negative or missing to 1 is not known; larger sums are scaled.
    pub fn insert(&mut self, name: &str, module: &str, shares: &[(String, f64)]) {
        let mut shares: Vec<(String, f64)> =
            shares.iter().filter(|(_, share)| *share > 0.0).cloned().collect();
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        if sum > 1.0 {
            shares.iter_mut().for_each(|(_, share)| *share /= sum);
        } else if sum < 1.0 {
            shares.push((FlameGraph::UNKNOWN.to_owned(), 1.0 - sum));
        }
        self.functions.insert((name.to_owned(), module.to_owned()), shares);
    }

    /// Whether no function's shares are known.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The shares of a function; they add up to 1.
    pub fn shares(&self, name: &str, module: &str) -> Vec<(String, f64)> {
        let known = self.functions.get(&(name.to_owned(), module.to_owned()));
        known.cloned().unwrap_or_else(|| vec![(FlameGraph::UNKNOWN.to_owned(), 1.0)])
    }
}

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

/// Subject of a graph.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// A command or file.
    pub title: String,
    /// The sampled event.
    pub event: String,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// The frames while stacks are merged.
#[derive(Default)]
struct Merged {
    frames: Vec<Sum>,
    /// Nodes by name, in order of appearance.
    nodes: Vec<String>,
    known: HashMap<StackFrame, Vec<(usize, f64)>>,
    /// Weight of each function itself.
    own: HashMap<StackFrame, f64>,
}

#[derive(Default)]
struct Sum {
    frame: StackFrame,
    children: BTreeMap<StackFrame, usize>,
    weight: f64,
    samples: u64,
    /// Weight by node.
    parts: HashMap<usize, f64>,
}

/// Merges stacks; `breakdown` says what the time of functions goes to.
pub fn graph(stacks: &[CallStack], breakdown: &Breakdown, about: About) -> FlameGraph {
    let all = StackFrame { name: "all".to_owned(), module: String::new() };
    let root = Sum { frame: all, ..Sum::default() };
    let mut merged = Merged { frames: vec![root], ..Merged::default() };
    stacks.iter().for_each(|stack| merged.add(stack, breakdown));
    let total = merged.frames[0].weight;
    let mut drawn = FlameGraph {
        title: about.title,
        event: about.event,
        samples: merged.frames[0].samples,
        source: breakdown.source.clone().filter(|_| !breakdown.is_empty()),
        notes: about.notes,
        ..FlameGraph::default()
    };
    if total > 0.0 {
        merged.draw(total, &mut drawn);
    }
    drawn
}

impl Merged {
    fn add(&mut self, stack: &CallStack, breakdown: &Breakdown) {
        let Some(leaf) = stack.frames.last() else { return };
        let parts = self.parts(stack.function().unwrap_or(leaf), breakdown);
        *self.own.entry(leaf.clone()).or_default() += stack.weight;
        let thread = stack
            .thread
            .iter()
            .map(|name| StackFrame { name: name.clone(), module: String::new() });
        let mut at = 0;
        self.frames[0].take(stack, &parts);
        for frame in thread.chain(stack.frames.iter().cloned()) {
            let next = self.frames.len();
            let child = *self.frames[at].children.entry(frame.clone()).or_insert(next);
            if child == next {
                self.frames.push(Sum { frame, ..Sum::default() });
            }
            at = child;
            self.frames[at].take(stack, &parts);
        }
    }

    /// Parts of a function's time, by number of the node.
    fn parts(&mut self, leaf: &StackFrame, breakdown: &Breakdown) -> Vec<(usize, f64)> {
        if let Some(known) = self.known.get(leaf) {
            return known.clone();
        }
        let shares = breakdown.shares(&leaf.name, &leaf.module).into_iter();
        let parts: Vec<(usize, f64)> =
            shares.map(|(node, share)| (self.number(node), share)).collect();
        self.known.insert(leaf.clone(), parts.clone());
        parts
    }

    fn number(&mut self, node: String) -> usize {
        self.nodes.iter().position(|known| *known == node).unwrap_or_else(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        })
    }

    /// Enters nodes and frames into the document.
    fn draw(&self, total: f64, drawn: &mut FlameGraph) {
        let share = |node: usize| self.frames[0].parts.get(&node).map_or(0.0, |w| w / total);
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|a, b| share(*b).total_cmp(&share(*a)));
        let label =
            |node: &usize| FlameNode { label: self.nodes[*node].clone(), share: share(*node) };
        drawn.nodes = order.iter().map(label).collect();
        let place = |node: usize| order.iter().position(|of| *of == node).unwrap_or_default();
        let mut open = vec![(0, 0, 0.0)];
        while let Some((at, depth, from)) = open.pop() {
            let sum = &self.frames[at];
            if sum.weight / total < FlameGraph::NARROWEST {
                drawn.omitted += 1;
                continue;
            }
            let mut parts: Vec<(usize, f64)> =
                sum.parts.iter().map(|(node, w)| (place(*node), w / sum.weight)).collect();
            parts.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            drawn.frames.push(Frame {
                name: sum.frame.name.clone(),
                module: sum.frame.module.clone(),
                depth,
                from: from / total,
                share: sum.weight / total,
                samples: sum.samples,
                own: self.own.get(&sum.frame).map_or(0.0, |w| w / total),
                parts,
                change: None,
            });
            let mut right = from;
            let mut children = Vec::new();
            for child in sum.children.values() {
                children.push((*child, depth + 1, right));
                right += self.frames[*child].weight;
            }
            open.extend(children.into_iter().rev());
        }
    }
}

impl Sum {
    fn take(&mut self, stack: &CallStack, parts: &[(usize, f64)]) {
        self.weight += stack.weight;
        self.samples += stack.samples;
        for (node, share) in parts {
            *self.parts.entry(*node).or_default() += share * stack.weight;
        }
    }
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

    #[test]
    fn a_frame_has_the_node_that_most_of_the_time_above_it_goes_to() {
        let mut breakdown = Breakdown::of("counted");
        breakdown.insert("miss", "m", &[("Memory Bound".into(), 0.9), ("Retiring".into(), 0.1)]);
        breakdown.insert("add", "m", &[("Retiring".into(), 1.0)]);
        // By hand: 60 + 30 samples; memory 0.9 · 60 = 54 of 90, retiring 6 + 30 = 36.
        let stacks = [stack(&["main", "miss"], 60), stack(&["main", "add"], 30)];
        let drawn = graph(&stacks, &breakdown, About::default());
        let of = |name: &str| drawn.frames.iter().find(|f| f.name == name).expect(name).clone();
        let main = of("main");
        assert_eq!((main.depth, main.samples), (1, 90));
        assert_eq!(drawn.nodes[main.parts[0].0].label, "Memory Bound");
        assert!((main.parts[0].1 - 54.0 / 90.0).abs() < 1e-12, "{main:?}");
        assert_eq!(drawn.nodes[of("add").parts[0].0].label, "Retiring");
        assert!((of("add").own - 1.0 / 3.0).abs() < 1e-12);
        // Siblings lie side by side inside their caller.
        assert!((of("miss").from - 1.0 / 3.0).abs() < 1e-12 && of("add").from == 0.0);
    }
}
