//! Call chains: callers of a function, all stacks.

use super::function::HotFunction;
use super::profile::Profile;
use super::tally::Tally;
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
