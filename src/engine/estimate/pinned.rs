//! A run of the command pinned to one CPU, where threads cannot contend for cache lines: the control of contention.

use super::ask::{EstimateAsk, MOST, Parallel};
use crate::hot::Temporary;
use crate::hot::hottest::{Hot, kernel_share};
use crate::record::{Alone, SampleAsk};
use crate::topdown::LiveAsk;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::Exit;
use pmu::machine::Machine;
use pmu::perf::{Child, Signals};
use profile::files::SearchPaths;
use profile::hot::{Filter, Profile};
use profile::session;
use report::documents::evidence::{Pinned, Why};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// CPUs that the command kept busy from which on its threads ran at the same time.
const AT_ONCE: f64 = 1.05;
/// A pinned run that takes this multiple of the processor time of the sampled one, and a second, is ended: its threads
/// wait for each other.
const LONGEST: f64 = 2.0;
/// Functions of this run, as times of those that are estimated: one that threads slow is colder here.
const RANKS: usize = 4;
/// Time between looks at the run.
const LOOK: Duration = Duration::from_millis(5);

/// The sampled run, where threads ran at the same time; else there is no contention.
pub(super) fn parallel(
    threads: usize,
    task: Option<f64>,
    wall: f64,
    exit: Option<Exit>,
) -> Option<Parallel> {
    let task = task.filter(|task| threads > 1 && *task > AT_ONCE * wall)?;
    Some(Parallel { task, threads, exit })
}

/// The CPUs that this thread may use.
fn allowed() -> CpuSet {
    sched_getaffinity(Pid::from_raw(0)).unwrap_or_default()
}

/// Why a command cannot be compared with a run on one CPU here.
///
/// # Errors
/// There is one CPU only; the kinds of CPUs differ.
fn check(machine: &Machine) -> Result<()> {
    let cannot = |why: &str| Err(Error::not_possible("no run on one CPU").because(why));
    let own = allowed();
    match (0..CpuSet::count()).filter(|cpu| own.is_set(*cpu).unwrap_or(false)).count() {
        0 | 1 => cannot("only one CPU may be used"),
        _ if machine.kinds.len() > 1 => cannot("the CPUs are of different kinds"),
        _ => Ok(()),
    }
}

/// Starts a command on the CPU of this thread; it waits.
///
/// # Errors
/// It cannot be started, or not be pinned.
fn prepare(command: &pmu::Command) -> Result<Child> {
    let refused = |e: nix::Error| Error::not_possible("no run on one CPU").because(e.desc());
    let mut one = CpuSet::new();
    one.set(sched_getcpu().map_err(refused)?).map_err(refused)?;
    let child = Child::prepare(command)?;
    sched_setaffinity(Pid::from_raw(child.pid), &one).map_err(refused)?;
    Ok(child)
}

/// Runs the command; a signal that interrupts it is entered.
///
/// # Errors
/// There is one CPU; the command cannot be started, pinned or sampled.
pub(super) fn run(
    ask: &EstimateAsk,
    of: Parallel,
    signals: &Signals,
    interrupted: &mut Option<i32>,
) -> Result<Pinned> {
    let machine = Machine::detect();
    check(&machine)?;
    let file = Temporary::new()?;
    let live = LiveAsk::of(ask.model.core.clone());
    let library = events::library();
    let mut sampler = Alone::new(&machine, &library, &live, &SampleAsk::default(), file.path())?;
    let begin = Instant::now();
    let mut child = prepare(&pmu::Command { stdout: pmu::Stdout::Dropped, ..ask.command.clone() })?;
    sampler.attach(child.pid)?;
    child.start()?;
    let Parallel { task, threads, exit } = of;
    let longest = Duration::from_secs_f64(LONGEST * task + 1.0);
    let is_whole = ends_within(&child, longest, signals, interrupted);
    let ended = child.reap();
    let seconds = begin.elapsed().as_secs_f64();
    let (is_sampled, _) = sampler.finish();
    let is_alike = |own: Exit| exit.is_none_or(|exit| exit == own);
    let why = match ended {
        _ if interrupted.is_some() => Some(Untold::Interrupted),
        _ if !is_whole => Some(Untold::Longer),
        Some((own, _)) if !is_alike(own) => Some(Untold::Differs),
        _ if !is_sampled || !session::has_samples(file.path())? => Some(Untold::NoSamples),
        _ => None,
    };
    let failed = why.map(|why| Why(why.words()));
    let run = Pinned { seconds, failed, smt: machine.topology.smt, ..Pinned::default() };
    match (&run.failed, ended) {
        (None, Some((_, usage))) => {
            sampled(Pinned { task: usage.cpu_seconds, ..run }, threads, &file)
        }
        _ => Ok(run),
    }
}

/// Waits until a command ends; whether it did so itself, and in time. Signals are passed on.
fn ends_within(
    child: &Child,
    longest: Duration,
    signals: &Signals,
    interrupted: &mut Option<i32>,
) -> bool {
    let (begin, mut is_killed) = (Instant::now(), false);
    while !child.has_ended() {
        if signals.wait(LOOK) {
            *interrupted = interrupted.or(signals.forward(child.pid));
        } else if begin.elapsed() > longest && !is_killed {
            is_killed = kill(Pid::from_raw(child.pid), Signal::SIGKILL).is_ok();
        }
    }
    !is_killed
}

/// A run with its samples. A command that starts a thread for each CPU that it may use does other work on one.
fn sampled(run: Pinned, threads: usize, file: &Temporary) -> Result<Pinned> {
    let recording = session::open(file.path(), false)?;
    // Entries have the threads.
    let filter = Filter { entries: true, ..Filter::default() };
    let mut profile = Profile::new(&recording, &filter, SearchPaths::default())?;
    if profile.busy_threads() < threads {
        return Ok(Pinned { failed: Some(Why(Untold::Fewer.words())), ..run });
    }
    let mut places: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for number in 0..profile.functions.len().min(RANKS * MOST) {
        let Hot { path, blocks: own, .. } = Hot::of(&mut profile, number);
        places.entry(path.display().to_string()).or_default().extend(own);
    }
    Ok(Pinned { samples: profile.samples, kernel: kernel_share(&profile).max(0.0), places, ..run })
}

/// Why a run on one CPU does not tell what contention costs.
#[derive(Debug, Clone, Copy)]
enum Untold {
    Interrupted,
    Longer,
    Differs,
    Fewer,
    NoSamples,
}

impl Untold {
    fn words(self) -> String {
        match self {
            Self::Interrupted => "the run on one CPU was interrupted",
            Self::Longer => {
                "on one CPU it takes over twice the processor time, as threads that wait spin there, and was ended"
            }
            Self::Differs => "the run on one CPU ended otherwise",
            Self::Fewer => "on one CPU it has fewer threads, and may do less",
            Self::NoSamples => "the run on one CPU was not sampled",
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_take_turns_are_not_compared() {
        let task = |threads, task| parallel(threads, task, 1.0, None).map(|of| of.task);
        assert_eq!(task(1, Some(2.0)), None);
        assert_eq!(task(4, Some(1.0)), None);
        assert_eq!(task(2, Some(1.9)), Some(1.9));
        assert_eq!(task(2, None), None);
    }
}
