//! What every kernel counts: software events where they may be opened, else what wait4 tells.

use super::live::software as encoding;
use super::place::{Places, Spot};
use crate::collect::Software;
use crate::collect::kernel::{Event, Handle, Kernel, Usage};
use crate::machine::Encoding;
use crate::quantity::{Measured, Missing};
use std::time::Duration;

/// Our software events, by their numbers in linux/perf_event.h.
const EVENTS: [Encoding; COUNT] = [
    encoding(1), // task clock, in nanoseconds
    encoding(3), // context switches
    encoding(4), // migrations
    encoding(2), // page faults
    encoding(6), // major page faults
];
const COUNT: usize = 5;
/// `PERF_COUNT_SW_CPU_CLOCK`: the task clock of whole CPUs, idle time included (as perf has it).
const CPU_CLOCK: Encoding = encoding(0);

/// Open software events.
pub struct Counters {
    handles: Vec<[Option<Handle>; COUNT]>,
    words: Vec<u64>,
    by_cpu: bool,
    user_only: bool,
    denied: Option<String>,
}

/// Totals since counting started; `None` where nothing could be opened.
pub type Totals = [Option<u64>; COUNT];

impl Counters {
    /// Opens them at every place, in user mode only where the kernel asks for that. What cannot
    /// be opened is missing later, never an error.
    pub fn open(kernel: &mut dyn Kernel, places: &Places, template: &Event, denied: &str) -> Self {
        let user_only = Event { exclude_kernel: true, ..*template };
        let mut handles = Vec::new();
        let mut opened = *template;
        for event in [template, &user_only] {
            handles = places.spots.iter().map(|spot| open_at(kernel, spot, event)).collect();
            opened = *event;
            if handles.iter().flatten().any(Option::is_some) {
                break;
            }
        }
        let any = handles.iter().flatten().any(Option::is_some);
        let denied = (!any).then(|| denied.to_owned());
        let user_only = opened.exclude_kernel;
        Self { handles, words: Vec::new(), by_cpu: places.by_cpu, user_only, denied }
    }

    /// Whether none of them could be opened for lack of permission.
    pub fn is_denied(&self) -> bool {
        self.denied.is_some()
    }

    /// Starts them.
    pub fn enable(&self, kernel: &mut dyn Kernel) {
        for handle in self.handles.iter().flatten().flatten() {
            let _ = kernel.enable(*handle);
        }
    }

    /// Reads the totals.
    pub fn totals(&mut self, kernel: &mut dyn Kernel) -> Totals {
        let mut totals = [None; COUNT];
        for here in &self.handles {
            for (total, handle) in totals.iter_mut().zip(here) {
                let Some(handle) = handle else { continue };
                if kernel.read(*handle, &mut self.words).is_ok()
                    && let Some(value) = self.words.first()
                {
                    *total = Some(total.unwrap_or(0) + value);
                }
            }
        }
        totals
    }

    /// Closes them.
    pub fn close(self, kernel: &mut dyn Kernel) {
        self.handles.into_iter().flatten().flatten().for_each(|h| kernel.close(h));
    }

    /// What came in from `before` to `after`, in `wall` time. `usage` is what wait4 told of a
    /// command that has ended; it stands in for what the kernel would not count for us.
    pub fn between(
        &self,
        before: &Totals,
        after: &Totals,
        wall: Duration,
        usage: Option<Usage>,
    ) -> Software {
        let why = match &self.denied {
            Some(why) => Missing::NotPermitted(why.clone()),
            None => Missing::NotSupported("software event".into()),
        };
        let delta = |at: usize| -> Measured {
            match (before[at], after[at]) {
                (Some(b), Some(a)) => Ok(a.saturating_sub(b) as f64),
                (None, Some(a)) => Ok(a as f64),
                _ => Err(why.clone()),
            }
        };
        let or = |counted: Measured, used: fn(Usage) -> f64| {
            counted.or_else(|why| usage.map(used).ok_or(why))
        };
        // Switches and migrations happen in kernel mode: a user-only event reads 0 for them.
        let kernel_side = |at: usize| {
            if self.user_only && !self.by_cpu {
                Err(Missing::NotPermitted(
                    "they happen in kernel mode, which is not counted".into(),
                ))
            } else {
                delta(at)
            }
        };
        let clock = delta(0).map(|ns| ns * 1e-9);
        Software {
            wall,
            task_clock: or(clock, |u| u.cpu_seconds),
            context_switches: or(kernel_side(1), |u| u.context_switches as f64),
            migrations: kernel_side(2),
            page_faults: or(delta(3), |u| u.page_faults as f64),
            major_faults: or(delta(4), |u| u.major_faults as f64),
        }
    }
}

fn open_at(kernel: &mut dyn Kernel, spot: &Spot, template: &Event) -> [Option<Handle>; COUNT] {
    let by_cpu = spot.cpu.is_some();
    EVENTS.map(|encoding| {
        let encoding = if by_cpu && encoding == EVENTS[0] { CPU_CLOCK } else { encoding };
        let (subject, cpu, group_read) = (spot.subject, spot.cpu, false);
        let inherit = template.inherit && !by_cpu;
        kernel.open(&Event { encoding, subject, cpu, group_read, inherit, ..*template }, None).ok()
    })
}
