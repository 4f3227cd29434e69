//! The thread that empties the rings: when one is half full, and at least every second.

use super::output::{Batch, Output, Sink};
use super::walk::Tally;
use crate::perf::Ring;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Records are handed on after this long at the latest: what a crash may lose.
const AT_LEAST: Duration = Duration::from_secs(1);
/// A ring whose own task has ended wakes nobody any more, though others may write to it.
const BLIND: Duration = Duration::from_millis(20);

/// A running thread.
pub(super) struct Drain {
    thread: JoinHandle<Tally>,
    stop: Arc<Stop>,
}

struct Stop {
    now: AtomicBool,
    wake: EventFd,
}

/// A ring and its CPU.
pub(super) struct RingOf {
    pub cpu: u32,
    pub ring: Ring,
}

struct Watched {
    of: RingOf,
    hung_up: bool,
}

impl Drain {
    /// Starts it. `tally` has what was handed on before.
    pub fn start(rings: Vec<RingOf>, sink: Sink, tally: Tally) -> std::io::Result<Self> {
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let stop = Arc::new(Stop { now: AtomicBool::new(false), wake });
        let theirs = Arc::clone(&stop);
        let rings = rings.into_iter().map(|of| Watched { of, hung_up: false }).collect();
        let run = move || run(rings, &theirs, sink, tally);
        let thread = thread::Builder::new().name("rings".into()).spawn(run)?;
        Ok(Self { thread, stop })
    }

    /// Empties the rings once more and ends it. The events must be stopped before.
    pub fn finish(self) -> Tally {
        self.stop.now.store(true, Ordering::Release);
        let _ = self.stop.wake.write(1);
        self.thread.join().unwrap_or_default()
    }
}

fn run(mut rings: Vec<Watched>, stop: &Stop, mut sink: Sink, mut tally: Tally) -> Tally {
    loop {
        let last = stop.now.load(Ordering::Acquire);
        for watched in &mut rings {
            let mut batch = Batch { cpu: Some(watched.of.cpu), ..Batch::default() };
            watched.of.ring.drain(&mut batch.bytes);
            if !batch.bytes.is_empty() {
                (batch.records, batch.samples) = tally.take(&batch.bytes);
                sink(Output::Records(batch));
            }
        }
        if last {
            return tally;
        }
        wait(&mut rings, stop);
    }
}

fn wait(rings: &mut [Watched], stop: &Stop) {
    let blind = rings.iter().any(|r| r.hung_up);
    let patience = if blind { BLIND } else { AT_LEAST };
    let mut fds = vec![PollFd::new(stop.wake.as_fd(), PollFlags::POLLIN)];
    let watched = rings.iter().filter(|r| !r.hung_up);
    fds.extend(watched.map(|r| PollFd::new(r.of.ring.as_fd(), PollFlags::POLLIN)));
    let _ = ppoll(&mut fds, Some(TimeSpec::from(patience)), None);
    let over = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    let ended = |fd: &PollFd<'_>| fd.revents().is_some_and(|r| r.intersects(over));
    let ended: Vec<bool> = fds[1..].iter().map(ended).collect();
    for (ring, ended) in rings.iter_mut().filter(|r| !r.hung_up).zip(ended) {
        ring.hung_up = ended;
    }
}
