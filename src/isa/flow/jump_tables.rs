//! Jump tables: evaluates the sliced targets of indirect jumps on the program's memory and checks
//! them against the function.

use super::disassembly::Disassembly;
use super::dominators::predecessors;
use super::graph::{BasicBlock, Edge};
use super::memory::Memory;
use super::partition::{Partition, Tables, partition};
use super::slice::{Formula, Slicer};
use super::transfer::WriteSummary;
use super::value::Value;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory};
use std::ops::Range;

/// Largest number of entries of a table.
const MAX_ENTRIES: u64 = 1 << 14;
/// Iterations of partitioning and table resolution.
const MAX_ROUNDS: usize = 5;
/// Instructions that slices may visit, per instruction of the function.
const STEPS_PER_INSTRUCTION: usize = 100;

/// The code of a function.
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
