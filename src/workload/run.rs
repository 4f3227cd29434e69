//! Runs a program: checks its options, sets it up, and runs it in slices until the time is over or the repeats are
//! done; also concurrent copies, each in a thread with its own data.

use super::{DefaultSize, Setup, SizeParameter, Workload, list, memory};
use crate::Program;
use crate::command_line::human;
use serde::{Serialize, Serializer};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use tma::error::nearest;
use tma::{Error, Result};

/// Default duration in seconds, if repeats are not limited either.
pub(super) const DEFAULT_SECONDS: f64 = 2.0;

/// How to run a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Stop after this many seconds (fractions allowed). Without seconds and repeats: 2.
    pub seconds: Option<f64>,
    /// Stop after this many repeats, with or without `seconds`: whichever comes first.
    pub repeats: Option<u64>,
    /// Size in the program's unit instead of the default.
    pub size: Option<u64>,
    /// Run the same loop without the bottleneck.
    pub control: bool,
    /// Run this number of concurrent copies, each in a thread with its own data. Default: 1.
    pub copies: Option<u64>,
}

/// Result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The program.
    pub name: &'static str,
    /// Whether it was the control.
    pub control: bool,
    /// Size it ran with, in the program's unit; `None` if it has none.
    pub size: Option<u64>,
    /// Copies that ran at the same time; sums are of all of them.
    pub copies: u64,
    /// Iterations done.
    pub iterations: u64,
    /// Description of one iteration.
    pub iteration: &'static str,
    /// Repeats done, of a copy on average; a fraction if the time was over first.
    pub repeats: f64,
    /// Seconds for allocating and filling the data, not included in `seconds`.
    pub setup_seconds: f64,
    /// Wall time of the iterations in seconds, of the slowest copy.
    pub seconds: f64,
    /// CPU time of the iterations in seconds: less on a busy machine, and while sleeping.
    pub cpu_seconds: f64,
    /// Nanoseconds of `cpu_seconds` per iteration.
    pub ns_per_iteration: f64,
    /// Rate per `cpu_seconds` of a copy, if one is customary: of all copies together.
    pub rate: Option<Rate>,
    /// Depends on every result; reproducible for the same program, size and repeats. `0x…` text in
    /// JSON, because many readers parse numbers as doubles.
    #[serde(serialize_with = "hexadecimal")]
    pub checksum: u64,
}

/// A rate with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// The figure.
    pub value: f64,
    /// `GB/s` or `GFLOP/s`, powers of 1000.
    pub unit: &'static str,
}

/// The program called `name`.
///
/// # Errors
/// Usage: there is none; the hint names the most similar one.
pub fn find(name: &str) -> Result<&'static Workload> {
    if let Some(found) = list().iter().find(|w| w.name == name) {
        return Ok(found);
    }
    let error = Error::usage(format!("unknown workload `{name}`"));
    let names = || list().iter().map(|w| w.name);
    let family: Vec<_> = names().filter(|n| !name.is_empty() && n.starts_with(name)).collect();
    Err(match (family.is_empty(), nearest(name, names())) {
        (false, _) => error.hint(format!("one of {}", family.join(", "))),
        (_, Some(near)) => error.hint(format!("did you mean `{near}`?")),
        _ => error.hint("`tdtool workload list` lists all of them"),
    })
}

/// Runs the program called `name` to its end, in this thread; several copies in threads of their own.
///
/// # Errors
/// Usage: unknown name, or invalid options (zero, negative, not a number, more than the available
/// memory). Not possible: not built for this architecture. Failed: the memory cannot be
/// allocated.
///
/// ```
/// use workload::{Options, run};
///
/// // A product of 8 x 8 matrices: 8 * 8 * 8 multiply-adds, however fast the machine is.
/// let options = Options { repeats: Some(1), size: Some(8), ..Options::default() };
/// let [first, again] = [run("matmul-naive", &options)?, run("matmul-naive", &options)?];
/// assert_eq!((first.iterations, first.iteration), (512, "multiply-add"));
/// assert_eq!(first.checksum, again.checksum, "programs repeat exactly");
///
/// let error = run("matmul-nave", &options).unwrap_err();
/// assert_eq!(error.remedy(), Some("did you mean `matmul-naive`?"));
/// # Ok::<(), tma::Error>(())
/// ```
pub fn run(name: &str, options: &Options) -> Result<Summary> {
    let workload = find(name)?;
    let limits = Limits::new(options)?;
    let size = checked_size(workload, options.size, limits.copies)?;
    let setup = Setup { size: size.unwrap_or(0), control: options.control };
    let is_enough = |elapsed, repeats| {
        limits.time.is_some_and(|time| elapsed >= time)
            || limits.repeats.is_some_and(|asked| repeats >= asked as f64)
    };
    let done = run_copies(limits.copies, workload.build, setup, &is_enough)?;
    let cpu_seconds = done.cpu.as_secs_f64();
    let (iterations, copies) = (done.iterations, limits.copies);
    Ok(Summary {
        name: workload.name,
        control: options.control,
        size,
        copies,
        iterations,
        iteration: workload.iteration,
        repeats: iterations as f64 / (copies * done.per_repeat) as f64,
        setup_seconds: done.setup.as_secs_f64(),
        seconds: done.elapsed.as_secs_f64(),
        cpu_seconds,
        ns_per_iteration: cpu_seconds * 1e9 / iterations.max(1) as f64,
        rate: workload.rate.filter(|_| cpu_seconds > 0.0).map(|(per_iteration, unit)| Rate {
            value: per_iteration * iterations as f64 * copies as f64 / cpu_seconds / 1e9,
            unit,
        }),
        checksum: done.checksum,
    })
}

fn hexadecimal<S: Serializer>(value: &u64, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{value:#018x}"))
}

/// Most copies: more are a mistake.
const MOST_COPIES: u64 = 4096;

/// Number of copies, and when they stop: by seconds, repeats, or both.
struct Limits {
    copies: u64,
    time: Option<Duration>,
    repeats: Option<u64>,
}

impl Limits {
    fn new(options: &Options) -> Result<Self> {
        if options.repeats == Some(0) {
            return Err(Error::usage("--repeats must not be 0").hint("--repeats takes 1 or more"));
        }
        let seconds = match (options.seconds, options.repeats) {
            (None, None) => Some(DEFAULT_SECONDS),
            (asked, _) => asked,
        };
        let time = seconds.map(duration).transpose()?;
        let copies = options.copies.unwrap_or(1);
        if !(1..=MOST_COPIES).contains(&copies) {
            return Err(Error::usage(format!("cannot run {copies} copies"))
                .hint(format!("--copies takes 1 to {MOST_COPIES}")));
        }
        Ok(Self { copies, time, repeats: options.repeats })
    }
}

/// The remedy for other times.
const TAKES: &str = "--seconds takes a number above 0, fractions allowed: 0.5";

/// `seconds` as a duration above zero.
fn duration(seconds: f64) -> Result<Duration> {
    let wrong = |why: &str| {
        Error::usage(format!("cannot run for {seconds} seconds")).because(why).hint(TAKES)
    };
    if seconds.is_nan() {
        return Err(Error::usage("cannot run for a time that is not a number").hint(TAKES));
    }
    if seconds <= 0.0 {
        return Err(wrong("it is not a time above 0"));
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) => Ok(time.max(Duration::from_nanos(1))),
        Err(_) => Err(wrong("it is too long")),
    }
}

/// The size to run with: as requested or the default, not too small, within the available memory.
fn checked_size(workload: &Workload, asked: Option<u64>, copies: u64) -> Result<Option<u64>> {
    let name = workload.name;
    let Some(parameter) = workload.size else {
        return match asked {
            None => Ok(None),
            Some(_) => Err(Error::usage(format!("{name} has no size"))
                .hint(format!("`tdtool workload list {name}` shows its parameters"))),
        };
    };
    // Each copy has its own data.
    let allowance = memory::allowance().map(|bytes| bytes / copies);
    let size = asked.unwrap_or_else(|| {
        default_size(&parameter, memory::largest_cache().unwrap_or(0), allowance)
    });
    if size < parameter.least {
        return Err(Error::usage(format!(
            "--size {size} ({}) is too small for {name}",
            parameter.unit
        ))
        .hint(format!("--size takes {} or more", parameter.least)));
    }
    let needed = (workload.memory)(size);
    let most = allowance.unwrap_or(u64::MAX);
    if needed.is_none_or(|n| n > most) {
        let needed = needed.map_or("more than 16 EiB".into(), human);
        let each = if copies > 1 { " for each copy" } else { "" };
        return Err(Error::usage(format!("--size {size} is too large for {name} on this machine"))
            .because(format!("it needs {needed}; {} are available{each}", human(most)))
            .hint("choose a smaller --size"));
    }
    Ok(Some(size))
}

/// The default size if the largest cache has `cache` bytes.
fn default_size(parameter: &SizeParameter, cache: u64, allowance: Option<u64>) -> u64 {
    match parameter.default {
        DefaultSize::Fixed(size) => size,
        DefaultSize::BeyondCaches(least) => {
            // An eighth is reserved for memory other than the data.
            let most = allowance.map_or(u64::MAX, |a| a / 8 * 7);
            cache.saturating_mul(4).max(least).min(most).max(parameter.least)
        }
    }
}

/// Result of a copy, or of all together.
pub(super) struct CopyResult {
    pub iterations: u64,
    /// Iterations per repeat.
    pub per_repeat: u64,
    pub setup: Duration,
    /// Wall time of the iterations.
    pub elapsed: Duration,
    /// Processor time of the iterations.
    pub cpu: Duration,
    pub checksum: u64,
}

/// Whether a copy is done, by its time and repeats.
pub(super) type IsEnough<'a> = &'a (dyn Fn(Duration, f64) -> bool + Sync);

/// Runs copies of the program of `build`, started together after their setup. Times are those of
/// the slowest; iterations, processor time and checksums are sums.
///
/// # Errors
/// One cannot be set up.
pub(super) fn run_copies(
    copies: u64,
    build: fn(Setup) -> Result<Box<dyn Program>>,
    setup: Setup,
    is_enough: IsEnough,
) -> Result<CopyResult> {
    if copies == 1 {
        return one(build, setup, is_enough, None);
    }
    let all = Barrier::new(usize::try_from(copies).unwrap_or(usize::MAX));
    let copy = || one(build, setup, is_enough, Some(&all));
    let done: Vec<Result<CopyResult>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..copies).map(|_| scope.spawn(copy)).collect();
        let panicked = |_| Err(Error::failed("a copy of the program has panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    let mut sum: Option<CopyResult> = None;
    for one in done {
        let one = one?;
        sum = Some(match sum {
            None => one,
            Some(sum) => sum.with(&one),
        });
    }
    sum.ok_or_else(|| Error::usage("--copies must not be 0").hint("--copies takes 1 or more"))
}

impl CopyResult {
    fn with(self, other: &Self) -> Self {
        Self {
            iterations: self.iterations.saturating_add(other.iterations),
            per_repeat: self.per_repeat,
            setup: self.setup.max(other.setup),
            elapsed: self.elapsed.max(other.elapsed),
            cpu: self.cpu + other.cpu,
            checksum: self.checksum.wrapping_add(other.checksum),
        }
    }
}

fn one(
    build: fn(Setup) -> Result<Box<dyn Program>>,
    setup: Setup,
    is_enough: IsEnough,
    all: Option<&Barrier>,
) -> Result<CopyResult> {
    let begin = Instant::now();
    let program = build(setup);
    let setup = begin.elapsed();
    // Even if it failed, since the others wait.
    all.map(Barrier::wait);
    let mut program = program?;
    let per_repeat = program.per_repeat().max(1);
    let mut iterations: u64 = 0;
    let (begin, cpu_begin) = (Instant::now(), thread_time()?);
    let elapsed = loop {
        iterations = iterations.saturating_add(program.slice());
        let elapsed = begin.elapsed();
        if is_enough(elapsed, iterations as f64 / per_repeat as f64) {
            break elapsed;
        }
    };
    let cpu = thread_time()?.saturating_sub(cpu_begin);
    Ok(CopyResult { iterations, per_repeat, setup, elapsed, cpu, checksum: program.checksum() })
}

/// CPU time of this thread.
fn thread_time() -> Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable for the call.
    if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } != 0 {
        return Err(Error::failed("cannot read this thread's CPU time")
            .because(std::io::Error::last_os_error()));
    }
    Ok(Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma::ErrorKind;

    fn refused(name: &str, options: Options) -> Error {
        let error = run(name, &options).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        error
    }

    #[test]
    fn times_that_are_none_are_refused() {
        for seconds in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            refused("idle", Options { seconds: Some(seconds), ..Options::default() });
        }
        assert_eq!(duration(1e-300).unwrap(), Duration::from_nanos(1));
        assert_eq!(duration(0.25).unwrap(), Duration::from_millis(250));
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for w in list().iter().filter(|w| w.size.is_some()) {
            let least = w.size.unwrap().least;
            for size in [0, 1, least - 1, 1 << 60, u64::MAX] {
                refused(w.name, Options { size: Some(size), ..Options::default() });
            }
        }
        refused("idle", Options { size: Some(4096), ..Options::default() });
        refused("idle", Options { repeats: Some(0), ..Options::default() });
        refused("idle", Options { copies: Some(0), ..Options::default() });
        refused("idle", Options { copies: Some(u64::MAX), ..Options::default() });
    }

    #[test]
    fn the_default_size_exceeds_the_caches_but_not_the_memory() {
        const MIB: u64 = 1 << 20;
        for name in ["pointer-chase", "stream"] {
            let workload = find(name).unwrap();
            let size = |cache, allowance| default_size(&workload.size.unwrap(), cache, allowance);
            assert_eq!(size(32 * MIB, Some(9000 * MIB)), 256 * MIB);
            assert_eq!(size(480 * MIB, Some(9000 * MIB)), 1920 * MIB, "a server's L3");
            assert_eq!(size(480 * MIB, None), 1920 * MIB);
            let small = size(480 * MIB, Some(100 * MIB));
            assert!((workload.memory)(small).unwrap() <= 100 * MIB, "{name}: {small}");
        }
    }

    #[test]
    fn an_unknown_name_finds_the_most_similar_one_or_its_family() {
        let hint = |name| find(name).unwrap_err().remedy().unwrap_or_default().to_owned();
        assert_eq!(hint("steam"), "did you mean `stream`?");
        assert!(hint("matmul").contains("matmul-naive, matmul-blocked"));
        assert!(hint("").contains("workload list"));
    }
}
