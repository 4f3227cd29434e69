//! Software events of the worker while it is timed; they need no PMU.
//!
//! Page faults are counted wherever the worker may be counted at all. Switches and migrations
//! happen in kernel mode, so they take the right to count that. The worker also sleeps after every
//! command, which is a switch: the kernel's own account of involuntary switches stays the measure.

use crate::measurement::{Assumption, Outcome};
use pmu::kernel::{Event, Handle, Subject};
use pmu::perf::{Events, software};

/// Open events on a worker.
pub struct SoftwareEvents {
    process: i32,
    events: Events,
    handles: [Option<Handle>; 3],
}

/// What they counted; `None` where the kernel does not let us.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SoftwareCounts {
    /// Page faults.
    pub faults: Option<u64>,
    /// Context switches, the worker's own sleep after each command included.
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

    /// What came in, if it is still the process we started with.
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
    /// Adds what was seen to the assumptions.
    pub fn enter(&self, assumptions: &mut Vec<Assumption>) {
        if let Some(faults) = self.faults {
            assumptions.push(Assumption {
                name: "page-faults",
                outcome: if faults == 0 { Outcome::Held } else { Outcome::Violated },
                how: format!("{faults} of the worker while it was timed, by the software event"),
            });
        }
        let switches = assumptions.iter_mut().find(|i| i.name == "context-switches");
        if let (Some(all), Some(moved), Some(switches)) = (self.switches, self.migrations, switches)
        {
            switches.how += &format!(
                "; by the software events {all} switches, the worker's sleep after each command \
                 included, and {moved} moves to another processor"
            );
        }
    }
}
