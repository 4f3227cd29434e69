//! Events on the worker's process: one group of counters, and software events while it is timed, which need no PMU.
//!
//! Page faults can be counted wherever the worker can. Switches and migrations happen in kernel mode,
//! which takes permission to count. The worker also sleeps after every command, which is a switch, so
//! the assumption uses the kernel's count of involuntary switches instead.

use crate::measurement::{Assumed, Assumption, Outcome};
use nix::errno::Errno;
use pmu::kernel::{Event, Handle, Subject};
use pmu::machine::Encoding;
use pmu::perf::{Events, software};

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
            match self.events.open(
                &event(*encoding, process, true),
                self.group.first().copied(),
                &[],
            ) {
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

/// An event of the worker, counted only while it is enabled.
fn event(encoding: Encoding, process: i32, exclude_kernel: bool) -> Event {
    Event {
        encoding,
        subject: Subject::Task(process),
        cpu: None,
        inherit: false,
        exclude_kernel,
        enable_on_exec: false,
        group_read: true,
    }
}

/// The text of the kernel's error.
pub(super) fn refusal(errno: Errno) -> String {
    errno.desc().to_lowercase()
}

/// Open events on a worker.
pub struct SoftwareEvents {
    process: i32,
    events: Events,
    handles: [Option<Handle>; 3],
}

/// Their counts; `None` where the kernel does not permit them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SoftwareCounts {
    /// Page faults.
    pub faults: Option<u64>,
    /// Context switches, including the worker's sleep after each command.
    pub switches: Option<u64>,
    /// Moves to another processor.
    pub migrations: Option<u64>,
}

impl SoftwareEvents {
    /// Starts to count `process`.
    pub fn start(process: i32) -> Self {
        let mut events = Events::default();
        // PERF_COUNT_SW_PAGE_FAULTS, _CONTEXT_SWITCHES and _CPU_MIGRATIONS of linux/perf_event.h.
        let handles = [(2, true), (3, false), (4, false)].map(|(number, exclude_kernel)| {
            let event = event(software(number), process, exclude_kernel);
            let handle = events.open(&event, None, &[]).ok()?;
            events.enable(handle).ok()?;
            Some(handle)
        });
        Self { process, events, handles }
    }

    /// The counts, if it is still the same process.
    pub fn stop(mut self, process: i32) -> SoftwareCounts {
        if process != self.process {
            return SoftwareCounts::default();
        }
        let mut words = Vec::new();
        let mut read = |handle: Option<Handle>| {
            self.events.read(handle?, &mut words).ok()?;
            words.get(3).copied()
        };
        let [faults, switches, migrations] = self.handles.map(&mut read);
        SoftwareCounts { faults, switches, migrations }
    }
}

impl SoftwareCounts {
    /// Adds the counts to the assumptions.
    pub fn enter(&self, assumptions: &mut Vec<Assumption>) {
        if let Some(faults) = self.faults {
            assumptions.push(Assumption {
                name: Assumed::PageFaults,
                outcome: if faults == 0 { Outcome::Held } else { Outcome::Violated },
                how: format!(
                    "{faults} page faults of the worker while it was timed (software event)"
                ),
            });
        }
        let switches = assumptions.iter_mut().find(|i| i.name == Assumed::ContextSwitches);
        if let (Some(all), Some(moved), Some(switches)) = (self.switches, self.migrations, switches)
        {
            switches.how += &format!(
                "; software events: {all} switches including the worker's sleep after each command, \
                 {moved} migrations"
            );
        }
    }
}
