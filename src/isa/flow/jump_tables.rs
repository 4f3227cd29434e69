//! Resolves jump tables by a backward slice from an indirect jump along every path that reaches it, until the
//! target is a function of a bounded index; the targets are evaluated on the program's memory and checked against
//! the function.
//!
//! The slice is conservative: if the index has no bound or the table no fixed address on any path, the
//! jump stays unresolved.

use super::graph::{BasicBlock, Edge};
use super::image::Memory;
use super::loops::predecessors;
use super::partition::{Disassembly, Partition, Tables, direct_target, partition};
use super::slice_state::State;
use super::transfer::WriteSummary;
use super::value::Value;
use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Largest number of entries of a table.
const MAX_ENTRIES: u64 = 1 << 14;
/// Iterations of partitioning and table resolution.
const MAX_ROUNDS: usize = 5;
/// Instructions that slices may visit, per instruction of the function.
const STEPS_PER_INSTRUCTION: usize = 100;

pub(super) struct Code<'a> {
    pub bytes: &'a [u8],
    pub range: Range<u64>,
    pub observed: &'a [u64],
    pub memory: &'a dyn Memory,
}

/// Disassembles and partitions a function, with all jump tables that can be resolved.
///
/// A table may lead to code with other tables, and to new paths to known jumps. The first loop is
/// optimistic: it ignores paths that may be missing and repeats until no new table is found. The
/// second loop keeps only tables that hold with all known paths.
pub(super) fn resolve(code: &Code<'_>) -> (Disassembly, Partition, Tables) {
    let mut tables = Tables::new();
    let (mut disassembly, mut partition) = partition_with(code, &tables);
    if !disassembly.instructions.iter().any(|i| i.flow_control() == FlowControl::IndirectBranch) {
        return (disassembly, partition, tables);
    }
    for _ in 0..MAX_ROUNDS {
        let found = find(code, &disassembly, &partition, true);
        if found == tables {
            break;
        }
        tables = found;
        (disassembly, partition) = partition_with(code, &tables);
    }
    for _ in 0..MAX_ROUNDS {
        let mut sure = find(code, &disassembly, &partition, false);
        sure.retain(|jump, targets| tables.get(jump) == Some(targets));
        if sure == tables {
            return (disassembly, partition, tables);
        }
        tables = sure;
        (disassembly, partition) = partition_with(code, &tables);
    }
    let (disassembly, partition) = partition_with(code, &Tables::new());
    (disassembly, partition, Tables::new())
}

fn partition_with(code: &Code<'_>, tables: &Tables) -> (Disassembly, Partition) {
    let roots = code.observed.iter().chain(tables.values().flatten());
    let disassembly = Disassembly::new(code.bytes, code.range.start, roots.copied());
    let partition = partition(&disassembly, code.range.clone(), code.observed, tables, code.memory);
    (disassembly, partition)
}

/// The tables of all indirect jumps, given the current blocks.
fn find(
    code: &Code<'_>,
    disassembly: &Disassembly,
    partition: &Partition,
    optimistic: bool,
) -> Tables {
    let mut facts = InstructionInfoFactory::new();
    let effects: Vec<_> =
        disassembly.instructions.iter().map(|i| WriteSummary::of(i, &mut facts)).collect();
    let successors: Vec<_> = partition.blocks.iter().map(successors).collect();
    let predecessors = predecessors(&successors);
    let budget = STEPS_PER_INSTRUCTION * (disassembly.instructions.len() + 1000);
    let mut slicer = Slicer {
        disassembly,
        partition,
        predecessors: &predecessors,
        effects: &effects,
        budget,
        optimistic,
    };
    let mut tables = Tables::new();
    for block in 0..partition.blocks.len() {
        let last = &disassembly.instructions[partition.spans[block].end - 1];
        if last.flow_control() != FlowControl::IndirectBranch {
            continue;
        }
        let formulas = slicer.slice(block);
        if let Some(targets) = formulas.and_then(|f| targets(code, disassembly, &f)) {
            tables.insert(last.ip(), targets);
        }
    }
    tables
}

/// The successors of `block` within the function.
pub(super) fn successors(block: &BasicBlock) -> Vec<usize> {
    let inside = block.edges.iter().filter_map(|edge| match edge {
        Edge::Block(index) => Some(*index),
        Edge::Outside(_) => None,
    });
    inside.collect()
}

/// The targets that `formulas` evaluate to; `None` if one of them is impossible.
fn targets(code: &Code<'_>, disassembly: &Disassembly, formulas: &[Formula]) -> Option<Vec<u64>> {
    let mut targets = Vec::new();
    for formula in formulas {
        let most = formula.max_index.unwrap_or(0);
        if most >= MAX_ENTRIES {
            return None;
        }
        for index in 0..=most {
            let target =
                formula.target.evaluate(index, &mut |at, bytes| word(code.memory, at, bytes))?;
            if !is_possible(code, disassembly, formula, target) {
                return None;
            }
            targets.push(target);
        }
    }
    Some(targets)
}

fn word(memory: &dyn Memory, address: u64, bytes: u8) -> Option<u64> {
    let read = memory.read(address, usize::from(bytes))?;
    let mut word = [0; 8];
    word.get_mut(..read.len())?.copy_from_slice(&read);
    (read.len() == usize::from(bytes)).then(|| u64::from_le_bytes(word))
}

/// Whether `target` may be a jump target. If only the index's width or mask bounds it, the table may
/// be shorter and unrelated data follow it: then all targets must be in the function, or whole pointers.
fn is_possible(code: &Code<'_>, disassembly: &Disassembly, formula: &Formula, target: u64) -> bool {
    if !code.range.contains(&target) {
        let is_table = formula.max_index.is_some();
        let is_whole = matches!(formula.target, Value::Load(_, 8));
        return (formula.compared || is_whole || !is_table) && code.memory.is_code(target);
    }
    disassembly.index_of(target).is_some()
        || !disassembly.is_certain(target) && is_instruction(code, target)
}

/// Whether the bytes at `address` of the function decode as an instruction.
fn is_instruction(code: &Code<'_>, address: u64) -> bool {
    let offset = usize::try_from(address - code.range.start).unwrap_or(usize::MAX);
    let bytes = code.bytes.get(offset..).unwrap_or_default();
    !Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode().is_invalid()
}

/// Instructions visited for one jump.
const MAX_STEPS: usize = 20_000;
/// Most steps where no comparison is expected.
const WIDTH_STEPS: usize = 1000;
/// Visits of one block with different states: an index that grows in a loop would never converge.
const MAX_VISITS: u32 = 8;
/// Visits of one block after which no comparison is expected any more, and the index's width or mask is its bound.
const WIDTH_BOUND_VISITS: u32 = 2;

/// Registers that belong to the caller: rbx, rbp, r12 to r15 (System V ABI, AMD64, 3.2.1). A path from the
/// function's start on which the target depends on one is none: it goes through a call that does not return.
const PRESERVED: u16 = 0b1111_0000_0010_1000;

/// A jump target as a function of a bounded index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Formula {
    pub target: Value,
    /// Largest index; `None` for a fixed target.
    pub max_index: Option<u64>,
    /// Whether the bound comes from a comparison, not only from the index's width or mask.
    pub compared: bool,
}

/// The function that is sliced.
pub(super) struct Slicer<'a> {
    pub disassembly: &'a Disassembly,
    pub partition: &'a Partition,
    pub predecessors: &'a [Vec<usize>],
    pub effects: &'a [WriteSummary],
    /// Instructions that may still be visited in the whole function.
    pub budget: usize,
    /// Whether paths from blocks without predecessors are ignored, as long as jump tables that lead
    /// there may still be found.
    pub optimistic: bool,
}

impl Slicer<'_> {
    /// The target of the indirect jump that ends `block`, for each path that reaches it.
    pub fn slice(&mut self, block: usize) -> Option<Vec<Formula>> {
        let steps = MAX_STEPS.min(self.budget);
        let compared = self.paths(block, steps, WIDTH_BOUND_VISITS);
        compared.or_else(|| self.paths(block, WIDTH_STEPS, 0))
    }

    /// The paths in at most `steps` steps. The index's width or mask is its bound after `visits` of a block.
    fn paths(&mut self, block: usize, mut steps: usize, visits: u32) -> Option<Vec<Formula>> {
        let last = self.partition.spans[block].end.checked_sub(1)?;
        let state = State::new(&self.disassembly.instructions[last]);
        let mut formulas = Vec::new();
        let mut visited: HashMap<usize, u32> = HashMap::new();
        let mut seen = HashSet::new();
        let mut pending = vec![(block, state)];
        while let Some((block, mut state)) = pending.pop() {
            let span = self.partition.spans[block].clone();
            let times = visited.entry(block).or_default();
            *times += 1;
            if steps < span.len() || *times > MAX_VISITS {
                return None;
            }
            if *times > visits {
                state.bound_by_width();
            }
            steps -= span.len();
            self.budget = self.budget.saturating_sub(span.len());
            if self.pass(span, last, &mut state) {
                add(&mut formulas, state.clone())?;
                continue;
            }
            let predecessors = &self.predecessors[block];
            let is_start = block == 0 && state.target.registers() & PRESERVED == 0;
            if is_start || (predecessors.is_empty() && !self.may_ignore(&state)) {
                add(&mut formulas, state.clone())?;
            }
            for &from in predecessors {
                let mut before = state.clone();
                // No jump changes flags; what does is seen on the way.
                before.condition = self.condition(from, block).or(state.condition);
                if seen.insert((from, before.clone())) {
                    pending.push((from, before));
                }
            }
        }
        (!formulas.is_empty()).then_some(formulas)
    }

    /// Whether a path from a block without predecessors may be ignored. If not `optimistic`, only if
    /// the index is bounded and merely the table's address is missing: a landing pad inherits that
    /// register from the call that threw, which other paths set.
    fn may_ignore(&self, state: &State) -> bool {
        self.optimistic || state.max_index.is_some()
    }

    /// Steps back over a block; returns whether the state is closed.
    fn pass(&self, span: std::ops::Range<usize>, jump: usize, state: &mut State) -> bool {
        for index in span.rev() {
            if state.is_closed() {
                return true;
            }
            if index != jump {
                state.step(&self.disassembly.instructions[index], self.effects[index]);
            }
        }
        state.is_closed()
    }

    /// The condition that holds when control goes from the end of `from` to `to`.
    fn condition(&self, from: usize, to: usize) -> Option<ConditionCode> {
        let last = &self.disassembly.instructions[self.partition.spans[from].end - 1];
        let start = self.partition.blocks[to].start;
        if last.condition_code() == ConditionCode::None
            || direct_target(last) == Some(last.next_ip())
        {
            return None;
        }
        if start == last.next_ip() { negated(last) } else { Some(last.condition_code()) }
    }
}

fn negated(jump: &Instruction) -> Option<ConditionCode> {
    match jump.condition_code() {
        ConditionCode::a => Some(ConditionCode::be),
        ConditionCode::ae => Some(ConditionCode::b),
        ConditionCode::b => Some(ConditionCode::ae),
        ConditionCode::be => Some(ConditionCode::a),
        ConditionCode::ne => Some(ConditionCode::e),
        _ => None,
    }
}

/// Adds the formula at the end of a path; `None` if the target is not determined.
fn add(formulas: &mut Vec<Formula>, mut state: State) -> Option<()> {
    state.close();
    let State { target, max_index, compared, .. } = state;
    if target.contains(super::slice_state::is_opaque) {
        return None;
    }
    match formulas.iter_mut().find(|f| f.target == target) {
        Some(known) => {
            known.max_index = known.max_index.max(max_index);
            known.compared &= compared;
        }
        None => formulas.push(Formula { target, max_index, compared }),
    }
    Some(())
}
