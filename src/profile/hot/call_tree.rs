//! The callers of a function and theirs, its callees and theirs: trees.

use super::callers::{INLINED, Named};
use super::profile::Profile;
use super::tally::Tally;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Least share of the function's samples that is a row.
const LEAST: f64 = 0.005;
/// Most levels: readers of JSON limit them.
const DEEPEST: usize = 32;

/// A function in a tree of callers or callees.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallNode {
    /// Its name; `[top]` where a chain ends, `[self]` for the function's own code, `[deeper]` where a tree is cut,
    /// `[others]` for all that have too few samples for a row.
    pub name: String,
    /// Without parameters.
    pub short: String,
    /// Its module.
    pub module: String,
    /// Share of the samples of the function at the root, 0 to 1.
    pub share: f64,
    /// Number of samples.
    pub samples: u64,
    /// Its own callers or callees in these samples, by share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<CallNode>,
}

/// Both trees of a function. Each of its samples is in one path of each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallTrees {
    /// Callers, from the innermost call outwards.
    pub callers: Vec<CallNode>,
    /// Callees, from the outermost call inwards.
    pub callees: Vec<CallNode>,
}

impl Profile {
    /// The trees of the functions named `name`, with or without parameters; empty without call chains.
    pub fn call_trees(&mut self, name: &str) -> CallTrees {
        let stacks = std::mem::take(&mut self.gathered.stacks);
        let mut known = HashMap::new();
        let [mut callers, mut callees] = [Trie::default(), Trie::default()];
        for ((_, chain), tally) in &stacks {
            // The innermost is the first.
            let chain = self.functions_of(chain, &mut known);
            let first = chain.iter().position(|one| one.is(name));
            let Some((first, last)) = first.zip(chain.iter().rposition(|one| one.is(name))) else {
                continue;
            };
            let outwards = chain[first + 1..].iter().cloned();
            callers.add(outwards, Named::top, *tally);
            let inwards = chain[..last].iter().rev().cloned();
            callees.add(inwards, || Named::own(&chain[last]), *tally);
        }
        self.gathered.stacks = stacks;
        CallTrees {
            callers: callers.nodes(callers.tally.weight),
            callees: callees.nodes(callees.tally.weight),
        }
    }
}

/// Paths that begin alike, put together.
#[derive(Debug, Default)]
struct Trie {
    tally: Tally,
    below: BTreeMap<Named, Trie>,
}

impl Trie {
    /// Adds the samples of a path; `none` stands for an empty one.
    fn add(
        &mut self,
        path: impl Iterator<Item = Named>,
        none: impl FnOnce() -> Named,
        tally: Tally,
    ) {
        let mut path: Vec<Named> = path.take(DEEPEST + 1).collect();
        if path.is_empty() {
            path.push(none());
        }
        if path.len() > DEEPEST {
            path[DEEPEST..].fill(Named::only("[deeper]"));
        }
        let mut at = self;
        at.tally.add(tally);
        for one in path {
            at = at.below.entry(one).or_default();
            at.tally.add(tally);
        }
    }

    fn nodes(&self, all: f64) -> Vec<CallNode> {
        let node = |(named, of): (&Named, &Self)| {
            let is_inlined = named.name.ends_with(INLINED) && !named.short.is_empty();
            CallNode {
                name: named.name.clone(),
                short: match is_inlined {
                    true => format!("{}{INLINED}", named.short),
                    false => named.short.clone(),
                },
                module: named.module.clone(),
                share: if all > 0.0 { of.tally.weight / all } else { 0.0 },
                samples: of.tally.samples,
                below: of.nodes(all),
            }
        };
        let is_row = |of: &Self| of.tally.weight >= LEAST * all;
        let rows = self.below.iter().filter(|(_, of)| is_row(of));
        let mut nodes: Vec<CallNode> = rows.map(node).collect();
        nodes.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
        let mut others = Self::default();
        self.below.values().filter(|of| !is_row(of)).for_each(|of| others.tally.add(of.tally));
        if others.tally.samples > 0 {
            nodes.push(node((&Named::only("[others]"), &others)));
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_begin_alike_are_one_and_an_empty_one_has_a_name() {
        let mut trie = Trie::default();
        let samples = |n: u64| Tally { samples: n, weight: n as f64, squares: n as f64 };
        let path =
            |names: &str| -> Vec<Named> { names.split_whitespace().map(Named::only).collect() };
        for (names, n) in [("b main", 60), ("c main", 30), ("b start", 10), ("", 100)] {
            trie.add(path(names).into_iter(), Named::top, samples(n));
        }
        let nodes = trie.nodes(trie.tally.weight);
        let told: Vec<(&str, u64, usize)> =
            nodes.iter().map(|n| (n.name.as_str(), n.samples, n.below.len())).collect();
        assert_eq!(told, [("[top]", 100, 0), ("b", 70, 2), ("c", 30, 1)]);
        assert_eq!((nodes[1].share, nodes[1].below[0].share), (0.35, 0.3));
        // Recursion of a thousand levels is cut.
        let deep = vec![Named::only("f"); 1000];
        let mut trie = Trie::default();
        trie.add(deep.into_iter(), Named::top, samples(1));
        let mut at = trie.nodes(1.0);
        let mut levels = 0;
        while let Some(node) = at.pop() {
            (at, levels) = (node.below, levels + 1);
        }
        assert_eq!(levels, DEEPEST + 1, "and the mark");
        let mut trie = Trie::default();
        trie.add(vec![Named::only("often")].into_iter(), Named::top, samples(997));
        for name in ["a", "b", "c"] {
            trie.add(vec![Named::only(name)].into_iter(), Named::top, samples(1));
        }
        let nodes = trie.nodes(1000.0);
        let told: Vec<(&str, u64)> = nodes.iter().map(|n| (n.name.as_str(), n.samples)).collect();
        assert_eq!(told, [("often", 997), ("[others]", 3)]);
    }
}
