//! Runs code in the worker: starts it when needed, replaces it after any abnormal end, checks it with a canary, and
//! passes it code, values and a schedule. `memory` has the state before and after a run, `clocked` runs of the
//! clock alone.

mod clocked;
mod memory;

pub use memory::may_map;

use crate::clock::{Places, Sentinel};
use crate::harness::Program;
use crate::layers::Layers;
use crate::sandbox::layout::mail;
use crate::sandbox::{
    Ended, Worker, layout as at, pin_to, random, use_batch_scheduling, use_normal_scheduling,
};
use crate::values::Values;
use pmu::machine::{Root, same_kind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tma::{Core, Result};

/// Offset of the block's code in the region, after the clock's.
pub const BLOCK_CODE: usize = at::CODE + 0x3000;
/// Masked exceptions, flush to zero, subnormals are zero.
pub const MXCSR_FAST: u32 = 0x9fc0;
/// Masked exceptions, gradual underflow.
pub const MXCSR_GRADUAL: u32 = 0x1f80;

/// The watchdog: no command takes longer.
pub const WATCHDOG: Duration = Duration::from_millis(100);
/// Commands of a block that the watchdog may end: other initial values may end a loop of string instructions,
/// but of hundreds of candidates each would take as long.
pub const MOST_STOPPED: u32 = 5;

/// A piece of code that ends in a time stamp.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Where it starts, in the region.
    pub entry: usize,
    /// Number of repetitions.
    pub repeat: u32,
}

/// The worker and what was last set up in it. Errors of its methods, and of all that use it, say that the sandbox
/// cannot be started.
pub struct Runner {
    worker: Option<Worker>,
    /// Number of workers that the watchdog ended.
    pub timeouts: u32,
    /// Remaining limits of the current block.
    pub limit: Limit,
    /// Blocks that have been run in the present worker.
    pub blocks: u32,
    /// Default MXCSR: treatment of subnormals.
    pub mxcsr: u32,
    /// Whether a block may have damaged the worker, so that the canary is due.
    pub suspicious: bool,
    inspect: bool,
    /// The core that the worker runs on.
    core: Arc<Core>,
    /// Processors that may be used, and which one is.
    cpus: Vec<usize>,
    at: usize,
    random: fastrand::Rng,
    clock: Places,
    /// Detects contention.
    pub sentinel: Sentinel,
    /// Whether the sentinel is the self-test's; whether the self-test was made.
    wide: bool,
    tested: bool,
    /// Whether anything ran since the last pages were unmapped.
    ran: bool,
    /// Whether the next run first unmaps them.
    fresh: bool,
    /// Whether the thread keeps to the worker's processor.
    pinned: bool,
    /// Workers started so far.
    pub started: u32,
    /// By how much `[rip+x]` operands are moved within their page.
    rip_offset: usize,
    /// Pages with initial content of their own, in the worker's order.
    images: Vec<u64>,
}

impl Runner {
    /// A runner whose workers stay on `cpu`, or on one of this thread's processors at a time, and
    /// may be inspected (which counting them may take) if `inspect`.
    pub fn new(core: Arc<Core>, cpu: Option<usize>, inspect: bool) -> Self {
        let here = nix::sched::sched_getcpu().ok();
        let cpus = cpu.map_or_else(|| allowed(here), |cpu| vec![cpu]);
        let at = cpus.iter().position(|c| Some(*c) == here).unwrap_or(0);
        Self {
            worker: None,
            mxcsr: MXCSR_FAST,
            timeouts: 0,
            limit: Limit::default(),
            blocks: 0,
            suspicious: false,
            inspect,
            core,
            cpus,
            at,
            random: fastrand::Rng::with_seed(random()),
            clock: Places::default(),
            sentinel: Sentinel::default(),
            wide: false,
            tested: false,
            ran: false,
            fresh: false,
            pinned: false,
            started: 0,
            rip_offset: 0,
            images: Vec::new(),
        }
    }

    /// Moves `[rip+x]` operands within their page, from the next block on.
    pub fn set_rip_offset(&mut self, offset: usize) {
        self.rip_offset = offset;
        if let Some(worker) = &mut self.worker {
            worker.set_rip_offset(offset);
        }
    }

    /// Pins the calling thread, which only the runner uses from now on, to the worker's processor: a command is
    /// then two context switches on one processor, instead of two wake-ups between processors, and no thread of
    /// ours runs beside a worker that is timing.
    pub fn pin_to_worker_cpu(&mut self) {
        self.pinned = true;
    }

    /// A pseudo-random number; for dithers and places, not for secrets.
    pub fn random(&mut self) -> u64 {
        self.random.u64(..)
    }

    /// The worker, started if there is none.
    pub fn worker(&mut self) -> Result<&mut Worker> {
        if self.worker.as_ref().is_none_or(Worker::is_gone) {
            self.worker = None;
            let cpu = self.cpus.get(self.at).copied();
            use_normal_scheduling();
            let started = Worker::start(cpu, self.inspect, random());
            use_batch_scheduling();
            self.follow();
            let mut worker = started?;
            worker.set_rip_offset(self.rip_offset);
            self.worker = Some(worker);
            self.write_clock();
            self.started += 1;
            (self.ran, self.fresh, self.blocks) = (false, false, 0);
            self.images.clear();
        }
        self.worker.as_mut().ok_or_else(|| tma::Error::failed("no sandbox worker"))
    }

    /// The processor that the worker is pinned to.
    pub fn cpu(&self) -> Option<usize> {
        self.cpus.get(self.at).copied()
    }

    /// Number of processors it may use.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Ends the worker; the next command starts a fresh one.
    pub fn discard(&mut self) {
        self.worker = None;
    }

    /// Moves to the next allowed processor.
    pub fn next_cpu(&mut self) -> Result<()> {
        if self.cpus.len() > 1 {
            self.at = (self.at + 1) % self.cpus.len();
            let cpu = self.cpus[self.at];
            // Another core may be of another kind.
            self.sentinel = self.sentinel.elsewhere();
            self.worker()?.move_to(cpu);
            self.follow();
        }
        Ok(())
    }

    /// Pins the thread to the worker's processor, if requested.
    fn follow(&self) {
        if let Some(cpu) = self.cpus.get(self.at).filter(|_| self.pinned) {
            pin_to(*cpu);
        }
    }

    /// The layers that protect the host.
    pub fn layers(&mut self) -> Result<Layers> {
        Ok(self.worker()?.layers().clone())
    }

    /// Writes a program and runs it once.
    pub fn run_once(&mut self, program: &Program) -> Result<Ended> {
        self.worker()?.write(program.start, &program.bytes);
        let segment = Segment { entry: program.start, repeat: 1 };
        Ok(self.run(&[segment], &[(0, 1)])?.0)
    }

    /// Runs `schedule`, pairs of segment and dither, and returns the ticks of each entry. The
    /// worker is discarded if it did not come to an orderly end. Nothing runs beyond the block's limit.
    pub fn run(
        &mut self,
        segments: &[Segment],
        schedule: &[(usize, u16)],
    ) -> Result<(Ended, Vec<u32>)> {
        let count = schedule.len().min(at::SCHEDULE_MAX);
        if self.limit.is_spent() {
            return Ok((Ended::OutOfTime, Vec::new()));
        }
        self.worker()?;
        self.ran = true;
        let unmap = std::mem::replace(&mut self.fresh, false);
        let operation = if unmap { mail::UNMAP_AND_RUN } else { mail::RUN };
        let limit = self.limit;
        let worker = self.worker()?;
        let base = worker.base();
        for (i, segment) in segments.iter().enumerate().take(mail::SEGMENTS_MAX) {
            let place = at::MAIL + mail::SEGMENTS + 32 * i;
            worker.put64(place, base + segment.entry as u64);
            worker.put32(place + 8, segment.repeat.max(1));
        }
        let mut words = Vec::with_capacity(4 * count);
        for (segment, dither) in &schedule[..count] {
            let word = (*segment as u32 & 31) | u32::from((*dither).max(1)) << 16;
            words.extend(word.to_le_bytes());
        }
        worker.write(at::SCHEDULE, &words);
        worker.put32(at::MAIL + mail::COUNT, count as u32);
        let mut ended = worker.command(operation, limit.next_command());
        let ticks = match ended {
            Ended::Done => worker.words(at::TICKS, count),
            _ => Vec::new(),
        };
        if ended == Ended::TimedOut {
            self.timeouts += 1;
            self.limit.count_stopped();
        }
        if matches!(ended, Ended::TimedOut | Ended::Died(_)) {
            self.discard();
        }
        if ended == Ended::TimedOut && self.limit.is_over() {
            ended = Ended::OutOfTime;
        }
        Ok((ended, ticks))
    }

    /// Runs the clock's segments as a canary: a worker that a block has damaged does not complete them in
    /// a plausible time.
    pub fn canary(&mut self) -> Result<bool> {
        self.values(&Values::default())?;
        let segments = self.clock_segments();
        let (ended, ticks) = self.run(&segments, &[(0, 1), (1, 1), (4, 1)])?;
        let sound = ended == Ended::Done && ticks.len() == 3 && ticks[0] > ticks[1];
        if !sound {
            self.discard();
        }
        Ok(sound)
    }
}

/// The processors that this thread may run on; on hybrids, those of its present kind, since times differ between
/// kinds.
fn allowed(here: Option<usize>) -> Vec<usize> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap_or_default();
    let may = (0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    let here = here.and_then(|cpu| u32::try_from(cpu).ok());
    match here.and_then(|cpu| same_kind(&Root::system(), cpu)) {
        Some(kind) => may.filter(|cpu| kind.iter().any(|k| *k as usize == *cpu)).collect(),
        None => may.collect(),
    }
}

impl Drop for Runner {
    /// The thread may have other things to do now.
    fn drop(&mut self) {
        use_normal_scheduling();
    }
}

/// The remaining limits of the current block.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limit {
    end: Option<Instant>,
    stopped: u32,
}

impl Limit {
    /// No command begins after `end`, and those under way are ended.
    pub fn until(end: Instant) -> Self {
        Self { end: Some(end), stopped: 0 }
    }

    /// Whether the time is up.
    pub fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Whether another command may begin.
    pub fn is_spent(&self) -> bool {
        self.is_over() || self.stopped >= MOST_STOPPED
    }

    /// Time limit of the next command.
    fn next_command(&self) -> Duration {
        self.end.map_or(WATCHDOG, |end| WATCHDOG.min(end.saturating_duration_since(Instant::now())))
    }

    /// The watchdog has ended a command.
    fn count_stopped(&mut self) {
        self.stopped += 1;
    }

    /// Whether the watchdog has ended one since the last [`Limit::forgive`].
    pub fn was_stopped(&self) -> bool {
        self.stopped > 0
    }

    /// Allows as many stopped commands again: the worker may have been descheduled rather than busy.
    pub fn forgive(&mut self) {
        self.stopped = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_what_is_left_and_none_begins_after_the_end() {
        let over = Limit::until(Instant::now());
        assert!(over.is_over() && over.is_spent() && over.next_command().is_zero());
        let mut ample = Limit::until(Instant::now() + Duration::from_secs(3600));
        assert_eq!((ample.is_spent(), ample.next_command()), (false, WATCHDOG));
        (0..MOST_STOPPED).for_each(|_| ample.count_stopped());
        assert!(ample.is_spent() && !ample.is_over());
        ample.forgive();
        assert!(!ample.is_spent());
        assert!(!Limit::default().is_over(), "what is no block's has no end");
    }
}
