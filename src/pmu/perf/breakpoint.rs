//! Execute breakpoints: events that count how often one instruction is reached.
//!
//! The processor has four debug registers (Intel SDM vol. 3, "Debug Registers"), so a task has at
//! most four of them. Each time one is reached the kernel takes a debug exception and goes on; no
//! signal is sent. No PMU is needed, and no privilege for user mode.

use super::events::errno;
use nix::errno::Errno;
use perf_event::events::Breakpoint as Kind;
use perf_event::{Builder, Counter};
use std::os::fd::AsRawFd;

// PERF_EVENT_IOC_PERIOD of linux/perf_event.h.
nix::ioctl_write_ptr!(set_period, b'$', 4, u64);

/// Hits that nobody lives to see: a period without stops.
const NEVER: u64 = 1 << 62;

/// Most breakpoints of a task at once.
pub const MOST: usize = 4;

/// An open breakpoint.
pub struct Breakpoint(Counter);

impl Breakpoint {
    /// Counts how often `task`, its new threads and its forked children reach `address` in user
    /// mode, from now on. A child that becomes another program is left.
    ///
    /// # Errors
    /// What the kernel answers: `ENOSPC` where the debug registers are in use.
    pub fn open(task: i32, address: u64) -> Result<Self, Errno> {
        let mut builder = Builder::new(Kind::execute(address));
        builder.attrs_mut().set_remove_on_exec(1);
        builder.observe_pid(task).any_cpu().inherit(true).enabled(true);
        builder.exclude_kernel(true).exclude_hv(true);
        let opened = builder.build().map_err(errno);
        match opened {
            // Before Linux 5.13 it stays after an exec.
            Err(Errno::EINVAL) => {
                builder.attrs_mut().set_remove_on_exec(0);
                builder.build().map_err(errno).map(Self)
            }
            other => other.map(Self),
        }
    }

    /// Counts how often this thread alone reaches `address` in user mode, and stops the thread with
    /// a SIGTRAP whenever [`Breakpoint::stop_after`] says so: whoever opens it must trace the thread
    /// and keep that signal from it. A thread that becomes another program is left.
    ///
    /// # Errors
    /// What the kernel answers: `ENOSPC` where the debug registers are in use, `EINVAL` before
    /// Linux 5.13, which has no such signal.
    pub fn open_stopping(thread: i32, address: u64) -> Result<Self, Errno> {
        let mut builder = Builder::new(Kind::execute(address));
        builder.attrs_mut().set_remove_on_exec(1);
        builder.attrs_mut().set_sigtrap(1);
        builder.observe_pid(thread).any_cpu().enabled(true).sample_period(NEVER);
        builder.exclude_kernel(true).exclude_hv(true);
        builder.build().map_err(errno).map(Self)
    }

    /// The thread stops after so many more hits, and again after each time as many. Exact of a
    /// thread that is stopped now; of one that runs only for 1.
    pub fn stop_after(&self, hits: u64) {
        let hits = hits.clamp(1, NEVER);
        // SAFETY: the kernel reads one word from where the pointer points. An event that has gone
        // stops nobody.
        let _ = unsafe { set_period(self.0.as_raw_fd(), &raw const hits) };
    }

    /// Starts it and those inherited from it. One that cannot start has gone.
    pub fn enable(&mut self) {
        let _ = self.0.enable();
    }

    /// Stops it and those inherited from it.
    pub fn disable(&mut self) {
        let _ = self.0.disable();
    }

    /// How often the instruction was reached, by all tasks.
    pub fn count(&mut self) -> u64 {
        self.0.read().unwrap_or(0)
    }
}
