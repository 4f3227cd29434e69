//! Call chains: the callers of a function, all stacks, and the callers and callees of a function as trees.

use super::Profile;
use super::tally::{HotFunction, Tally};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Suffix of an inlined function's name, as perf prints it.
pub(super) const INLINED: &str = " (inlined)";

/// A caller of a function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Caller {
    /// Name; `[top]` if the function is the outermost of the chain.
    pub name: String,
    /// Its module.
    pub module: String,
    /// Share of the function's samples (inclusive of callees) in calls from this caller, 0 to 1.
    pub share: f64,
    /// Number of samples.
    pub samples: u64,
}

/// The name of a function among its own callees: samples in its own code.
pub const SELF: &str = "[self]";

/// Callers and callees of a function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calls {
    /// Share of all samples that are in it or in what it calls.
    pub share: f64,
    /// Their number.
    pub samples: u64,
    /// Its callers by share of these samples.
    pub callers: Vec<Caller>,
    /// Its callees likewise; [`SELF`] is its own code.
    pub callees: Vec<Caller>,
    /// Whether most chains of the recording end after one caller.
    pub is_cut: bool,
}

impl Profile {
    /// Whether samples have call chains.
    pub fn has_chains(&self) -> bool {
        !self.gathered.stacks.is_empty()
    }

    /// Whether most samples of user code have at most one caller in their chain, though chains are recorded by
    /// frame pointers.
    pub fn chains_are_cut(&self) -> bool {
        if !self.gathered.unwound.is_empty() {
            return false;
        }
        let stacks = &self.gathered.stacks;
        let samples = |short: bool| -> u64 {
            let of = stacks.iter().filter(|((_, stack), _)| !short || stack.len() <= 2);
            of.map(|(_, tally)| tally.samples).sum()
        };
        2 * samples(true) > samples(false)
    }

    /// The callers of the functions named `name`, with or without parameters, by share. A sample counts
    /// once for each caller in its chain.
    pub fn callers(&mut self, name: &str) -> Vec<Caller> {
        self.calls(name).callers
    }

    /// Callers and callees of the functions of this name, likewise.
    pub fn calls(&mut self, name: &str) -> Calls {
        let stacks = std::mem::take(&mut self.gathered.stacks);
        let mut names = HashMap::new();
        let mut sums: [BTreeMap<Named, Tally>; 2] = Default::default();
        let mut all = Tally::default();
        for ((_, stack), tally) in &stacks {
            let stack = self.functions_of(stack, &mut names);
            let mut found: [Vec<Named>; 2] = Default::default();
            for (i, function) in stack.iter().enumerate().filter(|(_, one)| one.is(name)) {
                found[0].push(stack.get(i + 1).cloned().unwrap_or_else(Named::top));
                let below = i.checked_sub(1).and_then(|below| stack.get(below));
                found[1].push(below.cloned().unwrap_or_else(|| Named::own(function)));
            }
            if !found[0].is_empty() {
                all.add(*tally);
            }
            for (sums, mut found) in sums.iter_mut().zip(found) {
                found.sort();
                found.dedup();
                found.into_iter().for_each(|one| sums.entry(one).or_default().add(*tally));
            }
        }
        self.gathered.stacks = stacks;
        let [callers, callees] = sums.map(|sums| by_share(sums, all));
        let is_cut = self.has_chains() && self.chains_are_cut();
        Calls { share: self.gathered.share(all), samples: all.samples, callers, callees, is_cut }
    }

    /// All call chains with their samples, the outermost function first; equal ones are one. Without
    /// chains every stack is one function.
    pub fn stacks(&mut self) -> Vec<CallStack> {
        if !self.has_chains() {
            let addresses = self.addresses.iter();
            let stack = |(function, places): (&HotFunction, &Vec<(u64, Tally)>)| CallStack {
                thread: None,
                frames: vec![StackFrame::of(&function.name, &function.module)],
                samples: function.samples,
                weight: match places.is_empty() {
                    // Outside all mappings: known by share only.
                    true => function.share * self.gathered.total.weight,
                    false => places.iter().map(|(_, tally)| tally.weight).sum(),
                },
            };
            return self.functions.iter().zip(addresses).map(stack).collect();
        }
        let gathered = std::mem::take(&mut self.gathered.stacks);
        let mut names = HashMap::new();
        let mut sums: BTreeMap<(Option<String>, Vec<StackFrame>), Tally> = BTreeMap::new();
        for ((thread, stack), tally) in &gathered {
            let functions = self.functions_of(stack, &mut names).into_iter().rev();
            let frame = |named: Named| StackFrame { name: named.name, module: named.module };
            let frames = functions.map(frame).collect();
            sums.entry((Some(thread.clone()), frames)).or_default().add(*tally);
        }
        self.gathered.stacks = gathered;
        let stack = |((thread, frames), tally): ((_, _), Tally)| CallStack {
            thread,
            frames,
            samples: tally.samples,
            weight: tally.weight,
        };
        sums.into_iter().map(stack).collect()
    }
}

fn by_share(sums: BTreeMap<Named, Tally>, all: Tally) -> Vec<Caller> {
    let caller = |(named, tally): (Named, Tally)| Caller {
        name: named.name,
        module: named.module,
        share: if all.weight > 0.0 { tally.weight / all.weight } else { 0.0 },
        samples: tally.samples,
    };
    let mut callers: Vec<Caller> = sums.into_iter().map(caller).collect();
    callers.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
    callers
}

/// A function in a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    pub name: String,
    /// Without parameters.
    pub short: String,
    pub module: String,
}

impl Named {
    pub fn only(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The caller of the outermost function.
    pub(super) fn top() -> Self {
        Self::only("[top]")
    }

    /// The function itself, where it is the innermost of the chain.
    pub(super) fn own(function: &Self) -> Self {
        Self { name: SELF.to_owned(), short: String::new(), module: function.module.clone() }
    }

    /// Whether it has this name, with or without parameters.
    pub(super) fn is(&self, asked: &str) -> bool {
        self.name == asked || self.short == asked
    }
}

/// A call chain with its samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallStack {
    /// Name of its thread; `None` without call chains.
    pub thread: Option<String>,
    /// Its functions, the outermost first.
    pub frames: Vec<StackFrame>,
    /// Number of samples.
    pub samples: u64,
    /// Their weight: the sum of their periods, or their number if they have none.
    pub weight: f64,
}

impl CallStack {
    /// The function that the innermost code is of; the last frames may be functions inlined into it.
    pub fn function(&self) -> Option<&StackFrame> {
        self.frames.iter().rfind(|frame| !frame.is_inlined())
    }
}

/// A function in a call stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackFrame {
    /// Demangled name; `(inlined)` follows that of an inlined function.
    pub name: String,
    /// Name of its module.
    pub module: String,
}

impl StackFrame {
    /// Whether it is inlined into the next outer function.
    pub fn is_inlined(&self) -> bool {
        self.name.ends_with(INLINED)
    }

    fn of(name: &str, module: &str) -> Self {
        Self { name: name.to_owned(), module: module.to_owned() }
    }
}

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
