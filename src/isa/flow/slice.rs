//! Backward slice from an indirect jump along every path that reaches it, until the target is a
//! function of a bounded index.
//!
//! The slice is conservative: if the index has no bound or the table no fixed address on any path, the
//! jump stays unresolved.

use super::disassembly::{Disassembly, direct_target};
use super::partition::Partition;
use super::slice_state::State;
use super::transfer::WriteSummary;
use super::value::Value;
use iced_x86::{ConditionCode, Instruction};
use std::collections::{HashMap, HashSet};

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
