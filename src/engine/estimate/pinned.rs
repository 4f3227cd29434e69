//! A run of the command pinned to one CPU, where threads cannot contend for cache lines: the control of contention.
//! What its code takes longer otherwise is what contention costs, where recorded addresses show any.

use super::ask::{DEVIATIONS, EstimateAsk, MOST};
use super::pieces::{Function, Kind, PieceOf};
use crate::hot::Temporary;
use crate::hot::hottest::{Hot, kernel_share};
use crate::record::{Alone, SampleAsk};
use crate::topdown::LiveAsk;
use estimate::{Contending, Interval};
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::Exit;
use pmu::machine::Machine;
use pmu::perf::{Child, Signals};
use profile::files::SearchPaths;
use profile::hot::{Filter, Profile};
use profile::session;
use report::documents::count::{self, ContendedLine};
use report::documents::evidence::{Pinned, Why};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// CPUs that the command kept busy from which on its threads ran at the same time.
const AT_ONCE: f64 = 1.05;
/// A pinned run that takes this multiple of the processor time of the sampled one, and a second, is ended: its threads
/// wait for each other.
const LONGEST: f64 = 2.0;
/// Time between looks at the run.
const LOOK: Duration = Duration::from_millis(5);
/// Relative error of the processor time of code in two runs that do the same, beside that of samples.
const RUNS_ERROR: f64 = 0.05;
/// Code on both threads of a core takes at most so many times as long as alone: that is no contention for lines.
const SIBLINGS: f64 = 2.0;

/// The processor time of the sampled run, in seconds, where threads ran at the same time; else there is no contention.
pub(super) fn parallel(threads: usize, task: Option<f64>, wall: f64) -> Option<f64> {
    task.filter(|task| threads > 1 && *task > AT_ONCE * wall)
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
    let (us, home) = (Pid::from_raw(0), allowed());
    let refused = |e: nix::Error| Error::not_possible("no run on one CPU").because(e.desc());
    let mut one = CpuSet::new();
    one.set(sched_getcpu().map_err(refused)?).map_err(refused)?;
    sched_setaffinity(us, &one).map_err(refused)?;
    let child = Child::prepare(command);
    let _ = sched_setaffinity(us, &home);
    child
}

/// Runs the command, whose sampled run took `task` seconds of processor time and ended so; a signal that interrupts it
/// is entered.
///
/// # Errors
/// There is one CPU; the command cannot be started, pinned or sampled.
pub(super) fn run(
    ask: &EstimateAsk,
    (task, exit): (f64, Option<Exit>),
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
        (None, Some((_, usage))) => sampled(Pinned { task: usage.cpu_seconds, ..run }, &file),
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

/// A run with its samples.
fn sampled(run: Pinned, file: &Temporary) -> Result<Pinned> {
    let recording = session::open(file.path(), false)?;
    let mut profile = Profile::new(&recording, &Filter::default(), SearchPaths::default())?;
    let mut places: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for number in 0..profile.functions.len().min(MOST) {
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
            Self::NoSamples => "the run on one CPU was not sampled",
        }
        .to_owned()
    }
}

/// What threads contend for by this kind.
pub(super) fn contending(of: count::Contention) -> Contending {
    match of {
        count::Contention::FalseSharing => Contending::OtherBytes,
        count::Contention::ContestedAccesses => Contending::SameBytes,
        count::Contention::LockLatency => Contending::Locked,
    }
}

/// The kind of most recorded accesses of code to lines that threads contend for; none if it has none.
pub(super) fn kind(
    lines: &[ContendedLine],
    module: &str,
    code: &[Range<u64>],
) -> Option<count::Contention> {
    let mut all: BTreeMap<count::Contention, u64> = BTreeMap::new();
    for line in lines {
        let is_own = |at: u64| code.iter().any(|range| range.contains(&at));
        let own = line.accesses.iter().filter(|of| of.module == module && is_own(of.address.0));
        let own: u64 = own.map(|of| of.recorded).sum();
        *all.entry(line.contention).or_default() += own;
    }
    all.into_iter().filter(|(_, own)| *own > 0).max_by_key(|(_, own)| *own).map(|(kind, _)| kind)
}

/// The code whose samples may be of contention in a piece: a loop, or as a sample is often taken in the block after the
/// one that took the time, all of its function outside of loops.
pub(super) fn around(at: PieceOf) -> Vec<Range<u64>> {
    let PieceOf { function, piece } = at;
    let of = |blocks: &[usize]| blocks.iter().map(|block| function.range(*block)).collect();
    match piece.kind {
        Kind::Loop(_) => of(&piece.blocks),
        _ => {
            let others = function.pieces.iter().filter(|one| !matches!(one.kind, Kind::Loop(_)));
            of(&others.flat_map(|one| one.blocks.iter().copied()).collect::<Vec<_>>())
        }
    }
}

/// Samples of a piece in the pinned run.
pub(super) fn samples(of: &Pinned, function: &Function, blocks: &[usize]) -> u64 {
    let own = of.places.get(&function.module).into_iter().flatten();
    let is_own = |at: u64| blocks.iter().any(|block| function.range(*block).contains(&at));
    own.filter(|(at, _)| is_own(*at)).map(|(_, samples)| samples).sum()
}

/// Seconds in the kernel that a pinned run lacks, of `task` seconds with that share in the kernel, if they matter.
pub(super) fn waited(of: &Pinned, task: f64, kernel: f64) -> Option<f64> {
    let less = kernel * task - of.kernel * of.task;
    (of.failed.is_none() && less > RUNS_ERROR * task).then_some(less)
}

/// What contention costs in code that takes `cycles`, of which `samples` were taken in a pinned run of `pinned` cycles;
/// nothing where that may be none.
pub(super) fn cost(cycles: Interval, of: &Pinned, pinned: f64, samples: u64) -> Option<Interval> {
    let each = pinned / of.samples.max(1) as f64;
    let number = samples as f64;
    // Of no sample up to two are likely.
    let error = DEVIATIONS * number.max(1.0).sqrt();
    let alone = Interval::new(number, number - error, number + error).times(each);
    let alone = alone.widened(RUNS_ERROR).clamped(0.0, f64::INFINITY);
    let found = cycles.minus(alone);
    let least = if of.smt { found.low.min(cycles.low - SIBLINGS * alone.high) } else { found.low };
    (found.low > 0.0).then(|| Interval::new(found.value, least.max(0.0), found.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::count::ContendedAccess;

    fn line(contention: count::Contention, address: u64, recorded: u64) -> ContendedLine {
        let access = ContendedAccess {
            module: "a".to_owned(),
            address: address.into(),
            recorded,
            ..ContendedAccess::default()
        };
        ContendedLine { contention, accesses: vec![access], ..ContendedLine::default() }
    }

    #[test]
    fn code_without_contended_accesses_does_not_contend() {
        let lines = [
            line(count::Contention::FalseSharing, 0x10, 5),
            line(count::Contention::LockLatency, 0x18, 7),
        ];
        let of = |module, range| kind(&lines, module, &[range]);
        assert_eq!(of("a", 0x10..0x18), Some(count::Contention::FalseSharing));
        assert_eq!(of("a", 0x10..0x20), Some(count::Contention::LockLatency));
        assert_eq!((of("a", 0x20..0x30), of("b", 0x10..0x20)), (None, None));
    }

    /// By hand: 1000 samples on one CPU of 1000 cycles each; 2500 cycles of 2000 ± 100 less 1000 ± √(63² + 50²).
    #[test]
    fn contention_is_what_a_run_on_one_cpu_lacks() {
        let pinned = Pinned { samples: 2000, ..Pinned::default() };
        let cycles = Interval::new(2500.0, 2400.0, 2600.0);
        let found = cost(cycles, &pinned, 2000.0, 1000).unwrap();
        assert!((found.value - 1500.0).abs() < 1e-9);
        let error = 100_f64.hypot(63.2).hypot(50.0);
        assert!((found.below() - error).abs() < 1.0, "{found:?}");
        // As much in both runs, within errors.
        assert_eq!(cost(Interval::new(1050.0, 1000.0, 1100.0), &pinned, 2000.0, 1000), None);
        // Siblings of a core slow each other, too.
        let smt = Pinned { smt: true, ..pinned };
        let found = cost(cycles, &smt, 2000.0, 1000).unwrap();
        assert!((found.value - 1500.0).abs() < 1e-9 && found.low < 300.0, "{found:?}");
    }

    #[test]
    fn threads_that_take_turns_are_not_compared() {
        assert_eq!(parallel(1, Some(2.0), 1.0), None);
        assert_eq!(parallel(4, Some(1.0), 1.0), None);
        assert_eq!(parallel(2, Some(1.9), 1.0), Some(1.9));
        assert_eq!(parallel(2, None, 1.0), None);
    }
}
