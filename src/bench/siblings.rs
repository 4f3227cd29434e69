//! Tells processors of one core apart by measurement: the topology that a virtual machine shows need not be
//! that of its host, where two of its processors may be threads of one core.
//!
//! The sentinel fills every issue slot of a core. If it takes longer while another processor is busy, and only
//! then, the two share a core.

use crate::runner::Runner;
use crate::sandbox::pin_to;
use pmu::machine::{Root, Topology};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tma::Core;

/// Trials with the other processors idle and busy, in turn.
const TRIALS: usize = 8;
/// Rounds of the sentinel in each.
const ROUNDS: usize = 16;
/// For so long the self-test may be repeated.
const PATIENCE: Duration = Duration::from_millis(100);
/// Least share of rounds without contention in most trials beside idle processors, and the greatest in most
/// trials beside busy ones.
const SHARES: (f64, f64) = (0.75, 0.25);

/// Of `cpus`, which the topology says are cores, those that no earlier one slows down. A few milliseconds
/// each; none where the topology shows sibling threads, so that it is that of the machine.
pub fn apart(cpus: Vec<usize>, core: &Arc<Core>) -> Vec<usize> {
    if cpus.len() < 2 || Topology::read(&Root::system()).smt {
        return cpus;
    }
    let mut kept: Vec<usize> = Vec::new();
    for cpu in cpus {
        if kept.is_empty() || !is_slowed(cpu, &kept, core) {
            kept.push(cpu);
        }
    }
    kept
}

/// Whether work on `others` slows `cpu`. A sandbox that cannot be started is reported by the first block.
fn is_slowed(cpu: usize, others: &[usize], core: &Arc<Core>) -> bool {
    std::thread::scope(|scope| {
        // A thread of its own, which stays on the processor.
        let measured = scope.spawn(|| {
            let mut runner = Runner::new(core.clone(), Some(cpu), false);
            runner.pin_to_worker_cpu();
            // A narrow sentinel does not see siblings.
            runner.select_sentinel(PATIENCE).ok().filter(|sees| *sees)?;
            let mut trials = Vec::new();
            for _ in 0..TRIALS {
                let idle = runner.uncontended_share(ROUNDS).ok()?;
                let busy = beside(others, || runner.uncontended_share(ROUNDS)).ok()?;
                trials.push((idle, busy));
            }
            Some(shows_siblings(&trials))
        });
        measured.join().ok().flatten().unwrap_or(false)
    })
}

/// What `measure` returns while `others` are busy.
fn beside<T>(others: &[usize], measure: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let started: Vec<AtomicBool> = others.iter().map(|_| AtomicBool::new(false)).collect();
        let started = Arc::new(started);
        for (i, cpu) in others.iter().enumerate() {
            let (started, done) = (started.clone(), &done);
            scope.spawn(move || {
                pin_to(*cpu);
                started[i].store(true, Ordering::SeqCst);
                let mut sums = [1u64; 4];
                while !done.load(Ordering::Relaxed) {
                    for (i, sum) in sums.iter_mut().enumerate() {
                        *sum = std::hint::black_box(sum.wrapping_add(i as u64));
                    }
                }
            });
        }
        while !started.iter().all(|one| one.load(Ordering::SeqCst)) {
            std::thread::yield_now();
        }
        let measured = measure();
        done.store(true, Ordering::Relaxed);
        measured
    })
}

/// Whether shares of uncontended rounds, beside idle and beside busy processors, are those of siblings. A
/// neighbour outside the virtual machine takes part of both.
fn shows_siblings(trials: &[(f64, f64)]) -> bool {
    let most = |count: usize| 4 * count >= 3 * trials.len();
    most(trials.iter().filter(|(idle, _)| *idle >= SHARES.0).count())
        && most(trials.iter().filter(|(_, busy)| *busy <= SHARES.1).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_slow_each_other_only_while_both_work() {
        assert!(shows_siblings(&[(1.0, 0.0); 8]));
        // Cores of their own, and a neighbour that nobody of us is.
        assert!(!shows_siblings(&[(1.0, 1.0); 8]) && !shows_siblings(&[(0.0, 0.0); 8]));
        // Seldom disturbed.
        let mut trials = [(1.0, 0.1); 8];
        (trials[2], trials[5]) = ((0.3, 0.0), (0.9, 0.6));
        assert!(shows_siblings(&trials));
        trials[6] = (0.2, 0.7);
        trials[7] = (0.2, 0.7);
        assert!(!shows_siblings(&trials));
    }
}
