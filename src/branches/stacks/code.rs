//! The code around branches: what a branch is, the control flow of its function, and the loop that a branch backwards
//! closes.

use super::walk::{Calls, LoopShape};
use iced_x86::FlowControl;
use isa::flow::{Edge, Flow, Loop};
use profile::address_space::ModuleAddress;
use profile::module::Module;
use profile::symbols::Symbols;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// The code of a recording's modules, read on demand.
#[derive(Debug)]
pub struct Code {
    /// Functions and control flow.
    pub of: profile::code::Code,
    branches: FxHashMap<ModuleAddress, Option<(FlowControl, u64)>>,
}

impl Code {
    /// With the observed targets by module, where blocks begin.
    pub fn new(
        symbols: Symbols,
        modules: Vec<Module>,
        targets: HashMap<usize, BTreeSet<u64>>,
    ) -> Self {
        let mut of = profile::code::Code::new(symbols, modules);
        of.observe(targets);
        Self { of, branches: FxHashMap::default() }
    }

    /// Kind of a branch, and the address after it; `None` where its code is not known.
    pub fn branch(&mut self, place: ModuleAddress) -> Option<(FlowControl, u64)> {
        *self.branches.entry(place).or_insert_with(|| {
            let instruction = self.of.instruction(place)?;
            Some((instruction.flow_control(), instruction.next_ip()))
        })
    }
}

impl Calls for Code {
    fn returns_to(&mut self, branch: ModuleAddress) -> Option<u64> {
        match self.branch(branch)? {
            (FlowControl::Call | FlowControl::IndirectCall, next) => Some(next),
            // No branch at all: an interrupt or fault, after which it is executed again.
            (FlowControl::Next, _) => Some(branch.address),
            _ => None,
        }
    }
}

impl Code {
    /// The loop that a branch backwards closes; `None` if it closes none. Where the control flow is not known
    /// the loop is everything between target and branch.
    pub fn shape(&mut self, from: ModuleAddress, to: ModuleAddress) -> Option<LoopShape> {
        if from.module != to.module || to.address > from.address {
            return None;
        }
        let next = match self.branch(from) {
            Some((FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch, next))
            | Some((FlowControl::IndirectBranch, next)) => next,
            Some(_) => return None,
            None => from.address.checked_add(1)?,
        };
        let (module, back, target) = (to.module, from.address, to.address);
        let shape = |head, body| LoopShape { module, head, back, target, body };
        let between = || Some(shape(target, std::iter::once(target..next).collect()));
        let Some(function) = self.of.function(to) else { return between() };
        if !(function.start..function.end).contains(&back) {
            return None;
        }
        let Some(flow) = self.of.flow(to) else { return between() };
        match Cycle::of(&flow, flow.block_at(back)?, flow.block_at(target)?)? {
            Cycle::Natural(found) => {
                let head = flow.blocks.get(found.head)?;
                Some(shape(head.start, body(&flow, found)))
            }
            // Trips need one head.
            Cycle::SeveralEntries => Some(shape(target, Vec::new())),
        }
    }
}

/// A cycle that an edge backwards in a function closes.
enum Cycle<'a> {
    Natural(&'a Loop),
    SeveralEntries,
}

impl<'a> Cycle<'a> {
    /// The cycle through an edge from block to block; `None` if it only leads back within an iteration.
    fn of(flow: &'a Flow, from: usize, to: usize) -> Option<Self> {
        let closed = flow.loops.iter().find(|l| l.head == to && l.back_edges.contains(&from));
        if closed.is_some() {
            return closed.map(Self::Natural);
        }
        let has_both = |l: &&Loop| has(l, from) && has(l, to);
        let inner = flow.loops.iter().filter(has_both).min_by_key(|l| l.blocks.len());
        let is_cycle = || reaches(flow, to, from, inner.map(|l| l.head));
        if !flow.irreducible.is_empty() && is_cycle() {
            return Some(Self::SeveralEntries);
        }
        // As compilers lay out `while`: from the target straight on into the head.
        let falls_in = |l: &&Loop| {
            let head = flow.blocks.get(l.head);
            let is_before = |latch: &&usize| {
                let end = flow.blocks.get(**latch).map(|block| block.end);
                end.is_some() && end == head.map(|head| head.start)
            };
            let latch = l.back_edges.iter().find(is_before);
            latch.is_some_and(|latch| reaches(flow, to, *latch, Some(l.head)))
        };
        inner.filter(falls_in).map(Self::Natural)
    }
}

fn has(l: &Loop, block: usize) -> bool {
    l.blocks.binary_search(&block).is_ok()
}

/// Whether a way leads from a block to another without passing `head`.
fn reaches(flow: &Flow, from: usize, to: usize, head: Option<usize>) -> bool {
    let mut seen = vec![false; flow.blocks.len()];
    let mut pending = vec![from];
    while let Some(block) = pending.pop() {
        if head == Some(block) || std::mem::replace(&mut seen[block], true) {
            continue;
        }
        if block == to {
            return true;
        }
        pending.extend(flow.blocks[block].edges.iter().filter_map(|edge| match edge {
            Edge::Block(next) => Some(*next),
            Edge::Outside(_) => None,
        }));
    }
    false
}

/// The code of a loop, in order of address.
fn body(flow: &Flow, of: &Loop) -> Vec<Range<u64>> {
    let mut body: Vec<Range<u64>> = Vec::new();
    for block in of.blocks.iter().filter_map(|block| flow.blocks.get(*block)) {
        match body.last_mut() {
            Some(last) if last.end == block.start => last.end = block.end,
            _ => body.push(block.start..block.end),
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::flow::flow;

    /// The head of the loop that a branch closes; `Some(None)`: a cycle without one.
    fn head(code: &[u8], from: u64, to: u64) -> Option<Option<u64>> {
        let flow = flow(code, 0, &[], &());
        let (from, to) = (flow.block_at(from).unwrap(), flow.block_at(to).unwrap());
        Cycle::of(&flow, from, to).map(|cycle| match cycle {
            Cycle::Natural(found) => Some(flow.blocks[found.head].start),
            Cycle::SeveralEntries => None,
        })
    }

    /// By hand, as compilers lay out `while`: jmp 4; 2: inc eax; 4: cmp eax, 9; jl 2; ret.
    #[test]
    fn a_branch_to_code_that_goes_straight_on_into_the_head_closes_the_loop() {
        let code = [0xeb, 0x02, 0xff, 0xc0, 0x83, 0xf8, 0x09, 0x7c, 0xf9, 0xc3];
        assert_eq!(head(&code, 7, 2), Some(Some(4)));
    }

    /// By hand: je 4; 2: inc eax; 4: inc ecx; jne 2; ret.
    #[test]
    fn a_cycle_with_two_entries_has_no_head() {
        let code = [0x74, 0x02, 0xff, 0xc0, 0xff, 0xc1, 0x75, 0xfa, 0xc3];
        assert_eq!(head(&code, 6, 2), Some(None));
    }

    /// By hand: 0: inc eax; je 8; 4: inc ecx; jmp c; 8: inc edx; jmp 4; c: jne 0; ret.
    #[test]
    fn a_jump_back_within_an_iteration_closes_no_loop() {
        let first = [0xff, 0xc0, 0x74, 0x04, 0xff, 0xc1, 0xeb, 0x04];
        let second = [0xff, 0xc2, 0xeb, 0xf8, 0x75, 0xf2, 0xc3];
        let code = [&first[..], &second].concat();
        assert_eq!(head(&code, 0xa, 4), None);
        assert_eq!(head(&code, 0xc, 0), Some(Some(0)));
    }
}
