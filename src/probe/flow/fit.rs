//! Fits unknown arcs: each node in turn scales the arcs into it and out of it until both sides agree (iterative
//! proportional fitting; Deming and Stephan, Annals of Mathematical Statistics 11, 1940). Recorded shares are held first,
//! so that they decide where the other arcs are open; then all are fitted to the counts. Scaling keeps the product of the
//! flows of a loop relative to where it begins, so it begins with what the shares of each node make of the known flow.

use super::network::{Arc, Flowing, How, Network};

/// Most rounds over all nodes.
const MOST_ROUNDS: usize = 300;
/// Least flow of an arc to begin with, relative to its weight: one without any would keep none.
const RARELY: f64 = 1e-6;
/// A round that changes the flow through each node by a smaller share of it is the last.
const LITTLE: f64 = 1e-7;

/// The arcs at a node on one side.
#[derive(Debug, Clone, Default)]
struct Side {
    held: f64,
    open: Vec<usize>,
}

impl Side {
    fn sum(&self, flows: &[f64]) -> f64 {
        self.open.iter().map(|arc| flows[*arc]).sum()
    }

    /// Scales its open arcs so that all carry `total`; what that changed.
    fn scale(&self, flows: &mut [f64], total: f64) -> f64 {
        let (now, wanted) = (self.sum(flows), (total - self.held).max(0.0));
        if self.open.is_empty() || now <= 0.0 {
            return 0.0;
        }
        self.open.iter().for_each(|arc| flows[*arc] *= wanted / now);
        (wanted - now).abs()
    }
}

/// Derives what follows, and fits the rest if anything is known. The flow that is out of balance: 0 if all counts agree.
pub(super) fn solve(network: &mut Network) -> f64 {
    if network.arcs.iter().all(Arc::is_unknown) {
        return 0.0;
    }
    let negative = network.derive();
    if network.arcs.iter().any(Arc::is_unknown) {
        fit(network);
    }
    negative + network.imbalance()
}

/// Gives all unknown arcs a flow.
fn fit(network: &mut Network) {
    let is_unknown: Vec<bool> = network.arcs.iter().map(|arc| arc.is_unknown()).collect();
    let flow = |arc: &Arc| if arc.is_unknown() { arc.weight } else { arc.flow.count };
    let mut flows: Vec<f64> = network.arcs.iter().map(flow).collect();
    let mut is_open = is_unknown.clone();
    hold(network, &mut flows, &mut is_open);
    spread(network, &mut flows, &is_open);
    if is_open != is_unknown {
        balance(network, &mut flows, &is_open);
    }
    balance(network, &mut flows, &is_unknown);
    for (arc, count) in network.arcs.iter_mut().zip(flows) {
        if arc.is_unknown() {
            let how = if arc.is_sampled { How::Sampled } else { How::Fitted };
            arc.flow = Flowing { count, how };
        }
    }
}

/// Gives arcs with recorded shares these shares of what enters their node, if that is known.
fn hold(network: &Network, flows: &mut [f64], is_open: &mut [bool]) {
    let sides = sides(network, flows, is_open);
    for [into, out] in sides.iter().take(network.nodes - 1) {
        if into.open.is_empty() {
            for arc in out.open.iter().copied().filter(|arc| network.arcs[*arc].is_sampled) {
                flows[arc] = (into.held - out.held).max(0.0) * network.arcs[arc].weight;
                is_open[arc] = false;
            }
        }
    }
}

/// Divides what enters each node among its open arcs by their weights, until that settles.
fn spread(network: &Network, flows: &mut [f64], is_open: &[bool]) {
    let mut sides = sides(network, flows, is_open);
    sides.pop();
    let weight = |arc: &usize| network.arcs[*arc].weight;
    for _ in 0..MOST_ROUNDS {
        let mut changed = 0.0_f64;
        for [into, out] in sides.iter().filter(|[_, out]| !out.open.is_empty()) {
            let enters = into.held + into.sum(flows);
            let (rest, all) =
                ((enters - out.held).max(0.0), out.open.iter().map(weight).sum::<f64>());
            changed = changed.max((out.sum(flows) - rest).abs() / enters.max(1.0));
            out.open.iter().for_each(|arc| flows[*arc] = rest * weight(arc) / all);
        }
        if changed <= LITTLE {
            break;
        }
    }
    // What nothing is known to enter may still run: its scale follows from where it leads.
    for (arc, flow) in network.arcs.iter().zip(flows).filter(|(arc, _)| arc.is_unknown()) {
        *flow = flow.max(RARELY * arc.weight);
    }
}

/// Both sides of each node.
fn sides(network: &Network, flows: &[f64], is_open: &[bool]) -> Vec<[Side; 2]> {
    let mut sides = vec![[Side::default(), Side::default()]; network.nodes];
    for (number, arc) in network.arcs.iter().enumerate() {
        for (node, side) in [(arc.to, 0), (arc.from, 1)] {
            let of = &mut sides[node][side];
            match is_open[number] {
                true => of.open.push(number),
                false => of.held += flows[number],
            }
        }
    }
    sides
}

/// Scales the open arcs until all nodes balance.
fn balance(network: &Network, flows: &mut [f64], is_open: &[bool]) {
    let mut sides = sides(network, flows, is_open);
    // The outside balances whatever the others leave.
    sides.pop();
    sides.retain(|[into, out]| !(into.open.is_empty() && out.open.is_empty()));
    for _ in 0..MOST_ROUNDS {
        let changed = sides.iter().map(|side| balance_node(side, flows)).fold(0.0, f64::max);
        if changed <= LITTLE {
            break;
        }
    }
}

/// Balances a node; by what share that changes the flow through it.
fn balance_node([into, out]: &[Side; 2], flows: &mut [f64]) -> f64 {
    let [enters, leaves] = [into, out].map(|side| side.held + side.sum(flows));
    let total = match (into.open.is_empty(), out.open.is_empty()) {
        (true, _) => enters,
        (_, true) => leaves,
        _ => (enters * leaves).sqrt().max(into.held).max(out.held),
    };
    (into.scale(flows, total) + out.scale(flows, total)) / total.max(1.0)
}
