//! Software counts, which need no PMU: software events if they may be opened, otherwise the usage by wait4 and `/proc`.
//!
//! The CPU time of whole CPUs is their non-idle time in /proc/stat (in ticks of 10 ms): the software clocks include idle
//! time.

use super::place::{Places, Spot};
use crate::Software;
use crate::kernel::{Event, Handle, Kernel, Subject, Usage};
use crate::machine::Encoding;
use software as encoding;
use std::collections::BTreeMap;
use std::time::Duration;
use tma::quantity::{Measured, Missing};

/// The dummy event: counts nothing, but has the times it was enabled and scheduled.
pub const DUMMY: Encoding = software(9);

/// A software event of linux/perf_event.h by its number.
pub const fn software(number: u64) -> Encoding {
    const PERF_TYPE_SOFTWARE: u32 = 1;
    let (config1, config2) = (0, 0);
    let (user_only, kernel_only) = (false, false);
    Encoding { kind: PERF_TYPE_SOFTWARE, config: number, config1, config2, user_only, kernel_only }
}

/// The software events, by their numbers in linux/perf_event.h.
const EVENTS: [Encoding; COUNT] = [
    encoding(1), // task clock, in nanoseconds
    encoding(3), // context switches
    encoding(4), // migrations
    encoding(2), // page faults
    encoding(6), // major page faults
];
const COUNT: usize = 5;
/// Share of the processor time of a program that has one thread.
const NEARLY_ALL: f64 = 0.95;
/// `PERF_COUNT_SW_CPU_CLOCK`: the time a control group's tasks run on a CPU.
const CPU_CLOCK: Encoding = encoding(0);

/// Open software events.
pub struct Counters {
    handles: Vec<[Option<Handle>; COUNT]>,
    /// The CPU of each of them.
    cpus: Vec<Option<u32>>,
    words: Vec<u64>,
    by_cpu: bool,
    /// CPUs, if whole CPUs are counted.
    whole: Vec<u32>,
    user_only: bool,
    denied: Option<String>,
    /// Tasks whose context switches are read from /proc.
    tasks: Vec<i32>,
    /// Last reading of the context switches of each of their threads.
    switched: BTreeMap<i32, u64>,
    /// Non-idle time of whole CPUs when counting was switched off, if it is.
    off: Option<u64>,
    /// Non-idle time of whole CPUs while counting was off.
    passed: u64,
}

/// Totals since counting started; `None` where nothing could be opened.
pub type Totals = [Option<u64>; COUNT];

impl Counters {
    /// Opens them at every place, in user mode only if the kernel requires it. Counts of events that
    /// cannot be opened are missing; that is no error.
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
        let whole = |s: &Spot| s.cpu.filter(|_| s.subject == Subject::AllTasks);
        let whole = places.spots.iter().filter_map(whole).collect();
        let (words, by_cpu, switched) = (Vec::new(), places.by_cpu, BTreeMap::new());
        let mut all = Self {
            handles,
            cpus: places.spots.iter().map(|s| s.cpu.filter(|_| places.by_cpu)).collect(),
            words,
            by_cpu,
            whole,
            user_only,
            denied,
            switched,
            tasks: Vec::new(),
            off: None,
            passed: 0,
        };
        if (user_only || !any) && !by_cpu {
            let task = |s: &Spot| match s.subject {
                Subject::Task(task) => Some(task),
                _ => None,
            };
            all.tasks = places.spots.iter().filter_map(task).collect();
        }
        all
    }

    /// Whether none could be opened for lack of permission.
    pub fn is_denied(&self) -> bool {
        self.denied.is_some()
    }

    /// Starts them.
    pub fn enable(&mut self, kernel: &mut dyn Kernel) {
        if let Some((off, now)) = self.off.take().zip(self.busy(kernel)) {
            self.passed += now.saturating_sub(off);
        }
        for handle in self.handles.iter().flatten().flatten() {
            let _ = kernel.enable(*handle);
        }
    }

    /// Stops them.
    pub fn disable(&mut self, kernel: &mut dyn Kernel) {
        for handle in self.handles.iter().flatten().flatten() {
            let _ = kernel.disable(*handle);
        }
        self.off = self.busy(kernel);
    }

    /// Leaves out what is counted otherwise than by events, and cannot be turned off.
    pub fn only_events(&mut self) {
        self.tasks.clear();
    }

    /// Non-idle time of whole CPUs in nanoseconds.
    fn busy(&self, kernel: &mut dyn Kernel) -> Option<u64> {
        let busy = kernel.busy(&self.whole).filter(|_| !self.whole.is_empty());
        busy.and_then(|time| u64::try_from(time.as_nanos()).ok())
    }

    /// Reads the totals.
    pub fn totals(&mut self, kernel: &mut dyn Kernel) -> Totals {
        let mut totals = [None; COUNT];
        let mut cpus = self.cpus.clone();
        cpus.sort_unstable();
        cpus.dedup();
        for cpu in cpus {
            if cpu.is_some() {
                kernel.visit(cpu);
            }
            self.add(cpu, kernel, &mut totals);
        }
        if self.by_cpu {
            kernel.visit(None);
        }
        self.complete(kernel, &mut totals);
        totals
    }

    /// The CPU of each place.
    pub(super) fn cpus(&self) -> &[Option<u32>] {
        &self.cpus
    }

    /// Number of open events.
    pub(super) fn len(&self) -> usize {
        self.handles.iter().flatten().flatten().count()
    }

    /// Adds what the events of one CPU have counted.
    pub(super) fn add(&mut self, cpu: Option<u32>, kernel: &mut dyn Kernel, totals: &mut Totals) {
        for (here, _) in self.handles.iter().zip(&self.cpus).filter(|(_, at)| **at == cpu) {
            for (total, handle) in totals.iter_mut().zip(here) {
                let Some(handle) = handle else { continue };
                if kernel.read(*handle, &mut self.words).is_ok()
                    && let Some(value) = self.words.first()
                {
                    *total = Some(total.unwrap_or(0) + value);
                }
            }
        }
    }

    /// Adds what no event counts, when those of all CPUs are there.
    pub(super) fn complete(&mut self, kernel: &mut dyn Kernel, totals: &mut Totals) {
        if !self.whole.is_empty() {
            let busy = self.off.or_else(|| self.busy(kernel));
            totals[0] = busy.map(|busy| busy.saturating_sub(self.passed));
        }
        if !self.tasks.is_empty() {
            totals[1] = self.switches(kernel);
        }
    }

    /// Context switches so far of all threads; for ended ones the last reading.
    fn switches(&mut self, kernel: &mut dyn Kernel) -> Option<u64> {
        for (thread, switches) in kernel.switches(&self.tasks) {
            self.switched.insert(thread, switches);
        }
        (!self.switched.is_empty()).then(|| self.switched.values().sum())
    }

    /// Closes them.
    pub fn close(self, kernel: &mut dyn Kernel) {
        self.handles.into_iter().flatten().flatten().for_each(|h| kernel.close(h));
    }

    /// The counts from `before` to `after`, in `wall` time. `usage` is the usage of a command that has
    /// ended, by wait4; it replaces counts of events that could not be opened.
    pub fn between(
        &self,
        before: &Totals,
        after: &Totals,
        wall: Duration,
        usage: Option<Usage>,
    ) -> Software {
        // A command is only a part of the counts of CPUs and control groups.
        let usage = usage.filter(|_| !self.by_cpu);
        let why = match &self.denied {
            Some(why) => Missing::NotPermitted(why.clone().into()),
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
        // wait4 has the total of a command that has ended; /proc the counts of its threads so far.
        let switches = or(kernel_side(1), |u| u.context_switches as f64);
        let switches = switches.or_else(|why| match (self.tasks.is_empty(), after[1]) {
            (false, Some(_)) => delta(1),
            _ => Err(why),
        });
        let clock = match (self.whole.is_empty(), before[0], after[0]) {
            (true, ..) => delta(0),
            (false, Some(b), Some(a)) => Ok(a.saturating_sub(b) as f64),
            _ => Err(Missing::NotMeasured(
                "the CPU clock of whole CPUs includes idle time, and /proc/stat cannot be read"
                    .into(),
            )),
        };
        let clock = clock.map(|ns| ns * 1e-9);
        let task_clock = or(clock, |u| u.cpu_seconds);
        let scheduled = usage.and_then(|usage| usage.scheduled).zip(task_clock.clone().ok());
        // That of the first thread is known: it must have run nearly all of the time.
        let queued = scheduled.filter(|((ran, _), task)| *ran >= NEARLY_ALL * task);
        let one_thread = || Missing::NotMeasured("it is known of the first thread only".into());
        Software {
            wall,
            task_clock,
            task_clock_error: (!self.whole.is_empty()).then(|| tick_error(self.whole.len())),
            context_switches: switches,
            migrations: kernel_side(2),
            page_faults: or(delta(3), |u| u.page_faults as f64),
            major_faults: or(delta(4), |u| u.major_faults as f64),
            queued: queued.map(|((_, waited), _)| waited).ok_or_else(one_thread),
        }
    }
}

fn open_at(kernel: &mut dyn Kernel, spot: &Spot, template: &Event) -> [Option<Handle>; COUNT] {
    let by_cpu = spot.cpu.is_some();
    EVENTS.map(|encoding| {
        let is_clock = encoding == EVENTS[0];
        if is_clock && spot.subject == Subject::AllTasks {
            return None;
        }
        let encoding = if by_cpu && is_clock { CPU_CLOCK } else { encoding };
        let (subject, cpu, group_read) = (spot.subject, spot.cpu, false);
        let inherit = template.inherit && !by_cpu;
        kernel.open(&Event { encoding, subject, cpu, group_read, inherit, ..*template }, None).ok()
    })
}

/// Half width of the 95 % interval of a difference of two readings of /proc/stat, in seconds, for so
/// many CPUs. Each of the six non-idle times is truncated to ticks of 10 ms (USER_HZ) at both ends; the
/// variance of a uniform error is tick²/12.
fn tick_error(cpus: usize) -> f64 {
    const TICK: f64 = 0.01;
    const READINGS: f64 = 2.0 * 6.0;
    1.96 * TICK * (READINGS / 12.0 * cpus as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_ten_milliseconds_make_an_error_of_two_ticks_on_each_cpu() {
        // By hand: 12 readings of variance (10 ms)²/12 each: 10 ms standard deviation for one CPU.
        assert!((tick_error(1) - 0.0196).abs() < 1e-6);
        assert!((tick_error(4) - 0.0392).abs() < 1e-6);
    }
}
