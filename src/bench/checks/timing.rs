//! The core while the block ran, whether its time reproduces, and what the harness did to it.

use super::common::{assumption, outcome};
use crate::initial::run_setup::Found;
use crate::measurement::{Assumption, Outcome};
use crate::timing::form_timing::FormTiming;

/// A switch makes the sample it hits longer by more than a microsecond, so that the sample is cut
/// off; many of them leave too little.
pub fn context_switches(timed: &FormTiming) -> Assumption {
    let Some(count) = timed.switches else {
        return assumption("context-switches", Outcome::Unchecked, "the kernel does not tell");
    };
    if timed.kept == 0 {
        return assumption("context-switches", Outcome::Unchecked, "no sample was kept");
    }
    let all = timed.kept + timed.contended + timed.changed;
    let mut how = format!("{count} involuntary switches of the worker by the kernel's count");
    if count > 0 {
        how += &format!(
            " in {all} samples; one that a switch hits is longer by a microsecond or more and is cut"
        );
    }
    how += "; a hypervisor's switches are not seen";
    assumption("context-switches", outcome(count * 20 <= all as u64), how)
}

/// The sentinel.
pub fn neighbour(timed: &FormTiming) -> Assumption {
    let all = timed.kept + timed.contended + timed.changed;
    let mut how = format!(
        "throughput sentinel before and behind the samples: {} of {all} dropped for it",
        timed.contended
    );
    if timed.kept > 0 {
        how += "; around the others it took at most 4 % and a step of the counter more than the \
                least it was seen to take, which is taken to be 2 to 8 % above its known cycles";
    }
    assumption("neighbour", outcome(timed.kept > 0), how)
}

/// Registers set between copies.
pub fn own_registers(found: &Found) -> Assumption {
    if found.reseeded.is_empty() {
        return assumption("own-registers", Outcome::Held, "no register was set between copies");
    }
    let names = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
    let name = |r: &u8| names.get(usize::from(*r)).map_or(format!("r{r}"), |n| (*n).to_owned());
    let list: Vec<_> = found.reseeded.iter().map(name).collect();
    let how = format!(
        "{} set again before every copy, since the copy before overwrites it: one more load each, \
         and dependencies through it are cut",
        list.join(", ")
    );
    assumption("own-registers", Outcome::Violated, how)
}

/// How many batches met the state that the headline is taken from; with one pass only, how far
/// apart its placements are.
pub fn reproducibility(timed: &FormTiming) -> Assumption {
    let name = "reproducibility";
    let (long, short) = timed.agreeing();
    let all = timed.batches.len();
    let (low, high) = timed.batch_range().unwrap_or((f64::NAN, f64::NAN));
    match timed.passes {
        0 => assumption(name, Outcome::Unchecked, "no pass was kept"),
        1 if all < 2 => assumption(name, Outcome::Unchecked, "one pass of one placement only"),
        1 => {
            let how = format!(
                "one pass only: its {all} placements lie between {low:.3} and {high:.3} cycles; \
                 other times were not compared"
            );
            let (low, high) = timed.cycles().map_or((low, high), |c| (low.min(c), high.max(c)));
            assumption(name, outcome(high - low <= (0.04 * low).max(0.03)), how)
        }
        passes if long == 0 => {
            let how = format!(
                "no state was met by several of {all} batches in {passes} passes, apart in time; \
                 batches lie between {low:.3} and {high:.3} cycles"
            );
            assumption(name, outcome(timed.is_reproduced()), how)
        }
        passes => {
            let how = format!(
                "the fastest state was met by {long} (long run) and {short} (short run) of {all} \
                 batches in {passes} passes, apart in time; batches lie between {low:.3} and \
                 {high:.3} cycles"
            );
            assumption(name, outcome(timed.is_reproduced()), how)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::form_timing::Batch;

    fn timed(passes: usize, batches: &[f64]) -> FormTiming {
        let of = |cycles: f64| vec![1000.0 * cycles; 4];
        let batch = |cycles: &f64| Batch { long: of(1.0 + cycles), short: of(1.0) };
        let batches = batches.iter().map(batch).collect();
        FormTiming { between: 1000.0, passes, batches, kept: 100, ..FormTiming::default() }
    }

    #[test]
    fn one_pass_is_judged_by_its_placements_and_says_so() {
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
    fn few_switches_are_cut_with_their_samples_and_many_are_not() {
        let of = |count| {
            let timed = FormTiming { switches: Some(count), ..timed(1, &[4.0]) };
            context_switches(&timed).outcome
        };
        assert_eq!((of(0), of(5), of(6)), (Outcome::Held, Outcome::Held, Outcome::Violated));
        assert_eq!(context_switches(&timed(0, &[])).outcome, Outcome::Unchecked);
    }
}
