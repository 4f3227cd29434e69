//! Checks of the timing: contention while the block ran, reproducibility, registers that the harness reinitialised,
//! and the steady state of unrolled code (copies nearer to the start must take as long as those of the headline).

use crate::harness::RequiredState;
use crate::initial::run_setup::RunSetup;
use crate::measurement::{Assumed, Assumption};
use crate::timer::Timer;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Copies, Repeat};
use isa::code::Block;
use tma::Result;
use tma::text::several;

/// Greatest difference of two numbers of copies in the steady state: share, and cycles per iteration.
const NEAR: (f64, f64) = (0.1, 0.02);
/// Repetitions of the copies after which a loop is in its steady state.
const SETTLED: u32 = 8;

/// Checks involuntary context switches: each lengthens one sample by more than a microsecond, which is
/// then rejected; too many leave too few samples.
pub fn context_switches(timed: &FormTiming) -> Assumption {
    let Some(count) = timed.switches else {
        return Assumed::ContextSwitches.unchecked("the kernel does not report them");
    };
    if timed.accepted == 0 {
        return Assumed::ContextSwitches.unchecked("no round was used");
    }
    let all = timed.accepted + timed.contended + timed.clock_changed;
    let mut how = format!(
        "{} of the worker, counted by the kernel",
        several(count, "involuntary context switch")
    );
    if count > 0 {
        how += &format!(
            " in {}; the affected rounds are a microsecond or more longer and are dropped",
            several(all, "round")
        );
    }
    how += "; switches by a hypervisor are not counted";
    Assumed::ContextSwitches.judged(count * 20 <= all as u64, how)
}

/// Checks contention from other processes and sibling threads, by the sentinel.
pub fn contention(timed: &FormTiming) -> Assumption {
    let all = timed.accepted + timed.contended + timed.clock_changed;
    let mut how = format!(
        "throughput sentinel before and after each round: {} of {all} dropped",
        timed.contended
    );
    if timed.accepted > 0 {
        how += "; around the others it exceeded its minimum by at most 4 % and one step of the \
                counter (the minimum is 2 to 8 % above its nominal cycles)";
    }
    Assumed::Contention.judged(timed.accepted > 0, how)
}

/// Checks that no register was reinitialised between copies.
pub fn own_registers(setup: &RunSetup) -> Assumption {
    if setup.reseeded.is_empty() {
        return Assumed::OwnRegisters.held("no register was reinitialised between copies");
    }
    let names = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
    let name = |r: &u8| names.get(usize::from(*r)).map_or(format!("r{r}"), |n| (*n).to_owned());
    let list: Vec<_> = setup.reseeded.iter().map(name).collect();
    let how = format!(
        "{} reinitialised before every copy because the previous copy overwrites it: one extra load \
         each, and its loop-carried dependencies are broken",
        list.join(", ")
    );
    Assumed::OwnRegisters.violated(how)
}

/// Checks how many batches were in the state of the headline; with only one pass, how far apart its
/// placements are.
pub fn reproducibility(timed: &FormTiming) -> Assumption {
    let name = Assumed::Reproducibility;
    let (long, short) = timed.agreeing();
    let all = timed.batches.len();
    let (low, high) = timed.batch_range().unwrap_or((f64::NAN, f64::NAN));
    match timed.passes {
        0 => name.unchecked("no pass was accepted"),
        1 if all < 2 => name.unchecked("only one pass of one placement"),
        1 => {
            let how = format!(
                "one pass only: its {all} placements range from {low:.3} to {high:.3} cycles; passes \
                 at other times were not compared"
            );
            let (low, high) = timed.cycles().map_or((low, high), |c| (low.min(c), high.max(c)));
            name.judged(high - low <= (0.04 * low).max(0.03), how)
        }
        passes if long == 0 => {
            let how = format!(
                "no two of {all} groups agree in {} at different times; groups range from {low:.3} to \
                 {high:.3} cycles",
                several(passes, "pass")
            );
            name.judged(timed.is_reproduced(), how)
        }
        passes => {
            let how = format!(
                "{long} (long run) and {short} (short run) of {} in {} at different times agree on the \
                 fastest state; groups range from {low:.3} to {high:.3} cycles",
                several(all, "group"),
                several(passes, "pass")
            );
            name.judged(timed.is_reproduced(), how)
        }
    }
}

impl Timer {
    fn has_comparison(&self, copies: usize) -> bool {
        self.options.passes > 1 && self.options.two_factors && copies >= 4
    }

    /// Checks the assumption `steady-state`. Copies repeated often enough need no run of another length.
    pub(crate) fn steady_state(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
        copies: Copies,
        timed: &FormTiming,
    ) -> Result<Assumption> {
        const NAME: Assumed = Assumed::SteadyState;
        let Copies { number, how, repeat } = copies;
        if matches!(how, Repeat::Counted(_)) && repeat >= SETTLED {
            let how = format!("the copies repeat {} without a fence", several(repeat, "time"));
            return Ok(NAME.held(how));
        }
        let fewer = 3 * number / 4;
        let Some(cycles) = timed.cycles().filter(|_| self.has_comparison(fewer)) else {
            let how = "not measured with another number of copies";
            return Ok(NAME.unchecked(how));
        };
        let copies = Copies { number: fewer, ..copies };
        let form = measure::unrolled(block, required_state, setup, copies, &[0, 32, 16]);
        let mut other = FormTiming::default();
        let failed = self.timed(&form, 1, self.options.rounds, &mut other)?.is_some();
        let Some(there) = other.cycles().filter(|_| !failed && other.is_reproduced()) else {
            let how = format!("{fewer} copies gave no reproducible time");
            return Ok(NAME.unchecked(how));
        };
        let held = (there - cycles).abs() <= (NEAR.0 * cycles).max(NEAR.1);
        let how = format!(
            "the second half of {number} copies takes {cycles:.3} cycles each, that of {fewer} copies \
             {there:.3}"
        );
        Ok(NAME.judged(held, how))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Outcome;
    use crate::timing::form_timing::Batch;

    fn timed(passes: usize, batches: &[f64]) -> FormTiming {
        let of = |cycles: f64| vec![1000.0 * cycles; 4];
        let batch = |cycles: &f64| Batch { placement: 0, long: of(1.0 + cycles), short: of(1.0) };
        let batches = batches.iter().map(batch).collect();
        FormTiming { between: 1000.0, passes, batches, accepted: 100, ..FormTiming::default() }
    }

    #[test]
    fn one_pass_is_checked_by_its_placements() {
        let one = reproducibility(&timed(1, &[3.99, 4.01]));
        assert_eq!(one.outcome, Outcome::Held);
        assert!(one.how.contains("one pass only"), "{}", one.how);
        assert_eq!(reproducibility(&timed(1, &[3.0, 5.0])).outcome, Outcome::Violated);
        assert_eq!(reproducibility(&timed(1, &[4.0])).outcome, Outcome::Unchecked);
        assert_eq!(reproducibility(&timed(0, &[])).outcome, Outcome::Unchecked);
        // Three of four batches agree.
        let three = reproducibility(&timed(2, &[4.0, 4.001, 4.002, 5.0]));
        assert_eq!(three.outcome, Outcome::Held, "{}", three.how);
        assert!(three.how.contains("3 (long run)") && three.how.contains("5.000"), "{}", three.how);
        assert_eq!(reproducibility(&timed(2, &[1.0, 2.0, 3.0, 4.0])).outcome, Outcome::Violated);
    }

    #[test]
    fn few_switches_are_tolerated_and_many_are_not() {
        let of = |count| {
            let timed = FormTiming { switches: Some(count), ..timed(1, &[4.0]) };
            context_switches(&timed).outcome
        };
        assert_eq!((of(0), of(5), of(6)), (Outcome::Held, Outcome::Held, Outcome::Violated));
        assert_eq!(context_switches(&timed(0, &[])).outcome, Outcome::Unchecked);
    }
}
