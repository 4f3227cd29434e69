//! Concurrent copies of a program, each in a thread with its own data.

use super::{Program, Setup};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use tma::{Error, Result};

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
pub(super) fn run(
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
