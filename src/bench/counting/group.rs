//! One group of counters on a process.

use nix::errno::Errno;
use pmu::kernel::{Event, Handle, Subject};
use pmu::machine::Encoding;
use pmu::perf::Events;

/// Counts one group of events at a time, started and stopped around a command.
pub trait Counting {
    /// Opens a stopped group on a process and closes the previous one.
    ///
    /// # Errors
    /// The event that was refused; nothing is open then.
    fn open(&mut self, process: i32, events: &[Encoding]) -> Result<(), Refused>;
    /// Starts the group.
    ///
    /// # Errors
    /// The kernel's error.
    fn start(&mut self) -> Result<(), Errno>;
    /// Stops the group and reads what it has counted since it was opened.
    ///
    /// # Errors
    /// The kernel's error.
    fn stop(&mut self) -> Result<Total, Errno>;
    /// Closes the group.
    fn close(&mut self);
}

/// An event that the kernel refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Its index in the group.
    pub at: usize,
    /// Why.
    pub errno: Errno,
}

/// Counts of a group since it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Total {
    /// Nanoseconds it was enabled.
    pub enabled: u64,
    /// Nanoseconds it counted.
    pub running: u64,
    /// Counts, in the order of the events.
    pub values: Vec<u64>,
}

/// Counts through perf_event, user mode only.
#[derive(Default)]
pub struct PerfCounting {
    events: Events,
    group: Vec<Handle>,
    words: Vec<u64>,
}

impl Counting for PerfCounting {
    fn open(&mut self, process: i32, events: &[Encoding]) -> Result<(), Refused> {
        self.close();
        for (at, encoding) in events.iter().enumerate() {
            let event = Event {
                encoding: *encoding,
                subject: Subject::Task(process),
                cpu: None,
                inherit: false,
                exclude_kernel: true,
                enable_on_exec: false,
                group_read: true,
            };
            match self.events.open(&event, self.group.first().copied(), &[]) {
                Ok(handle) => self.group.push(handle),
                Err(errno) => {
                    self.close();
                    return Err(Refused { at, errno });
                }
            }
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), Errno> {
        self.events.enable(*self.group.first().ok_or(Errno::EBADF)?)
    }

    fn stop(&mut self) -> Result<Total, Errno> {
        let leader = *self.group.first().ok_or(Errno::EBADF)?;
        self.events.disable(leader)?;
        self.events.read(leader, &mut self.words)?;
        match self.words.as_slice() {
            [_, enabled, running, values @ ..] if values.len() >= self.group.len() => Ok(Total {
                enabled: *enabled,
                running: *running,
                values: values[..self.group.len()].to_vec(),
            }),
            // The kernel's end of file for events in its error state (perf_event_open(2)).
            _ => Err(Errno::EIO),
        }
    }

    fn close(&mut self) {
        self.group.drain(..).rev().for_each(|h| self.events.close(h));
    }
}

/// The text of the kernel's error.
pub(super) fn refusal(errno: nix::errno::Errno) -> String {
    errno.desc().to_lowercase()
}
