//! Values with which the loop leaves after a chosen number of iterations.

use super::arrays::Known;
use iced_x86::ConditionCode;
use isa::flow::{Exit, Iteration, Linear, Loaded, Term};

/// The register or memory that ends the loop.
#[derive(Debug, Clone)]
pub(super) enum Control {
    /// The initial value of a register, a multiple of which is part of the difference.
    Register(u8, i64),
    /// A loaded value that never changes.
    Cell(Loaded, i64),
    /// The element that an iteration loads.
    Element(Loaded, i64),
}

/// The change of the difference in one iteration, if it is fixed.
fn step(iteration: &Iteration, difference: &Linear) -> Option<i64> {
    let steps = difference.registers().map(|(r, factor)| Some(factor * iteration.step(r)?));
    steps.sum()
}

fn is_fixed(iteration: &Iteration, address: &Linear) -> bool {
    address.terms.iter().all(|(term, _)| match term {
        Term::Register(r) => iteration.step(*r) == Some(0),
        _ => false,
    })
}

/// The value to set so that the loop ends, and no earlier: a bound rather than a counter; an index or pointer only
/// as a last resort.
pub(super) fn control(iteration: &Iteration, exit: &Exit, pointers: &[u8]) -> Option<Control> {
    let mut loaded = exit.difference.terms.iter().filter_map(|(term, factor)| match term {
        Term::Loaded(loaded) if factor.abs() == 1 => Some(((**loaded).clone(), *factor)),
        _ => None,
    });
    let unknown = |(term, _): &(Term, i64)| matches!(term, Term::Unknown { .. });
    if exit.difference.terms.iter().any(unknown) {
        return None;
    }
    if let Some((loaded, factor)) = loaded.next() {
        let moving = step(iteration, &exit.difference).is_some_and(|step| step != 0);
        return match (is_fixed(iteration, &loaded.address), moving) {
            (true, true) => Some(Control::Cell(loaded, factor)),
            (false, false) => Some(Control::Element(loaded, factor)),
            _ => None,
        };
    }
    step(iteration, &exit.difference).filter(|step| *step != 0)?;
    let unit = exit.difference.registers().filter(|(_, factor)| factor.abs() == 1);
    let rank = |register: u8| {
        let fixed = iteration.step(register) == Some(0);
        (pointers.contains(&register), !fixed)
    };
    unit.min_by_key(|(register, _)| rank(*register)).map(|(r, factor)| Control::Register(r, factor))
}

/// The first value of the difference, such that it leaves after `iterations` and no earlier; `None`
/// where the condition never fails by counting.
fn first_difference(step: i64, again: ConditionCode, iterations: usize) -> Option<i64> {
    use ConditionCode as C;
    let last = match again {
        C::ne => 0,
        C::l | C::b | C::s if step > 0 => 0,
        C::le | C::be if step > 0 => 1,
        C::g | C::a if step < 0 => 0,
        C::ge | C::ae | C::ns if step < 0 => -1,
        _ => return None,
    };
    Some(last - step * (iterations as i64 - 1))
}

impl Control {
    /// The value of the controlling register or cell with which the loop runs so long.
    pub(super) fn value(
        &self,
        iteration: &Iteration,
        exit: &Exit,
        known: &Known,
        iterations: usize,
    ) -> Option<i64> {
        let step = step(iteration, &exit.difference)?;
        let wanted = first_difference(step, exit.again, iterations)?;
        let (own, factor) = match self {
            Self::Register(register, factor) => (Some(*register), *factor),
            Self::Cell(_, factor) => (None, *factor),
            Self::Element(..) => return None,
        };
        let others: i64 = exit
            .difference
            .registers()
            .filter(|(r, _)| Some(*r) != own)
            .map(|(r, factor)| known.register(r).wrapping_mul(factor))
            .fold(exit.difference.constant, i64::wrapping_add);
        // The factor is 1 or -1.
        Some(wanted.wrapping_sub(others).wrapping_mul(factor))
    }
}

/// Values of the elements that continue the loop, and of the last one, for a difference of `factor` times the
/// element and `rest`.
pub(super) fn elements(again: ConditionCode, factor: i64, rest: i64) -> Option<(i64, i64)> {
    use ConditionCode as C;
    let equal = rest.wrapping_mul(-factor);
    let (less, more) = (equal - factor, equal + factor);
    Some(match again {
        C::ne => (more, equal),
        C::e => (equal, more),
        C::l | C::b | C::s => (less, more),
        C::le | C::be => (less, more),
        C::g | C::a | C::ge | C::ae | C::ns => (more, less),
        _ => return None,
    })
}

/// The content of elements that end a loop: the usual one and the last.
pub(super) fn element_values(
    iteration: &Iteration,
    known: &Known,
    factor: i64,
) -> Option<(i64, i64)> {
    let exit = iteration.exit.as_ref()?;
    let registers = exit.difference.registers().map(|(r, f)| known.register(r).wrapping_mul(f));
    let rest = registers.fold(exit.difference.constant, i64::wrapping_add);
    elements(exit.again, factor, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the difference starts at `first` and grows by `step` until the condition fails.
    #[test]
    fn a_difference_leaves_after_as_many_iterations() {
        use ConditionCode as C;
        let holds = |again: C, d: i64| match again {
            C::ne => d != 0,
            C::l | C::b | C::s => d < 0,
            C::le | C::be => d <= 0,
            C::g | C::a => d > 0,
            _ => d >= 0,
        };
        let up = [(C::ne, 4), (C::l, 3), (C::b, 1), (C::le, 5), (C::be, 1)];
        let down = [(C::ne, -4), (C::g, -3), (C::a, -1), (C::ge, -5), (C::ns, -1)];
        for (again, step) in up.into_iter().chain(down) {
            let mut difference = first_difference(step, again, 100).unwrap();
            let mut iterations = 1;
            while holds(again, difference) {
                difference += step;
                iterations += 1;
            }
            assert_eq!(iterations, 100, "{again:?} {step}");
        }
        assert_eq!(first_difference(1, C::g, 100), None);
    }
}
