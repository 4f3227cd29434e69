//! The core while the block ran, whether its time reproduces, and what the harness did to it.

use super::super::discover::Found;
use super::super::document::{Holds, Invariant};
use super::super::measure::Timed;
use super::{invariant, verdict};

/// A switch makes the sample it hits longer by more than a microsecond, so that the sample is cut
/// off; many of them leave too little.
pub fn context_switches(timed: &Timed, switches: Option<u64>) -> Invariant {
    let Some(count) = switches else {
        return invariant("context-switches", Holds::Unchecked, "the kernel does not tell");
    };
    if timed.kept == 0 {
        return invariant("context-switches", Holds::Unchecked, "no sample was kept");
    }
    let mut how = format!("{count} involuntary switches of the worker by the kernel's count");
    if count > 0 {
        how += &format!(
            " in {} samples; one that a switch hits is longer by a microsecond or more and is cut",
            timed.kept
        );
    }
    how += "; a hypervisor's switches are not seen";
    invariant("context-switches", verdict(count * 20 <= timed.kept as u64), how)
}

/// The sentinel.
pub fn neighbour(timed: &Timed) -> Invariant {
    let all = timed.kept + timed.contended;
    let mut how = format!(
        "throughput sentinel before and behind every sample: {} of {all} dropped",
        timed.contended
    );
    if timed.kept > 0 {
        how += "; around the others it took what it takes on a core to itself, within 6 %";
    }
    invariant("neighbour", verdict(timed.kept > 0), how)
}

/// Registers set between copies.
pub fn own_registers(found: &Found) -> Invariant {
    if found.reseeded.is_empty() {
        return invariant("own-registers", Holds::Held, "no register was set between copies");
    }
    let names = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
    let name = |r: &u8| names.get(usize::from(*r)).map_or(format!("r{r}"), |n| (*n).to_owned());
    let list: Vec<_> = found.reseeded.iter().map(name).collect();
    let how = format!(
        "{} set again before every copy, since the copy before overwrites it: one more load each, \
         and dependencies through it are cut",
        list.join(", ")
    );
    invariant("own-registers", Holds::Violated, how)
}

/// Passes apart in time; with one pass only, its placements.
pub fn reproducibility(timed: &Timed) -> Invariant {
    let name = "reproducibility";
    let Some((low, high)) = timed.range() else {
        return invariant(name, Holds::Unchecked, "no pass was kept");
    };
    let count = timed.passes.len();
    if count > 1 {
        let how = format!("{count} passes, apart in time, between {low:.3} and {high:.3} cycles");
        return invariant(name, verdict(timed.is_reproduced()), how);
    }
    let placements = Timed { passes: timed.batches.clone(), ..Timed::default() };
    match placements.range() {
        Some((low, high)) if timed.batches.len() > 1 => {
            let how = format!(
                "one pass only: its {} placements lie between {low:.3} and {high:.3} cycles; other \
                 times were not compared",
                timed.batches.len()
            );
            invariant(name, verdict(placements.is_reproduced()), how)
        }
        _ => invariant(name, Holds::Unchecked, "one pass of one placement only"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(passes: &[f64], batches: &[f64]) -> Timed {
        Timed { passes: passes.to_vec(), batches: batches.to_vec(), kept: 100, ..Timed::default() }
    }

    #[test]
    fn one_pass_is_judged_by_its_placements_and_says_so() {
        let one = reproducibility(&timed(&[4.0], &[3.99, 4.01]));
        assert_eq!(one.verdict, Holds::Held);
        assert!(one.how.contains("one pass only"), "{}", one.how);
        assert_eq!(reproducibility(&timed(&[4.0], &[3.0, 5.0])).verdict, Holds::Violated);
        assert_eq!(reproducibility(&timed(&[4.0], &[4.0])).verdict, Holds::Unchecked);
        let three = reproducibility(&timed(&[4.0, 4.01, 4.02], &[3.0, 5.0]));
        assert_eq!(three.verdict, Holds::Held);
        assert!(three.how.contains("4.000 and 4.020"), "{}", three.how);
        assert_eq!(reproducibility(&timed(&[], &[])).verdict, Holds::Unchecked);
    }

    #[test]
    fn few_switches_are_cut_with_their_samples_and_many_are_not() {
        let of = |count| context_switches(&timed(&[4.0], &[4.0]), Some(count)).verdict;
        assert_eq!((of(0), of(5), of(6)), (Holds::Held, Holds::Held, Holds::Violated));
        assert_eq!(context_switches(&timed(&[], &[]), None).verdict, Holds::Unchecked);
    }
}
