//! A live process counted for a while: analysed as it runs, then stopped and patched.

use super::counting::Counting;
use super::request::Counts;
use super::result::{self, Run};
use crate::patch::{Patcher, Prepared, Target, Wanted, Work, prepared, targets_with};
use crate::process::{Living, watch};
use pmu::perf::Signals;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// How often it is planned anew because the process has changed meanwhile.
const MOST_PLANS: usize = 5;
/// Time between two looks at the analysis.
const POLL: Duration = Duration::from_millis(2);
/// So often progress is shown, and it is looked whether the process is still there.
const SHOWN: Duration = Duration::from_millis(50);

/// Steps of the analysis before a live process is stopped: those done, and all.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// What is known before the process is stopped.
struct Plan {
    targets: Vec<Target>,
    probes: Counting,
    prepared: Vec<Option<std::result::Result<Prepared<Counting>, String>>>,
}

/// Counts the blocks of these functions in process `pid`, and in the processes that it forks, for
/// `window`. Its code is as it was afterwards; trampolines and counters stay mapped in it, since what it
/// has interrupted may continue there. It runs on, and is not traced, until everything is planned.
///
/// # Errors
/// The process cannot be traced or stopped, or has ended before.
pub fn count_process(
    pid: i32,
    wanted: &[Wanted],
    window: Duration,
    signals: &Signals,
    progress: Progress<'_>,
) -> Result<Counts> {
    let living = Living::find(pid)?;
    let mut targets = None;
    for _ in 0..MOST_PLANS {
        let work = Arc::new(Work::default());
        let planning = start(living, wanted.to_vec(), targets.take(), Arc::clone(&work));
        let plan = match planned(&living, planning, (&work, wanted.len()), signals, progress)? {
            Ok(plan) => plan,
            Err(signal) => return Ok(interrupted(wanted, signal)),
        };
        match traced(&living, plan, wanted, window, signals)? {
            Ok(counts) => return Ok(counts),
            Err(unused) => targets = Some(unused),
        }
    }
    Err(Error::not_possible(format!("process {pid} cannot be counted now"))
        .because("its code or its mappings change all the time")
        .hint("try again, or count from its start: tdtool count -- COMMAND"))
}

/// Begins to plan in another thread. The facts of `known` targets are not asked for again.
fn start(
    living: Living,
    wanted: Vec<Wanted>,
    known: Option<Vec<Target>>,
    work: Arc<Work>,
) -> JoinHandle<Plan> {
    std::thread::spawn(move || {
        let probes = Counting::new(true);
        let targets = known.unwrap_or_else(|| targets_with(&wanted, &[], &work));
        let prepared = match living.thread() {
            Some(tid) => prepared(&probes, &targets, tid, &work),
            None => Vec::new(),
        };
        Plan { targets, probes, prepared }
    })
}

/// Waits for the plan; the signal that interrupted it, if one did.
fn planned(
    living: &Living,
    planning: JoinHandle<Plan>,
    (work, functions): (&Work, usize),
    signals: &Signals,
    progress: Progress<'_>,
) -> Result<std::result::Result<Plan, i32>> {
    let all = 2 * functions;
    progress(0, all);
    let mut shown = Instant::now();
    while !planning.is_finished() {
        if let Some((signal, _)) = signals.next() {
            work.cancel();
            progress(all, all);
            return Ok(Err(signal));
        }
        if shown.elapsed() > SHOWN {
            shown = Instant::now();
            if living.thread().is_none() {
                work.cancel();
                progress(all, all);
                return Err(living.ended("while its code was analysed"));
            }
            progress(work.done().min(all), all);
        }
        std::thread::sleep(POLL);
    }
    progress(all, all);
    match planning.join() {
        Ok(plan) => Ok(Ok(plan)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Counts; the targets if nothing was done since the process is not as it was.
fn traced(
    living: &Living,
    plan: Plan,
    wanted: &[Wanted],
    window: Duration,
    signals: &Signals,
) -> Result<std::result::Result<Counts, Vec<Target>>> {
    let count = || {
        let mut patcher = Patcher::live(plan.probes, plan.targets, plan.prepared);
        Ok(match watch(living, &mut patcher, window, signals)? {
            None => Err(patcher.targets),
            Some(watched) => {
                let run = Run::of_window(&watched, patcher.restored);
                Ok(result::counts(patcher, wanted, run))
            }
        })
    };
    // A tracer's end detaches from all that is still traced (ptrace(2)).
    let counted = std::thread::scope(|scope| scope.spawn(count).join());
    living.settle();
    counted.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Nothing was counted.
fn interrupted(wanted: &[Wanted], signal: i32) -> Counts {
    let why = || "not counted: interrupted while the code was analysed".to_owned();
    Counts {
        functions: wanted.iter().map(|_| Err(why())).collect(),
        wall: Duration::ZERO,
        exit: None,
        interrupted: Some(signal),
        remains: false,
        probes: 0,
        trampolines: Vec::new(),
        notes: Vec::new(),
    }
}
