//! Register values as far as they are planned, and forms evaluated with them.

use isa::flow::{Iteration, Linear, Term};

/// Registers planned so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    values: [i64; 16],
}

impl Known {
    pub(super) fn register(&self, number: u8) -> i64 {
        self.values[usize::from(number)]
    }

    pub(super) fn set(&mut self, number: u8, value: i64) {
        self.values[usize::from(number)] = value;
    }
}

/// The value of a form in iteration `number`, from 0; `None` where it depends on more than registers that
/// change by a fixed amount.
pub(super) fn at(
    iteration: &Iteration,
    form: &Linear,
    known: &Known,
    number: usize,
) -> Option<i64> {
    let mut sum = form.constant;
    for (term, factor) in &form.terms {
        let Term::Register(register) = term else { return None };
        let step = iteration.step(*register)?;
        let now = known.register(*register).wrapping_add(step * number as i64);
        sum = sum.wrapping_add(now.wrapping_mul(*factor));
    }
    Some(sum)
}
