//! The thread that empties the ring buffers: when one is half full, and at least every second.

use super::output::{Batch, Output, Sink};
use super::record_statistics::RecordStatistics;
use crate::perf::Ring;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

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
