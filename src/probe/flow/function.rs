//! A function as a network: each block leads from a node at its start to one at its end, and edges between blocks lead
//! from ends to starts. Unknown jumps meet in a node, from which they go on to the places whose addresses are taken.

use super::fit;
use super::network::{Arc, Flowing, How, Network};
use crate::facts::{Exit, Function, Module};
use std::collections::BTreeMap;

/// Share of an edge that code hardly takes, relative to others: calls that do not return, entries from elsewhere.
const RARE: f64 = 1e-6;
/// Most edges of unknown jumps to their targets that are made.
const MOST_PAIRS: usize = 1 << 20;

/// Recorded targets, each with how often it was seen.
pub type Seen = BTreeMap<u64, u64>;

/// Counts of a function before its flow is solved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// By the first address of a block.
    pub blocks: BTreeMap<u64, u64>,
    /// If no block has a count: calls of it by functions whose counts are known.
    pub called: Option<u64>,
    /// By the address of a jump: where it was seen to go, to its next instruction, too.
    pub seen: BTreeMap<u64, Seen>,
}

/// An edge between two blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// Index of the block that is left.
    pub from: usize,
    /// Index of the block that is entered.
    pub to: usize,
    /// How often.
    pub flow: Flowing,
}

/// The flow through a function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Of each block.
    pub blocks: Vec<Flowing>,
    /// Between blocks.
    pub edges: Vec<Edge>,
    /// Out of the function at the end of each block, if it can be left there: by a return, a jump to another function,
    /// a call that does not return.
    pub leaves: Vec<Option<Flowing>>,
    /// Into its first block from outside.
    pub entries: Flowing,
    /// Flow that is out of balance: 0 if all counts agree.
    pub imbalance: f64,
    /// Flow from unknown jumps to targets that has no edge: those are too many, or passed less than once.
    pub dropped: f64,
}

/// Which edges are assumed to be possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Assumed {
    /// Calls return, and blocks are entered as the code shows.
    Plain,
    /// Calls may not return, and any block whose address is taken may be entered from elsewhere.
    All,
}

/// What an arc of the network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Block(usize),
    Edge(usize, usize),
    Leaves(usize),
    Entry,
    /// Into another block from outside.
    Other,
    /// From an unknown jump.
    Jumps(usize),
    /// To a possible target of unknown jumps.
    Target(usize),
}

/// Solves the flow through a function of `module`. Calls that do not return and entries from elsewhere are assumed only
/// where the counts disagree without.
pub fn flow(function: &Function, module: &Module, known: &Known) -> Flow {
    let plain = solve(function, module, known, Assumed::Plain);
    if plain.imbalance == 0.0 {
        return plain;
    }
    let other = solve(function, module, known, Assumed::All);
    if other.imbalance < plain.imbalance { other } else { plain }
}

fn solve(function: &Function, module: &Module, known: &Known, assumed: Assumed) -> Flow {
    // The last two: where unknown jumps meet, and the outside.
    let mut builder = Builder { nodes: 2 * function.blocks.len() + 2, ..Builder::default() };
    builder.add(function, module, known, assumed);
    let mut network = Network { nodes: builder.nodes, arcs: builder.arcs };
    let imbalance = fit::solve(&mut network);
    let mut found = Flow {
        blocks: vec![Flowing::default(); function.blocks.len()],
        leaves: vec![None; function.blocks.len()],
        imbalance,
        ..Flow::default()
    };
    let (mut jumps, mut targets) = (Vec::new(), Vec::new());
    for (role, arc) in builder.roles.iter().zip(&network.arcs) {
        let flow = arc.flow;
        match *role {
            Role::Block(block) => found.blocks[block] = flow,
            Role::Edge(from, to) => found.edges.push(Edge { from, to, flow }),
            Role::Leaves(block) => found.leaves[block] = Some(flow),
            Role::Entry => found.entries = flow,
            Role::Other => {}
            Role::Jumps(block) => jumps.push((block, flow)),
            Role::Target(block) => targets.push((block, flow)),
        }
    }
    let (edges, dropped) = pairs(&jumps, &targets);
    found.edges = merged(found.edges.into_iter().chain(edges));
    found.dropped = dropped;
    found
}

/// Edges with the same ends added up, each known as the larger part of it.
fn merged(edges: impl Iterator<Item = Edge>) -> Vec<Edge> {
    let mut all: BTreeMap<(usize, usize), Flowing> = BTreeMap::new();
    for Edge { from, to, flow } in edges {
        let sum = all.entry((from, to)).or_insert(Flowing { count: 0.0, ..flow });
        let how = if flow.count > sum.count { flow.how } else { sum.how };
        *sum = Flowing { count: sum.count + flow.count, how };
    }
    all.into_iter().map(|((from, to), flow)| Edge { from, to, flow }).collect()
}

/// Edges from unknown jumps to their possible targets, in proportion to both; the flow of those that are left out.
fn pairs(jumps: &[(usize, Flowing)], targets: &[(usize, Flowing)]) -> (Vec<Edge>, f64) {
    let ran = |all: &[(usize, Flowing)]| -> Vec<(usize, Flowing)> {
        all.iter().filter(|(_, flow)| flow.count > 0.0).copied().collect()
    };
    let (jumps, targets) = (ran(jumps), ran(targets));
    let all: f64 = jumps.iter().map(|(_, flow)| flow.count).sum();
    if all <= 0.0 || jumps.len().saturating_mul(targets.len()) > MOST_PAIRS {
        return (Vec::new(), all);
    }
    // A single jump, or a single target, leaves no choice.
    let is_sure = jumps.len() == 1 || targets.len() == 1;
    let edge = |(from, out): &(usize, Flowing), (to, into): &(usize, Flowing)| {
        let sure = out.how.max(into.how).max(How::Derived);
        let how = if is_sure { sure } else { How::Fitted };
        let flow = Flowing { count: out.count * into.count / all, how };
        Edge { from: *from, to: *to, flow }
    };
    let edges = jumps.iter().flat_map(|jump| targets.iter().map(move |target| edge(jump, target)));
    // Between jumps with recorded targets hardly anything is left.
    let edges: Vec<Edge> = edges.filter(|edge| edge.flow.count >= 0.5).collect();
    let kept: f64 = edges.iter().map(|edge| edge.flow.count).sum();
    (edges, (all - kept).max(0.0))
}

/// Collects the arcs, with what each is.
#[derive(Default)]
struct Builder {
    nodes: usize,
    arcs: Vec<Arc>,
    roles: Vec<Role>,
}

impl Builder {
    fn arc(&mut self, role: Role, (from, to): (usize, usize), weight: f64) {
        self.roles.push(role);
        let flow = Flowing::default();
        self.arcs.push(Arc { from, to, flow, weight, is_sampled: false });
    }

    /// An arc with a recorded share.
    fn sampled(&mut self, role: Role, ends: (usize, usize), share: f64) {
        self.arc(role, ends, share.max(RARE));
        if let Some(arc) = self.arcs.last_mut() {
            arc.is_sampled = true;
        }
    }

    fn set(&mut self, flow: Flowing) {
        if let Some(arc) = self.arcs.last_mut() {
            arc.flow = flow;
        }
    }

    fn add(&mut self, function: &Function, module: &Module, known: &Known, assumed: Assumed) {
        let (outside, hub) = (self.nodes - 1, self.nodes - 2);
        let (start, end) = (|block: usize| 2 * block, |block: usize| 2 * block + 1);
        let is_other = |at: u64| at != function.range.start && !module.is_landing_pad(at);
        let is_target = |block: &crate::facts::Block| block.is_entered && is_other(block.start);
        let has_targets = !function.is_complete && function.blocks.iter().any(is_target);
        for (number, block) in function.blocks.iter().enumerate() {
            // Recorded targets in other functions.
            let mut elsewhere = 0.0_f64;
            self.arc(Role::Block(number), (start(number), end(number)), 1.0);
            if let Some(count) = known.blocks.get(&block.start) {
                self.set(Flowing::counted(*count));
            }
            let last = block.instructions.last().map_or(block.start, |last| last.ip());
            let seen = known.seen.get(&last).filter(|seen| !seen.is_empty());
            let all = seen.map_or(0, |seen| seen.values().copied().fold(0, u64::saturating_add));
            let all = all as f64;
            // Targets of a call say nothing of where it returns to.
            let seen = seen.filter(|_| block.exit != Exit::MayEnd);
            let share = |to: u64| Some(*seen?.get(&to).unwrap_or(&0) as f64 / all);
            for to in &block.successors {
                let (role, ends) = (Role::Edge(number, *to), (end(number), start(*to)));
                match share(function.blocks[*to].start) {
                    Some(share) => self.sampled(role, ends, share),
                    None => self.arc(role, ends, 1.0),
                }
            }
            if block.exit == Exit::Unknown {
                for (at, times) in seen.into_iter().flatten() {
                    let found = function.blocks.binary_search_by_key(at, |block| block.start);
                    let share = *times as f64 / all;
                    match found {
                        Ok(to) => {
                            self.sampled(Role::Edge(number, to), (end(number), start(to)), share);
                        }
                        Err(_) => elsewhere += share,
                    }
                }
            }
            if block.start == function.range.start {
                self.arc(Role::Entry, (outside, start(number)), 1.0);
                if let Some(called) = known.called {
                    self.set(Flowing { count: called as f64, how: How::Fitted });
                }
            } else if block.is_entered && !is_other(block.start) {
                self.arc(Role::Other, (outside, start(number)), RARE);
            } else if is_target(block) && has_targets {
                self.arc(Role::Target(number), (hub, start(number)), 1.0);
            }
            if is_target(block) && assumed == Assumed::All {
                self.arc(Role::Other, (outside, start(number)), RARE);
            }
            let leaves = match (block.exit, assumed) {
                (Exit::Leaves, _) => Some(1.0),
                (Exit::MayEnd, Assumed::Plain) => block.successors.is_empty().then_some(1.0),
                (Exit::MayEnd, Assumed::All) => Some(RARE),
                (Exit::Unknown, _) if elsewhere > 0.0 => Some(elsewhere),
                (Exit::Unknown, Assumed::Plain) => (!has_targets).then_some(1.0),
                (Exit::Unknown, Assumed::All) => Some(if has_targets { RARE } else { 1.0 }),
                // It ends in bytes that do not decode.
                (Exit::None, _) => block.successors.is_empty().then_some(1.0),
            };
            let stays =
                || block.successors.iter().filter_map(|to| share(function.blocks[*to].start));
            let role = (Role::Leaves(number), (end(number), outside));
            match leaves {
                Some(_) if block.exit == Exit::Leaves && seen.is_some() => {
                    self.sampled(role.0, role.1, 1.0 - stays().sum::<f64>());
                }
                Some(share) if elsewhere > 0.0 => self.sampled(role.0, role.1, share),
                Some(weight) => self.arc(role.0, role.1, weight),
                None => {}
            }
            if block.exit == Exit::Unknown && has_targets {
                let weight = if seen.is_some() { RARE } else { 1.0 };
                self.arc(Role::Jumps(number), (end(number), hub), weight);
            }
        }
    }
}
