//! Execute breakpoints: events that count executions of one instruction.
//!
//! The processor has four debug registers (Intel SDM vol. 3, "Debug Registers"), so a task has at
//! most four of them. Each hit is a debug exception that the kernel handles without a signal. No PMU
//! is needed, and no privilege for user mode.

use super::events::errno;
use nix::errno::Errno;
use perf_event::events::Breakpoint as Kind;
use perf_event::{Builder, Counter};
use std::os::fd::AsRawFd;

// PERF_EVENT_IOC_PERIOD of linux/perf_event.h.
nix::ioctl_write_ptr!(set_period, b'$', 4, u64);

/// A period that is never reached.
const NEVER: u64 = 1 << 62;

/// Maximum number of breakpoints of a task.
pub const MOST: usize = 4;

/// An open breakpoint.
pub struct Breakpoint(Counter);

impl Breakpoint {
    /// Counts hits of `address` in user mode by `task`, its new threads and its forked children, from
    /// now on. Ends in a task that executes another program.
    ///
    /// # Errors
    /// The kernel's answer: `ENOSPC` if the debug registers are in use.
    pub fn open(task: i32, address: u64) -> Result<Self, Errno> {
        let mut builder = Builder::new(Kind::execute(address));
        builder.attrs_mut().set_remove_on_exec(1);
        builder.observe_pid(task).any_cpu().inherit(true).enabled(true);
        builder.exclude_kernel(true).exclude_hv(true);
        let opened = builder.build().map_err(errno);
        match opened {
            // Before Linux 5.13 it persists after an exec.
            Err(Errno::EINVAL) => {
                builder.attrs_mut().set_remove_on_exec(0);
                builder.build().map_err(errno).map(Self)
            }
            other => other.map(Self),
        }
    }

    /// Counts hits of `address` in user mode by this thread only, and stops the thread with a SIGTRAP
    /// according to [`Breakpoint::stop_after`]: the caller must trace the thread and suppress that
    /// signal. Ends when the thread executes another program.
    ///
    /// # Errors
    /// The kernel's answer: `ENOSPC` if the debug registers are in use, `EINVAL` before Linux 5.13,
    /// which has no such signal.
    pub fn open_stopping(thread: i32, address: u64) -> Result<Self, Errno> {
        let mut builder = Builder::new(Kind::execute(address));
        builder.attrs_mut().set_remove_on_exec(1);
        builder.attrs_mut().set_sigtrap(1);
        builder.observe_pid(thread).any_cpu().enabled(true).sample_period(NEVER);
        builder.exclude_kernel(true).exclude_hv(true);
        builder.build().map_err(errno).map(Self)
    }

    /// Stops the thread after this many more hits, and periodically after that. Exact if the thread is
    /// stopped now; for a running thread only if `hits` is 1.
    pub fn stop_after(&self, hits: u64) {
        let hits = hits.clamp(1, NEVER);
        // SAFETY: the kernel reads one word from the pointer.
        let _ = unsafe { set_period(self.0.as_raw_fd(), &raw const hits) };
    }

    /// Starts it and its inherited copies. If that fails, its task has ended.
    pub fn enable(&mut self) {
        let _ = self.0.enable();
    }

    /// Stops it and its inherited copies.
    pub fn disable(&mut self) {
        let _ = self.0.disable();
    }

    /// Hits of all its tasks.
    pub fn count(&mut self) -> u64 {
        self.0.read().unwrap_or(0)
    }
}
