//! From an indirect jump backwards, on every way that leads to it, until its target is a function
//! of a bounded index.
//!
//! Nothing is taken for granted that the code does not say: a way on which the index has no bound
//! or the table no fixed place makes the whole jump unresolved.

use super::cut::Cut;
use super::effects::Effects;
use super::state::State;
use super::sweep::{Sweep, direct_target};
use super::value::Value;
use iced_x86::{ConditionCode, Instruction};
use std::collections::{HashMap, HashSet};

/// Instructions looked at for one jump.
const MOST_STEPS: usize = 20_000;
/// Different states in which one block may be passed: an index that grows in a loop has no end.
const MOST_VISITS: u32 = 8;
/// So many that no comparison is to be expected any more.
const ENOUGH_VISITS: u32 = 2;

/// What a jump's target is computed as: a function of an index, and the most that may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Formula {
    pub target: Value,
    /// Largest index; `None` for a target that is fixed.
    pub most: Option<u64>,
    /// Whether a comparison says so, not only the index's width.
    pub compared: bool,
}

/// The function to slice in.
pub(super) struct Slicer<'a> {
    pub sweep: &'a Sweep,
    pub cut: &'a Cut,
    pub predecessors: &'a [Vec<usize>],
    pub effects: &'a [Effects],
    /// Instructions that may still be looked at in the whole function.
    pub budget: usize,
    /// Whether a way from a block that nothing leads to may be left out: while tables that lead
    /// there may still be found.
    pub hopeful: bool,
}

impl Slicer<'_> {
    /// What the indirect jump that ends `block` computes, on each way that leads to it.
    pub fn slice(&mut self, block: usize) -> Option<Vec<Formula>> {
        let last = self.cut.spans[block].end.checked_sub(1)?;
        let state = State::new(&self.sweep.instructions[last]);
        let mut formulas = Vec::new();
        let mut steps = MOST_STEPS.min(self.budget);
        let mut visits: HashMap<usize, u32> = HashMap::new();
        let mut seen = HashSet::new();
        let mut pending = vec![(block, state)];
        while let Some((block, mut state)) = pending.pop() {
            let span = self.cut.spans[block].clone();
            let visited = visits.entry(block).or_default();
            *visited += 1;
            if steps < span.len() || *visited > MOST_VISITS {
                return None;
            }
            if *visited > ENOUGH_VISITS {
                state.bound_by_form();
            }
            steps -= span.len();
            self.budget = self.budget.saturating_sub(span.len());
            if self.pass(span, last, &mut state) {
                add(&mut formulas, state.clone())?;
                continue;
            }
            let predecessors = &self.predecessors[block];
            if block == 0 || (predecessors.is_empty() && !self.may_ignore(&state)) {
                add(&mut formulas, state.clone())?;
            }
            for &from in predecessors {
                let mut before = state.clone();
                before.condition = self.condition(from, block);
                if seen.insert((from, before.clone())) {
                    pending.push((from, before));
                }
            }
        }
        (!formulas.is_empty()).then_some(formulas)
    }

    /// Whether a way may be left out that begins at a block that nothing leads to. In the end only
    /// if all that is missing is the table's place, in a register that other ways set: a landing
    /// pad finds it there as the call that threw left it.
    fn may_ignore(&self, state: &State) -> bool {
        self.hopeful || state.most.is_some()
    }

    /// Steps back over a block; whether nothing before matters any more.
    fn pass(&self, span: std::ops::Range<usize>, jump: usize, state: &mut State) -> bool {
        for index in span.rev() {
            if state.is_closed() {
                return true;
            }
            if index != jump {
                state.step(&self.sweep.instructions[index], self.effects[index]);
            }
        }
        state.is_closed()
    }

    /// What holds of the flags when control goes from the end of `from` to `to`.
    fn condition(&self, from: usize, to: usize) -> Option<ConditionCode> {
        let last = &self.sweep.instructions[self.cut.spans[from].end - 1];
        let start = self.cut.blocks[to].start;
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

/// Adds what is known at the end of a way; `None` if that is not enough.
fn add(formulas: &mut Vec<Formula>, mut state: State) -> Option<()> {
    state.give_up();
    let State { target, most, compared, .. } = state;
    if target.contains(super::state::is_opaque) {
        return None;
    }
    match formulas.iter_mut().find(|f| f.target == target) {
        Some(known) => {
            known.most = known.most.max(most);
            known.compared &= compared;
        }
        None => formulas.push(Formula { target, most, compared }),
    }
    Some(())
}
