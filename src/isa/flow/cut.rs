//! Instructions → basic blocks: leaders, and how blocks follow each other.
//!
//! A block begins at the entry, at the target of a branch (direct, of a jump table, or seen in a
//! recording) and behind whatever is not followed by the next instruction alone: a branch, a call,
//! a return. Calls end blocks because what a call does is not the block's own. Padding that
//! nothing leads to belongs to no block.

use super::graph::{BasicBlock, Edge};
use super::memory::Memory;
use super::sweep::{Sweep, direct_target, falls_through};
use iced_x86::{Code, FlowControl, Instruction, Mnemonic};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// Jump tables: address of the jump → targets, in order of the table.
pub(super) type Tables = BTreeMap<u64, Vec<u64>>;

/// Blocks and the instructions of each.
pub(super) struct Cut {
    pub blocks: Vec<BasicBlock>,
    /// Indices of each block's instructions.
    pub spans: Vec<Range<usize>>,
    /// Padding between blocks.
    pub padding: Vec<(u64, u64)>,
}

/// A function as it is cut.
struct Cutter<'a> {
    sweep: &'a Sweep,
    range: Range<u64>,
    tables: &'a Tables,
    /// Functions that do not return when called.
    no_return: HashSet<u64>,
}

/// Cuts `sweep` into blocks; the function lies in `range`.
pub(super) fn cut(
    sweep: &Sweep,
    range: Range<u64>,
    observed: &[u64],
    tables: &Tables,
    memory: &dyn Memory,
) -> Cut {
    let leaders = leaders(sweep, observed, tables);
    let no_return = no_return(sweep, range.end, memory);
    let cutter = Cutter { sweep, range, tables, no_return };
    let starts: Vec<usize> = (0..leaders.len()).filter(|&i| leaders[i] != Leader::No).collect();
    let ends = starts.iter().skip(1).copied().chain([leaders.len()]);
    let spans: Vec<_> = starts.iter().copied().zip(ends).map(|(from, to)| from..to).collect();
    let spans = cutter.without_padding(spans, &leaders);
    let mut padding = Vec::new();
    let mut kept = Vec::new();
    for (span, nops) in spans {
        if nops > span.start {
            padding.push((address(sweep, span.start), sweep.instructions[nops - 1].next_ip()));
        }
        if nops < span.end {
            kept.push(nops..span.end);
        }
    }
    let blocks = kept.iter().map(|span| cutter.block(span, &kept)).collect();
    Cut { blocks, spans: kept, padding: joined(padding) }
}

fn address(sweep: &Sweep, index: usize) -> u64 {
    sweep.instructions[index].ip()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leader {
    No,
    /// Behind something that ends a block.
    Behind,
    /// Something leads to it.
    Target,
}

/// Which instructions begin a block.
fn leaders(sweep: &Sweep, observed: &[u64], tables: &Tables) -> Vec<Leader> {
    let mut leaders = vec![Leader::No; sweep.instructions.len()];
    let mut expected = None;
    for (index, instruction) in sweep.instructions.iter().enumerate() {
        let goes_on = expected == Some(instruction.ip());
        if !goes_on {
            leaders[index] = Leader::Behind;
        }
        expected = (!ends_block(instruction)).then(|| instruction.next_ip());
    }
    if let Some(entry) = leaders.first_mut() {
        *entry = Leader::Target;
    }
    let direct = sweep.instructions.iter().filter_map(direct_target);
    let known = observed.iter().chain(tables.values().flatten()).copied();
    for target in direct.chain(known) {
        if let Some(index) = sweep.index_of(target) {
            leaders[index] = Leader::Target;
        }
    }
    leaders
}

fn ends_block(instruction: &Instruction) -> bool {
    instruction.flow_control() != FlowControl::Next || instruction.code() == Code::Hlt
}

fn is_padding(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}

/// Neighbouring ranges as one.
fn joined(ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut result: Vec<(u64, u64)> = Vec::new();
    for (from, to) in ranges {
        match result.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => result.push((from, to)),
        }
    }
    result
}

/// The functions called that do not return: those that `memory` knows, and whatever is called by
/// the last instruction of the function.
fn no_return(sweep: &Sweep, end: u64, memory: &dyn Memory) -> HashSet<u64> {
    let mut asked = HashSet::new();
    let mut no_return = HashSet::new();
    for instruction in sweep.instructions.iter().filter(|i| i.is_call_near()) {
        let callee = instruction.near_branch_target();
        let is_last = instruction.next_ip() == end;
        if is_last || (asked.insert(callee) && !memory.returns(callee)) {
            no_return.insert(callee);
        }
    }
    no_return
}

impl Cutter<'_> {
    /// Whether control may go on behind `instruction`.
    fn goes_on(&self, instruction: &Instruction) -> bool {
        falls_through(instruction)
            && !(instruction.is_call_near()
                && self.no_return.contains(&instruction.near_branch_target()))
    }

    /// Each span with the index behind the padding it begins with. Padding is what does nothing
    /// and nothing leads to, but for other padding.
    fn without_padding(
        &self,
        spans: Vec<Range<usize>>,
        leaders: &[Leader],
    ) -> Vec<(Range<usize>, usize)> {
        let all = &self.sweep.instructions;
        let mut falls_to = None;
        let mut result = Vec::with_capacity(spans.len());
        for span in spans {
            let is_reached =
                leaders[span.start] == Leader::Target || falls_to == Some(all[span.start].ip());
            let nops = all[span.clone()].iter().take_while(|i| is_padding(i)).count();
            let behind = if is_reached { span.start } else { span.start + nops };
            let last = &all[span.end - 1];
            falls_to = (behind < span.end && self.goes_on(last)).then(|| last.next_ip());
            result.push((span, behind));
        }
        result
    }

    /// The block of the instructions `span`, with its edges.
    fn block(&self, span: &Range<usize>, spans: &[Range<usize>]) -> BasicBlock {
        let last = &self.sweep.instructions[span.end - 1];
        let start = self.sweep.instructions[span.start].ip();
        let mut block = BasicBlock { start, end: last.next_ip(), ..Default::default() };
        let table = self.tables.get(&last.ip());
        for target in direct_target(last).into_iter().chain(table.into_iter().flatten().copied()) {
            self.lead_to(&mut block, spans, target);
        }
        if self.goes_on(last) {
            let is_call =
                matches!(last.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            if is_call && !self.range.contains(&last.next_ip()) {
                block.is_exit = true;
            } else {
                self.lead_to(&mut block, spans, last.next_ip());
            }
        } else if last.flow_control() == FlowControl::IndirectBranch {
            block.unresolved |= table.is_none();
        } else {
            block.is_exit = direct_target(last).is_none();
        }
        block
    }

    /// Adds the edge to `target`, unless it is there; marks the block if no block is there.
    fn lead_to(&self, block: &mut BasicBlock, spans: &[Range<usize>], target: u64) {
        let edge = if self.range.contains(&target) {
            let found = self.sweep.index_of(target);
            found.and_then(|i| spans.binary_search_by_key(&i, |s| s.start).ok()).map(Edge::Block)
        } else {
            Some(Edge::Outside(target))
        };
        match edge {
            Some(edge) if !block.edges.contains(&edge) => block.edges.push(edge),
            Some(_) => {}
            None => block.unresolved = true,
        }
    }
}
