//! Fits unknown arcs: each node in turn scales the arcs into it and out of it until both sides agree (iterative
//! proportional fitting; Deming and Stephan, Annals of Mathematical Statistics 11, 1940).

use super::network::{Flowing, How, Network};

/// Most rounds over all nodes.
const MOST_ROUNDS: usize = 300;
/// A round that changes the flow through each node by a smaller share of it is the last.
const LITTLE: f64 = 1e-7;

/// The arcs at a node.
#[derive(Debug, Clone, Default)]
struct Side {
    known: f64,
    unknown: Vec<usize>,
}

impl Side {
    fn sum(&self, flows: &[f64]) -> f64 {
        self.unknown.iter().map(|arc| flows[*arc]).sum()
    }

    /// Scales its unknown arcs so that all carry `total`; what that changed.
    fn scale(&self, flows: &mut [f64], total: f64) -> f64 {
        let (now, wanted) = (self.sum(flows), (total - self.known).max(0.0));
        if self.unknown.is_empty() || now <= 0.0 {
            return 0.0;
        }
        self.unknown.iter().for_each(|arc| flows[*arc] *= wanted / now);
        (wanted - now).abs()
    }
}

/// Gives all unknown arcs a flow.
pub(super) fn fit(network: &mut Network) {
    let mut sides = vec![[Side::default(), Side::default()]; network.nodes];
    for (number, arc) in network.arcs.iter().enumerate() {
        for (node, side) in [(arc.to, 0), (arc.from, 1)] {
            let of = &mut sides[node][side];
            match arc.is_unknown() {
                true => of.unknown.push(number),
                false => of.known += arc.flow.count,
            }
        }
    }
    // The outside balances whatever the others leave.
    sides.pop();
    sides.retain(|[into, out]| !(into.unknown.is_empty() && out.unknown.is_empty()));
    let mut flows: Vec<f64> = network.arcs.iter().map(|arc| arc.weight).collect();
    for _ in 0..MOST_ROUNDS {
        let changed = sides.iter().map(|side| balance(side, &mut flows)).fold(0.0, f64::max);
        if changed <= LITTLE {
            break;
        }
    }
    for (arc, count) in network.arcs.iter_mut().zip(flows) {
        if arc.is_unknown() {
            arc.flow = Flowing { count, how: How::Fitted };
        }
    }
}

/// Balances a node; by what share that changes the flow through it.
fn balance([into, out]: &[Side; 2], flows: &mut [f64]) -> f64 {
    let [enters, leaves] = [into, out].map(|side| side.known + side.sum(flows));
    let total = match (into.unknown.is_empty(), out.unknown.is_empty()) {
        (true, _) => enters,
        (_, true) => leaves,
        _ => (enters * leaves).sqrt().max(into.known).max(out.known),
    };
    (into.scale(flows, total) + out.scale(flows, total)) / total.max(1.0)
}
