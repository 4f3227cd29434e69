//! Jump tables: what a slice says about an indirect jump, read from the program's memory and
//! checked against the function.

use super::cut::{Cut, Tables, cut};
use super::dominators::predecessors;
use super::effects::Effects;
use super::graph::{BasicBlock, Edge};
use super::memory::Memory;
use super::slice::{Formula, Slicer};
use super::sweep::Sweep;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory};
use std::ops::Range;

/// Entries of a table.
const MOST_ENTRIES: u64 = 1 << 14;
/// How often the blocks are cut anew, with the tables found before.
const MOST_ROUNDS: usize = 5;
/// Instructions that slices may look at, for each of the function's.
const STEPS_PER_INSTRUCTION: usize = 100;

/// The code of a function.
pub(super) struct Code<'a> {
    pub bytes: &'a [u8],
    pub range: Range<u64>,
    pub observed: &'a [u64],
    pub memory: &'a dyn Memory,
}

/// Decodes and cuts a function, with all jump tables that can be resolved.
///
/// Tables lead to code that holds other tables, and show ways to the jumps already seen. So first
/// the ways that are missing are hoped to make no difference, until nothing new is found; then each
/// table must hold with all the ways there are.
pub(super) fn resolve(code: &Code<'_>) -> (Sweep, Cut, Tables) {
    let mut tables = Tables::new();
    let (mut sweep, mut cut) = cut_with(code, &tables);
    if !sweep.instructions.iter().any(|i| i.flow_control() == FlowControl::IndirectBranch) {
        return (sweep, cut, tables);
    }
    for _ in 0..MOST_ROUNDS {
        let found = find(code, &sweep, &cut, true);
        if found == tables {
            break;
        }
        tables = found;
        (sweep, cut) = cut_with(code, &tables);
    }
    for _ in 0..MOST_ROUNDS {
        let mut sure = find(code, &sweep, &cut, false);
        sure.retain(|jump, targets| tables.get(jump) == Some(targets));
        if sure == tables {
            return (sweep, cut, tables);
        }
        tables = sure;
        (sweep, cut) = cut_with(code, &tables);
    }
    let (sweep, cut) = cut_with(code, &Tables::new());
    (sweep, cut, Tables::new())
}

fn cut_with(code: &Code<'_>, tables: &Tables) -> (Sweep, Cut) {
    let roots = code.observed.iter().chain(tables.values().flatten());
    let sweep = Sweep::new(code.bytes, code.range.start, roots.copied());
    let cut = cut(&sweep, code.range.clone(), code.observed, tables, code.memory);
    (sweep, cut)
}

/// The tables of all indirect jumps, given the blocks as they are known.
fn find(code: &Code<'_>, sweep: &Sweep, cut: &Cut, hopeful: bool) -> Tables {
    let mut facts = InstructionInfoFactory::new();
    let effects: Vec<_> = sweep.instructions.iter().map(|i| Effects::of(i, &mut facts)).collect();
    let successors: Vec<_> = cut.blocks.iter().map(successors).collect();
    let predecessors = predecessors(&successors);
    let budget = STEPS_PER_INSTRUCTION * (sweep.instructions.len() + 1000);
    let mut slicer =
        Slicer { sweep, cut, predecessors: &predecessors, effects: &effects, budget, hopeful };
    let mut tables = Tables::new();
    for block in 0..cut.blocks.len() {
        let last = &sweep.instructions[cut.spans[block].end - 1];
        if last.flow_control() != FlowControl::IndirectBranch {
            continue;
        }
        let formulas = slicer.slice(block);
        if let Some(targets) = formulas.and_then(|f| targets(code, sweep, &f)) {
            tables.insert(last.ip(), targets);
        }
    }
    tables
}

/// The blocks that `block` may go on to.
pub(super) fn successors(block: &BasicBlock) -> Vec<usize> {
    let inside = block.edges.iter().filter_map(|edge| match edge {
        Edge::Block(index) => Some(*index),
        Edge::Outside(_) => None,
    });
    inside.collect()
}

/// The targets that `formulas` give; `None` if one of them cannot be.
fn targets(code: &Code<'_>, sweep: &Sweep, formulas: &[Formula]) -> Option<Vec<u64>> {
    let mut targets = Vec::new();
    for formula in formulas {
        let most = formula.most.unwrap_or(0);
        if most >= MOST_ENTRIES {
            return None;
        }
        for index in 0..=most {
            let target =
                formula.target.evaluate(index, &mut |at, bytes| word(code.memory, at, bytes))?;
            if !is_possible(code, sweep, formula, target) {
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

/// Whether `target` may be where a jump goes. An index that only its width bounds may run beyond
/// its table, into what happens to lie there: then all targets must lie in the function.
fn is_possible(code: &Code<'_>, sweep: &Sweep, formula: &Formula, target: u64) -> bool {
    if !code.range.contains(&target) {
        let is_table = formula.most.is_some();
        return (formula.compared || !is_table) && code.memory.is_code(target);
    }
    sweep.index_of(target).is_some() || !sweep.is_certain(target) && is_instruction(code, target)
}

/// Whether the bytes at `address` of the function could be an instruction.
fn is_instruction(code: &Code<'_>, address: u64) -> bool {
    let offset = usize::try_from(address - code.range.start).unwrap_or(usize::MAX);
    let bytes = code.bytes.get(offset..).unwrap_or_default();
    !Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode().is_invalid()
}
