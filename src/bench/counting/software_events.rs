//! Software events of the worker while it is timed; they need no PMU.
//!
//! Page faults can be counted wherever the worker can. Switches and migrations happen in kernel mode,
//! which takes permission to count. The worker also sleeps after every command, which is a switch, so
//! the assumption uses the kernel's count of involuntary switches instead.

use crate::measurement::{Assumed, Assumption, Outcome};
use pmu::kernel::{Event, Handle, Subject};
use pmu::perf::{Events, software};

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
            let event = Event {
                encoding: software(number),
                subject: Subject::Task(process),
                cpu: None,
                inherit: false,
                exclude_kernel,
                enable_on_exec: false,
                group_read: true,
            };
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
