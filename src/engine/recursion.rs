//! Functions that may call themselves, through others of the same set, too: only calls that nest deeply make
//! a return that is not predicted.

use iced_x86::{Decoder, DecoderOptions, OpKind};
use probe::count::Wanted;
use probe::facts::Module;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The numbers of functions on a cycle of direct calls and jumps, and of some between such cycles.
pub fn recursive(wanted: &[Wanted]) -> BTreeSet<usize> {
    let mut starts: BTreeMap<(&PathBuf, u64), usize> = BTreeMap::new();
    for (number, of) in wanted.iter().enumerate() {
        starts.insert((&of.path, of.range.start), number);
    }
    let paths: BTreeSet<&PathBuf> = wanted.iter().map(|of| &of.path).collect();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for path in paths {
        let Ok(module) = Module::read(path) else { continue };
        let own = wanted.iter().enumerate().filter(|(_, of)| of.path == *path);
        for (number, of) in own {
            let Some(code) = module.code(of.range.clone()) else { continue };
            let decoder = Decoder::with_ip(64, code, of.range.start, DecoderOptions::NONE);
            let near = decoder.into_iter().filter(|i| i.op0_kind() == OpKind::NearBranch64);
            // To the own start only calls: a jump there is a loop.
            let calls =
                near.filter(|i| i.is_call_near() || !of.range.contains(&i.near_branch_target()));
            let callees = calls.filter_map(|i| starts.get(&(path, i.near_branch_target())));
            edges.extend(callees.map(|callee| (number, *callee)));
        }
    }
    on_cycles(edges)
}

/// The nodes that are left when all that nothing leads to, or that lead to nothing, are taken away.
fn on_cycles(mut edges: Vec<(usize, usize)>) -> BTreeSet<usize> {
    loop {
        let from: BTreeSet<usize> = edges.iter().map(|edge| edge.0).collect();
        let to: BTreeSet<usize> = edges.iter().map(|edge| edge.1).collect();
        let before = edges.len();
        edges.retain(|(a, b)| to.contains(a) && from.contains(b));
        if edges.len() == before {
            return from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_to_a_cycle_is_not_on_it() {
        // 0 → 1 ⇄ 2 → 3; 4 → 4.
        let edges = vec![(0, 1), (1, 2), (2, 1), (2, 3), (4, 4)];
        assert_eq!(on_cycles(edges), BTreeSet::from([1, 2, 4]));
        assert!(on_cycles(vec![(0, 1), (1, 2)]).is_empty());
    }
}
