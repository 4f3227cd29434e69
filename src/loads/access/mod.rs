//! Access patterns of loads, from the code alone: backward dataflow from the registers of a load's address over the
//! loops around it, on paths through one iteration.
//!
//! | file | concern |
//! |---|---|
//! | `function` | the code of a function, with effects; values of one iteration |
//! | `run` | symbolic execution of one path |
//! | `operations` | what single instructions compute |
//! | `recurrence` | how places recur; rings of loads; slices |
//! | `motion` | how a value changes from one iteration to the next, and its class |
//!
//! A value in a register or spilled word at the end of an iteration, as a function of those at its start, shows how it
//! recurs: a constant added is a stride, its own loaded value a pointer chase, another loaded value an index (classes:
//! [`Class`]). Assumed: stores go nowhere else than to the address that they name; arithmetic of 32 bits does not
//! overflow; a loop within an iteration has the same number of trips each time; callees preserve the registers that the
//! System V ABI says.

mod function;
mod motion;
mod operations;
mod recurrence;
mod run;
#[cfg(test)]
mod tests;

use crate::class::{Ahead, Class};
pub use function::Function;
use isa::flow::{Edge, Flow, Loop};
use recurrence::OnPath;
use std::collections::BTreeSet;
use std::fmt;

/// Most instructions executed symbolically for one level of a load.
const MOST_INSTRUCTIONS: usize = 40_000;
/// Largest loop that is looked at, in blocks.
const MOST_BLOCKS: usize = 1_000;
/// Rounds in which places that change are found.
const MOST_ROUNDS: usize = 8;

/// The static access pattern of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// Its pattern in each loop around it, the innermost first; empty outside loops.
    pub levels: Vec<Level>,
}

impl Access {
    /// Its pattern in the innermost loop.
    pub fn innermost(&self) -> Option<&Level> {
        self.levels.first()
    }
}

/// The pattern of a load in one loop: how its address differs from that in the loop's iteration before (in an
/// outer loop: that of the first execution in the iteration).
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// First address of the loop's first block.
    pub head: u64,
    /// Its class; other loads by address.
    pub class: Class<u64>,
    /// A stride begins anew after this many bytes: a mask limits the index.
    pub wraps: Option<u64>,
    /// The instructions of the loop that compute the address, by address.
    pub slice: Vec<u64>,
    /// Paths through an iteration that contain the load.
    pub paths: usize,
    /// Paths that give this class.
    pub agree: usize,
    /// Whether loops within this one compute what the address of the next iteration needs.
    pub has_loops: bool,
    /// A load in a loop within this one that helps to compute the address, and whose own next address needs its last
    /// value: a descent or a walk that ends at this load.
    pub after_chase: Option<u64>,
    /// Why no path was looked at; the class is then [`Class::Irregular`].
    pub unknown: Option<NoPath>,
}

/// Why no path through an iteration of a loop was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPath {
    /// The loop has too many blocks: their number.
    Large(usize),
    /// There is none with the load.
    None,
}

impl fmt::Display for NoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Large(blocks) => {
                write!(f, "the loop has {blocks} blocks, more than {MOST_BLOCKS}")
            }
            Self::None => f.write_str("no path through an iteration with the load was found"),
        }
    }
}

impl Level {
    /// A loop that is not looked at.
    fn unknown(head: u64, why: NoPath) -> Self {
        Self {
            head,
            class: Class::Irregular,
            wraps: None,
            slice: Vec::new(),
            paths: 0,
            agree: 0,
            has_loops: false,
            after_chase: None,
            unknown: Some(why),
        }
    }

    /// Its class in words, or why it is not known.
    pub fn words(&self) -> String {
        match &self.unknown {
            Some(why) => format!("not known: {why}"),
            None => self.class.words(),
        }
    }
}

/// The access pattern of the load at an address; `None` if no load is there.
///
/// ```
/// use isa::code::{Syntax, assemble};
/// use isa::flow::decoded_flow;
/// use loads::access::{Function, classify};
/// use loads::class::Class;
///
/// // for (i…) sum += table[index[i]]
/// let text = "again: mov edx,[rsi]; add rsi,4; add rax,[rdi+rdx*8]; cmp rsi,rcx; jne again; ret";
/// let (flow, code) = decoded_flow(&assemble(text, Syntax::Intel)?, 0x1000, &[], &());
/// let function = Function::new(&flow, &code);
/// let found = classify(&function, 0x1006).unwrap();
/// let level = found.innermost().unwrap();
/// let inner = Box::new(Class::Stride(4));
/// assert_eq!(level.class, Class::Indirect { of: 0x1000, scale: 8, inner });
/// assert_eq!(level.slice, [0x1000, 0x1002]);
/// # Ok::<(), tma::Error>(())
/// ```
pub fn classify(function: &Function, load: u64) -> Option<Access> {
    let (code, block) = function.at(load)?;
    code.effects.memory.iter().find(|access| access.load)?;
    let mut levels = Vec::new();
    let mut next = function.flow.blocks.get(block)?.innermost;
    while let Some(number) = next {
        levels.extend(level(function, number, (load, block)));
        next = function.flow.loops.get(number)?.parent;
    }
    Some(Access { levels })
}

/// The pattern in the loop with this number.
fn level(function: &Function, number: usize, (load, block): (u64, usize)) -> Option<Level> {
    let within = function.flow.loops.get(number)?;
    let head = function.flow.blocks.get(within.head)?.start;
    if within.blocks.len() > MOST_BLOCKS {
        return Some(Level::unknown(head, NoPath::Large(within.blocks.len())));
    }
    let mut found: Vec<OnPath> = Vec::new();
    let mut instructions = 0;
    for path in paths(function.flow, within, block) {
        instructions += path.iter().map(|b| function.block(*b).len()).sum::<usize>();
        if instructions > MOST_INSTRUCTIONS && !found.is_empty() {
            break;
        }
        found.extend(on_path(function, number, &path, load));
    }
    let times = |class: &Class<u64>| found.iter().filter(|one| one.class == *class).count();
    let Some(most) = found.iter().rev().max_by_key(|one| times(&one.class)) else {
        return Some(Level::unknown(head, NoPath::None));
    };
    let agreeing = || found.iter().filter(|one| one.class == most.class);
    let slice: BTreeSet<u64> = agreeing().flat_map(|one| one.slice.iter().copied()).collect();
    // A branch decides what comes next, as in a binary search: to know a later address, its outcomes are needed.
    let is_decided =
        matches!(most.class, Class::Complex { .. }) && agreeing().any(|one| one.next != most.next);
    let class = if is_decided { Class::Complex { ahead: Ahead::No } } else { most.class.clone() };
    let is_within = |at: &u64| innermost(function, *at) != Some(number);
    let after_chase = slice.iter().copied().find(|at| chases_within(function, number, *at));
    Some(Level {
        head,
        class,
        wraps: most.wraps,
        has_loops: agreeing().flat_map(|one| &one.carried).any(is_within),
        slice: slice.into_iter().collect(),
        paths: found.len(),
        agree: times(&most.class),
        after_chase,
        unknown: None,
    })
}

/// The innermost loop around an instruction.
fn innermost(function: &Function, at: u64) -> Option<usize> {
    function.flow.blocks.get(function.flow.block_at(at)?)?.innermost
}

/// Whether there is a load at an address, in a loop within that with this number, whose own addresses there need the
/// values before.
fn chases_within(function: &Function, number: usize, at: u64) -> bool {
    let Some((code, block)) = function.at(at) else { return false };
    let Some(own) = innermost(function, at).filter(|own| *own != number) else { return false };
    let loads = code.effects.memory.iter().any(|access| access.load);
    let class = || level(function, own, (at, block)).map(|level| level.class);
    loads && class().is_some_and(|class| !class.is_computable_ahead() && class != Class::Irregular)
}

fn on_path(function: &Function, number: usize, path: &[usize], load: u64) -> Option<OnPath> {
    // A register that some instruction writes may still be the same after it (`push` and `pop`), and a word may
    // change: both are seen by executing the path.
    let mut varying = function.written(number);
    let mut iteration = run::run(function, path, load, &varying)?;
    for _ in 0..MOST_ROUNDS {
        let changed: BTreeSet<_> = iteration.after.keys().cloned().collect();
        if changed == varying {
            break;
        }
        varying = changed;
        iteration = run::run(function, path, load, &varying)?;
    }
    Some(recurrence::on_path(&iteration, load))
}

/// Most paths that are looked at.
const MOST_PATHS: usize = 64;
/// Most steps of the search.
const MOST_STEPS: usize = 20_000;

/// Paths from the head of the loop through `block` back to the head, each block at most once: loops
/// within it run once.
pub fn paths(flow: &Flow, within: &Loop, block: usize) -> Vec<Vec<usize>> {
    let mut search = Search {
        flow,
        within,
        block,
        leads: leading_to(flow, within, block),
        path: Vec::new(),
        found: Vec::new(),
        steps: 0,
    };
    search.visit(within.head);
    search.found
}

/// The blocks that a block may be followed by, without leaving the loop.
fn successors<'a>(flow: &'a Flow, within: &'a Loop, of: usize) -> impl Iterator<Item = usize> + 'a {
    let edges = flow.blocks.get(of).map(|block| &block.edges[..]).unwrap_or_default();
    edges.iter().filter_map(|edge| match edge {
        Edge::Block(to) if within.blocks.binary_search(to).is_ok() => Some(*to),
        _ => None,
    })
}

/// The blocks from which `block` can be reached within the iteration.
fn leading_to(flow: &Flow, within: &Loop, block: usize) -> BTreeSet<usize> {
    let mut leads = BTreeSet::from([block]);
    loop {
        let before = leads.len();
        for one in &within.blocks {
            if successors(flow, within, *one).any(|to| to != within.head && leads.contains(&to)) {
                leads.insert(*one);
            }
        }
        if leads.len() == before {
            return leads;
        }
    }
}

struct Search<'a> {
    flow: &'a Flow,
    within: &'a Loop,
    block: usize,
    leads: BTreeSet<usize>,
    path: Vec<usize>,
    found: Vec<Vec<usize>>,
    steps: usize,
}

impl Search<'_> {
    fn visit(&mut self, from: usize) {
        self.steps += 1;
        if self.steps > MOST_STEPS || self.found.len() >= MOST_PATHS {
            return;
        }
        self.path.push(from);
        let is_after = self.path.contains(&self.block);
        for to in successors(self.flow, self.within, from) {
            if to == self.within.head {
                if is_after && self.found.len() < MOST_PATHS {
                    self.found.push(self.path.clone());
                }
            } else if !self.path.contains(&to) && (is_after || self.leads.contains(&to)) {
                self.visit(to);
            }
        }
        self.path.pop();
    }
}
