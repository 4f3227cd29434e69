//! Splits groups that the kernel refuses, and those that it accepts but never gives counters, because other
//! programs hold them (a group that is only multiplexed stays whole).
//!
//! A group that got no counters is opened whole from time to time, and counted so as soon as it gets them.

use super::opened::{CounterNeeds, Counting, How, OpenGroup, Opened, Part, Placed, Stop, Whole};
use super::place::{Coded, Spot, ids};
use super::run::Run;
use crate::kernel::{Handle, Subject};
use nix::errno::Errno;
use std::time::Duration;
use tma::quantity::Missing;
use tma::schedule::{self, Budget};
use tma::tables::EventId;

/// How far the kernel accepts a group.
enum Accepted {
    /// All its events that exist on this PMU, open.
    Whole(Vec<(Coded, Handle)>),
    /// The events before this one as one group; the rest does not fit.
    UpTo(usize),
    /// Nothing: the thread has ended or the CPU is offline.
    Absent,
}

/// How long a group may wait for its slice: those of 62 groups of other programs, of 4 ms each (PERF_CPU_HRTIMER in
/// kernel/events/core.c). Profilers of whole trees have about 40.
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// How long when another group has waited that long in vain: multiplexing is then not the cause.
const SHORT_WAIT: Duration = Duration::from_millis(60);

/// Time between two trials.
const RETRY: Duration = Duration::from_millis(500);
/// How long a whole group may be without counters.
const TRIAL: Duration = Duration::from_millis(60);

impl Run<'_, '_> {
    /// Splits `events` into parts that the kernel accepts as groups, and opens them at the first of
    /// `spots` that is present.
    pub(super) fn split_by_kernel(
        &mut self,
        core: usize,
        events: &[Coded],
        spots: &[Spot],
        opened: &mut Opened,
    ) -> std::result::Result<Vec<Part>, Stop> {
        let mut spots = spots.iter();
        let mut spot = spots.next();
        let mut parts: Vec<Part> = Vec::new();
        let mut pending = vec![events.to_vec()];
        while let Some(group) = pending.pop() {
            let Some(here) = spot else {
                let nothing =
                    Missing::NotMeasured("all threads had ended or all CPUs were offline".into());
                group.iter().for_each(|e| opened.miss(core, e.id, nothing.clone()));
                continue;
            };
            match self.accepted(core, &group, here, opened) {
                Ok(Accepted::Absent) => {
                    opened.omit(here);
                    spot = spots.next();
                    pending.push(group);
                }
                Ok(Accepted::Whole(group)) if group.is_empty() => {}
                Ok(Accepted::Whole(group)) => {
                    let (events, handles) = group.into_iter().unzip();
                    parts.push(Part { events, open: Some((*here, handles)) });
                }
                Ok(Accepted::UpTo(at)) => {
                    let halves = self.halves(core, &group);
                    let two = || vec![group[..at].to_vec(), group[at..].to_vec()];
                    pending.extend(halves.unwrap_or_else(two).into_iter().rev());
                }
                Err(stop) => {
                    parts.into_iter().for_each(|part| self.close_part(part));
                    return Err(stop);
                }
            }
        }
        Ok(parts)
    }

    /// Whether the kernel accepts `group` as one; events that it does not have are omitted.
    fn accepted(
        &mut self,
        core: usize,
        group: &[Coded],
        spot: &Spot,
        opened: &mut Opened,
    ) -> std::result::Result<Accepted, Stop> {
        let how = How::from_start(opened.user_only);
        let mut open: Vec<(Coded, Handle)> = Vec::new();
        let mut outcome = Ok(None);
        for (at, event) in group.iter().enumerate() {
            let leader = open.first().map(|(_, h)| *h);
            let mut got = self.open_one(event, spot, leader, how);
            if leader.is_some() && got == Err(Errno::EINVAL) {
                got = self.open_one(event, spot, None, how);
                if let Ok(alone) = got {
                    self.kernel.close(alone);
                    outcome = Ok(Some(Accepted::UpTo(at)));
                    break;
                }
            }
            match got {
                Ok(handle) => open.push((*event, handle)),
                Err(Errno::EACCES | Errno::EPERM) if !event.any || !opened.user_only => {
                    outcome = Err(Stop::Denied);
                    break;
                }
                Err(errno) if self.is_absent(errno, spot, how) => {
                    outcome = Ok(Some(Accepted::Absent));
                    break;
                }
                Err(errno) => match self.reason(core, event.id, errno) {
                    Ok(why) => opened.miss(core, event.id, why),
                    Err(fatal) => {
                        outcome = Err(Stop::Fatal(fatal));
                        break;
                    }
                },
            }
        }
        if let Ok(None) = outcome {
            return Ok(Accepted::Whole(open));
        }
        open.iter().for_each(|(_, h)| self.kernel.close(*h));
        outcome.map(|split| split.unwrap_or(Accepted::Absent))
    }

    /// Two smaller groups for one that does not fit, as the planner halves it.
    pub(super) fn halves(&self, core: usize, group: &[Coded]) -> Option<Vec<Vec<Coded>>> {
        let table = self.request.cores[core].table;
        let machine = self.request.machine;
        let watchdog = machine.kernel.nmi_watchdog == Some(true);
        let budget = Budget::of(table, machine.topology.smt, watchdog);
        let halves = schedule::split(&schedule::Group { events: ids(group) }, table, &budget);
        let smaller = halves.len() > 1 && halves.iter().all(|h| h.events.len() < group.len());
        let coded = |id: &EventId| group.iter().find(|e| e.id == *id).copied();
        smaller
            .then(|| halves.iter().map(|h| h.events.iter().filter_map(coded).collect()).collect())
    }

    /// The parts to count of a group that gets no counters as a whole. `None`: it gets them, or no part
    /// does either.
    pub(super) fn smaller(
        &mut self,
        core: usize,
        part: &Part,
        cpus: Option<&[u32]>,
        how: How,
    ) -> Option<Vec<Vec<Coded>>> {
        let (spot, handles) = part.open.as_ref()?;
        if part.events.len() < 2 || self.starts(core, &part.events, spot, Some(handles), cpus, how)
        {
            return None;
        }
        let mut pending = self.halves(core, &part.events)?;
        pending.reverse();
        let (mut parts, mut helps) = (Vec::new(), false);
        while let Some(part) = pending.pop() {
            let starts = self.starts(core, &part, spot, None, cpus, how);
            helps |= starts;
            match self.halves(core, &part).filter(|_| !starts) {
                Some(halves) => pending.extend(halves.into_iter().rev()),
                // A part without counters is reported as not counted.
                None => parts.push(part),
            }
        }
        helps.then_some(parts)
    }

    /// Whether a group ever gets counters, tested once for groups of equal needs. It is `true` if that
    /// cannot be tested.
    fn starts(
        &mut self,
        core: usize,
        events: &[Coded],
        spot: &Spot,
        open: Option<&[Handle]>,
        cpus: Option<&[u32]>,
        how: How,
    ) -> bool {
        let needs = self.needs(core, events);
        let known = self.tested.iter().find(|(other, starts)| match starts {
            true => needs.is_within(other),
            false => other.is_within(&needs),
        });
        if let Some((_, starts)) = known {
            return *starts;
        }
        let starts = self.gets_counters(events, spot, open, cpus, how);
        self.tested.push((needs, starts));
        starts
    }

    /// Events of tasks are tested on this process, those of CPUs where they are opened: the kernel multiplexes each
    /// kind separately, and CPUs come first.
    fn gets_counters(
        &mut self,
        events: &[Coded],
        spot: &Spot,
        open: Option<&[Handle]>,
        cpus: Option<&[u32]>,
        how: How,
    ) -> bool {
        let by_cpu = !matches!(spot.subject, Subject::Task(_));
        let in_vain = self.tested.iter().any(|(_, starts)| !starts);
        let wait = if in_vain { SHORT_WAIT } else { LONGEST_WAIT };
        if let (Subject::AllTasks, Some([leader, ..])) = (spot.subject, open) {
            return self.kernel.runs(*leader, None, wait) != Some(false);
        }
        let here = match by_cpu {
            true => Spot { subject: Subject::AllTasks, ..*spot },
            false => Spot { subject: Subject::Task(0), cpu: None, scope: 0 },
        };
        let Ok(Placed::Open(handles)) = self.open_at(events, &here, how) else { return true };
        let cpus = cpus.filter(|_| !by_cpu);
        let ran = handles.first().and_then(|h| self.kernel.runs(*h, cpus, wait));
        handles.into_iter().for_each(|h| self.kernel.close(h));
        ran != Some(false)
    }

    fn needs(&self, core: usize, events: &[Coded]) -> CounterNeeds {
        let table = self.request.cores[core].table;
        let need = |id: EventId| {
            let spec = &table.events[usize::from(id)].spec;
            let mask = |all: &Vec<u8>| all.iter().fold(0u64, |m, c| m | 1 << (c & 31));
            match (spec.fixed, spec.metric) {
                (Some(fixed), _) => 1 << 40 | u64::from(fixed),
                (_, Some(metric)) => 2 << 40 | u64::from(metric),
                // A counter of any number comes last: it is the easiest to have.
                _ => spec.counters.as_ref().map_or(u64::MAX, mask),
            }
        };
        let mut needs: Vec<u64> = events.iter().map(|e| need(e.id)).collect();
        needs.sort_unstable();
        CounterNeeds { core, needs }
    }

    /// Enters what whole groups have counted since the last reading as counts of their parts.
    pub(super) fn share_wholes(&mut self, opened: &Opened) {
        for (whole, counting) in opened.wholes.iter().zip(&self.counting) {
            if matches!(counting, Counting::Whole(_)) {
                share(whole, &opened.groups, &mut self.delta);
            }
        }
    }

    /// Tries a whole group, or ends the trial, after a reading at `now`.
    pub(super) fn try_wholes(&mut self, opened: &Opened, now: Duration) {
        for (at, whole) in opened.wholes.iter().enumerate() {
            let ran = self.ran(&whole.group);
            let parts = &opened.groups[whole.parts.clone()];
            self.counting[at] = match self.counting[at] {
                Counting::Trial(_) if ran => {
                    parts.iter().for_each(|g| self.switch(g, false));
                    self.rejoined = true;
                    // The next trial follows at once.
                    self.next_trial = now;
                    Counting::Whole(now)
                }
                Counting::Trial(since) if now - since >= TRIAL => {
                    self.switch(&whole.group, false);
                    Counting::Parts
                }
                Counting::Whole(_) if ran => Counting::Whole(now),
                Counting::Whole(since) if now - since >= TRIAL => {
                    self.switch(&whole.group, false);
                    parts.iter().for_each(|g| self.switch(g, true));
                    Counting::Parts
                }
                other => other,
            };
        }
        self.begin_trial(opened, now);
    }

    /// One at a time: a group that does not fit takes time from the others.
    fn begin_trial(&mut self, opened: &Opened, now: Duration) {
        let on_trial = |c: &Counting| matches!(c, Counting::Trial(_));
        if now < self.next_trial || self.counting.iter().any(on_trial) {
            return;
        }
        let waiting = |at: &usize| self.counting[*at] == Counting::Parts;
        let n = opened.wholes.len();
        let next = (0..n).map(|i| (self.tried + 1 + i) % n.max(1)).find(waiting);
        if let Some(at) = next {
            self.switch(&opened.wholes[at].group, true);
            self.counting[at] = Counting::Trial(now);
            (self.tried, self.next_trial) = (at, now + RETRY);
        }
    }

    /// Starts or stops a group everywhere.
    pub(super) fn switch(&mut self, group: &OpenGroup, on: bool) {
        for leader in group.leaders() {
            let _ = if on { self.kernel.enable(leader) } else { self.kernel.disable(leader) };
        }
    }

    /// Whether a group ran anywhere since the last reading.
    fn ran(&self, group: &OpenGroup) -> bool {
        let running = |offset: usize| self.delta.get(offset + 1).is_some_and(|t| *t > 0);
        group.instances.iter().any(|i| running(i.offset))
    }
}

/// Adds the counts of `whole` in `delta` to its parts.
fn share(whole: &Whole, groups: &[OpenGroup], delta: &mut [u64]) {
    for instance in &whole.group.instances {
        for part in &groups[whole.parts.clone()] {
            let Some(own) = part.instances.iter().find(|i| i.spot == instance.spot) else {
                continue;
            };
            let event = |id| whole.group.events.iter().position(|e| e == id);
            let values = part.events.iter().map(|id| event(id).map(|at| 2 + at));
            for (to, from) in [Some(0), Some(1)].into_iter().chain(values).enumerate() {
                if let Some(from) = from {
                    delta[own.offset + to] += delta[instance.offset + from];
                }
            }
        }
    }
}
