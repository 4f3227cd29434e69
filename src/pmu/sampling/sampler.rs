//! Opens a plan's events on the measured tasks or CPUs, with one ring buffer per CPU (`opening`), records what was there
//! before, and runs the thread that empties the ring buffers: when one is half full, and at least every second.

mod opening;

use super::output::{self, Attached, Batch, MappedFile, Output, RecordStatistics, Sink, Summary};
use super::plan::Plan;
use super::synthesis::Synthesis;
use crate::machine::{self, Machine};
use crate::perf::{Attachment, Ring, RunHooks, Sampled};
use crate::{Target, build_id};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tma::error::{Error, Result};

/// Hooks that sample.
pub struct Sampler<'a> {
    machine: &'a Machine,
    plan: Plan,
    sink: Option<Sink>,
    /// Events that track mappings, names and starts.
    tracking: Vec<Sampled>,
    /// Sampling events, by event of the plan.
    events: Vec<Vec<Sampled>>,
    /// Events that only count, by event of the plan in whose groups they are: of each group, in its order.
    counted: Vec<Vec<Vec<Sampled>>>,
    drain: Option<Drain>,
    begin: Option<(Instant, Duration)>,
    summary: Summary,
}

impl<'a> Sampler<'a> {
    /// Samples by `plan` into `sink`.
    pub fn new(machine: &'a Machine, plan: Plan, sink: Sink) -> Self {
        let events = plan.events.iter().map(|_| Vec::new()).collect();
        let counted = plan.events.iter().map(|_| Vec::new()).collect();
        Self {
            machine,
            plan,
            sink: Some(sink),
            tracking: Vec::new(),
            events,
            counted,
            drain: None,
            begin: None,
            summary: Summary::default(),
        }
    }

    /// The summary, after the run.
    pub fn take_summary(&mut self) -> Summary {
        std::mem::take(&mut self.summary)
    }

    fn note(&mut self, note: &str) {
        if !self.summary.notes.iter().any(|n| n == note) {
            self.summary.notes.push(note.to_owned());
        }
    }

    /// Files with code that have a build-id; those that their paths do not lead to are held open.
    fn files(&mut self, statistics: &mut RecordStatistics) -> Vec<MappedFile> {
        let mut files = Vec::new();
        for ((path, recorded), mapped) in statistics.files.drain() {
            // The path most often leads to the file.
            let here = mapped.is_of_file().then(|| build_id::of_file(Path::new(&path))).flatten();
            if !mapped.is_of_file() || (recorded.is_some() && recorded == here) {
                files.extend(recorded.map(|build_id| MappedFile { path, build_id }));
                continue;
            }
            let file = mapped.open();
            let own = file.as_ref().and_then(build_id::of);
            let is_it =
                own.is_some() && recorded.as_ref().is_none_or(|id| own.as_ref() == Some(id));
            if let (Some(file), Some(own), true) = (file, &own, is_it) {
                output::add(&mut self.summary.elsewhere, &path, file, own);
            }
            // Without a process to ask, the file at the path is the best that is known, unless it was replaced.
            let guessed = || own.or(here.filter(|_| mapped.inode.is_none()));
            let build_id = recorded.or_else(guessed);
            files.extend(build_id.map(|build_id| MappedFile { path, build_id }));
        }
        files.sort_unstable_by(|a, b| (&a.path, &a.build_id).cmp(&(&b.path, &b.build_id)));
        files.dedup();
        files
    }
}

impl RunHooks for Sampler<'_> {
    fn attach(&mut self, to: &Attachment<'_>) -> Result<()> {
        let Some(mut sink) = self.sink.take() else { return Ok(()) };
        self.begin = Some((Instant::now(), cpu_time()));
        let rings = self.open_all(to)?;
        let ids = |events: &[Sampled]| events.iter().map(Sampled::id).collect::<Vec<u64>>();
        let planned = self.plan.events.iter().zip(&self.events);
        let counted = |at: usize, member: usize| -> Vec<u64> {
            self.counted[at].iter().filter_map(|group| group.get(member)).map(Sampled::id).collect()
        };
        let attached: Vec<Attached> = planned
            .enumerate()
            .map(|(at, (event, open))| Attached {
                event: event.clone(),
                ids: ids(open),
                counted: (0..event.group.len()).map(|member| counted(at, member)).collect(),
            })
            .collect();
        let tracking = ids(&self.tracking);
        let id = tracking.first().copied().unwrap_or_default();
        sink(Output::Events(attached, tracking));
        let mut statistics = RecordStatistics::default();
        let bytes = self.synthesized(to, id);
        if !bytes.is_empty() {
            let (records, samples) = statistics.add(&bytes);
            sink(Output::Records(Batch { cpu: None, records, samples, bytes }));
        }
        if self.tracking.is_empty() {
            self.note("nothing was sampled: all its threads had ended");
        }
        let started = Drain::start(rings, sink, statistics);
        let failed =
            |e| Error::failed("cannot start the thread that empties the ring buffers").because(e);
        self.drain = Some(started.map_err(failed)?);
        Ok(())
    }

    fn enable(&mut self) {
        self.counted.iter_mut().flatten().flatten().for_each(Sampled::enable);
        self.events.iter_mut().flatten().for_each(Sampled::enable);
    }

    fn disable(&mut self) {
        self.events.iter_mut().flatten().for_each(Sampled::disable);
        self.counted.iter_mut().flatten().flatten().for_each(Sampled::disable);
    }

    fn finish(&mut self) {
        RunHooks::disable(self);
        self.tracking.iter_mut().for_each(Sampled::disable);
        let Some(drain) = self.drain.take() else { return };
        let mut statistics = drain.finish();
        if let Some((begin, before)) = self.begin.take() {
            self.summary.wall = begin.elapsed();
            self.summary.cpu = cpu_time().saturating_sub(before);
        }
        // A ring buffer that is full at the end has no LOST record; the events count losses.
        let lost: u64 = self.events.iter().flatten().filter_map(Sampled::lost).sum();
        self.summary.lost = statistics.lost.max(lost);
        self.summary.files = self.files(&mut statistics);
        (self.summary.samples, self.summary.bytes) = (statistics.samples, statistics.bytes);
        self.summary.throttled = statistics.throttled;
    }
}

impl Drop for Sampler<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

/// CPU time of this process, all its threads.
fn cpu_time() -> Duration {
    getrusage(UsageWho::RUSAGE_SELF).map_or(Duration::ZERO, |usage| machine::cpu_time(&usage))
}

impl Sampler<'_> {
    /// Records of the state before the recording.
    fn synthesized(&mut self, to: &Attachment<'_>, id: u64) -> Vec<u8> {
        let mut made = Synthesis::new(id);
        if !self.plan.user_only {
            made.kernel();
        }
        match to.target {
            // Its exec is recorded.
            Target::Command => {}
            Target::Process(pid) | Target::Thread(pid) => {
                if let Some(pid) = process_of(*pid) {
                    made.process(pid);
                }
            }
            Target::System | Target::Cpus(_) | Target::Cgroup(_) => made.all_processes(),
        }
        let (bytes, elsewhere) = made.finish();
        self.summary.elsewhere = elsewhere;
        bytes
    }
}

/// The process of a thread.
fn process_of(tid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Maximum time until records are written: what a crash may lose.
const PERIOD: Duration = Duration::from_secs(1);
/// Period of polling once the task of a ring buffer has ended: it wakes no reader any more, but other
/// tasks may write to it.
const POLL: Duration = Duration::from_millis(20);

/// A running thread.
pub(super) struct Drain {
    thread: JoinHandle<RecordStatistics>,
    stop: Arc<Stop>,
}

struct Stop {
    now: AtomicBool,
    wake: EventFd,
}

/// A ring buffer and its CPU.
pub(super) struct CpuRing {
    pub cpu: u32,
    pub ring: Ring,
}

struct Watched {
    of: CpuRing,
    hung_up: bool,
}

impl Drain {
    /// Starts it. `statistics` includes the records before.
    pub fn start(
        rings: Vec<CpuRing>,
        sink: Sink,
        statistics: RecordStatistics,
    ) -> std::io::Result<Self> {
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let stop = Arc::new(Stop { now: AtomicBool::new(false), wake });
        let theirs = Arc::clone(&stop);
        let rings = rings.into_iter().map(|of| Watched { of, hung_up: false }).collect();
        let run = move || run(rings, &theirs, sink, statistics);
        let thread = thread::Builder::new().name("rings".into()).spawn(run)?;
        Ok(Self { thread, stop })
    }

    /// Empties the ring buffers once more and ends it. The events must be stopped before.
    pub fn finish(self) -> RecordStatistics {
        self.stop.now.store(true, Ordering::Release);
        let _ = self.stop.wake.write(1);
        self.thread.join().unwrap_or_default()
    }
}

fn run(
    mut rings: Vec<Watched>,
    stop: &Stop,
    mut sink: Sink,
    mut statistics: RecordStatistics,
) -> RecordStatistics {
    loop {
        let last = stop.now.load(Ordering::Acquire);
        for watched in &mut rings {
            let mut batch = Batch { cpu: Some(watched.of.cpu), ..Batch::default() };
            watched.of.ring.drain(&mut batch.bytes);
            if !batch.bytes.is_empty() {
                (batch.records, batch.samples) = statistics.add(&batch.bytes);
                sink(Output::Records(batch));
            }
        }
        if last {
            return statistics;
        }
        wait(&mut rings, stop);
    }
}

fn wait(rings: &mut [Watched], stop: &Stop) {
    let polled = rings.iter().any(|r| r.hung_up);
    let timeout = if polled { POLL } else { PERIOD };
    let mut fds = vec![PollFd::new(stop.wake.as_fd(), PollFlags::POLLIN)];
    let watched = rings.iter().filter(|r| !r.hung_up);
    fds.extend(watched.map(|r| PollFd::new(r.of.ring.as_fd(), PollFlags::POLLIN)));
    let _ = ppoll(&mut fds, Some(TimeSpec::from(timeout)), None);
    let over = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    let ended = |fd: &PollFd<'_>| fd.revents().is_some_and(|r| r.intersects(over));
    let ended: Vec<bool> = fds[1..].iter().map(ended).collect();
    for (ring, ended) in rings.iter_mut().filter(|r| !r.hung_up).zip(ended) {
        ring.hung_up = ended;
    }
}
