//! Reads all open groups between start and end of a run, at a period that keeps the cost low, and reports
//! intervals.

use super::end;
use super::opened::{Instance, Opened};
use super::outcome::{End, Frames, Readings};
use super::run::{FIRST, Run};
use super::software::{self, Counters, Totals};
use crate::kernel::Wake;
use crate::{Interval, Progress, Target};
use nix::errno::Errno;
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest period: the fixed top-down metrics are 8-bit fractions that lose their meaning over
/// long stretches (Linux, `topdown.txt`: read every few seconds).
const LONGEST: Duration = Duration::from_secs(2);
/// Readings of an interval with multiplexed groups: enough for a jackknife even if some are empty. Without them one
/// reading has it all.
const PER_INTERVAL: u32 = 16;
/// Minimum ratio of the period to the time of a reading: the cost is below 1 %, …
const COST: u32 = 100;
/// … except for the first readings of a run.
const COST_AT_FIRST: u32 = 4;
/// … and for the readings of an interval, which is also shown: altogether below what perf stat takes.
const COST_IN_INTERVALS: u32 = 400;
/// Longer than any measurement.
pub(super) const NEVER: Duration = Duration::from_secs(1 << 32);
/// Number of frames from which the rate of readings is reduced because of their cost: half remain.
const ENOUGH: usize = 24;
/// Events of one CPU from which on it is visited to read them: reading one from another CPU interrupts
/// that, which costs more than half as much as going there.
const VISIT_FROM: usize = 4;

impl Run<'_, '_> {
    /// Waits, reads and emits intervals until the end.
    pub(super) fn watch(
        &mut self,
        opened: &Opened,
        software: &mut software::Counters,
        whole: &mut Readings,
        mut interrupted: Option<i32>,
        on_progress: &mut dyn FnMut(Progress),
    ) -> End {
        let finish = self.request.duration.map(|d| self.begin + d);
        let length = self.request.interval;
        if let Some(length) = length {
            self.period = (length / PER_INTERVAL).clamp(FIRST / 4, LONGEST);
        }
        if opened.groups.is_empty() {
            // Nothing to read: do not wake up for it.
            self.period = NEVER;
        }
        let (since, clock) = (self.begin, whole.clock);
        let first = Readings { frames: Frames::new(), software: whole.software, since, clock };
        let mut current = length.map(|_| first);
        let mut tick = self.begin + if self.switched.is_on() { self.period } else { NEVER };
        loop {
            let boundary = current.as_ref().zip(length).map(|(c, l)| self.boundary(c.since, l));
            let until = [Some(tick), boundary, finish].into_iter().flatten().min();
            let until = until.unwrap_or(tick);
            let mut end = self.sleep(until, &mut interrupted, on_progress);
            if let Some(order) = self.switched.asked.take() {
                tick = self.carry_out(order, opened, software, tick);
                continue;
            }
            let now = self.kernel.now();
            if end.is_none() && finish.is_some_and(|f| now >= f) {
                end = Some(End { at: now, software: None, interrupted, forced: true });
            }
            if let Some(end) = &mut end {
                self.end_counting(opened, software, end);
            }
            let passed = boundary.is_some_and(|b| now >= b);
            let at_boundary = match passed && end.is_none() {
                true => Some(self.read_beside(opened, Some(software))),
                false => {
                    self.read(opened);
                    None
                }
            };
            if end.is_none() && self.switched.is_on() {
                self.try_wholes(opened, now);
            }
            let merged = whole.frames.push(&self.delta);
            if let Some(readings) = &mut current {
                readings.frames.push(&self.delta);
            }
            // If this process was not scheduled, the interval is longer.
            let until = match &end {
                Some(end) => Some((end.at, end.software)),
                None => at_boundary.map(|(at, totals)| (at, Some(totals))),
            };
            if let Some((at, totals)) = until
                && let Some(readings) = current.take()
            {
                let totals = totals.unwrap_or_else(|| software.totals(self.kernel));
                let next = self.emit_interval(opened, software, readings, at, totals, on_progress);
                current = Some(next);
            }
            if let Some(end) = end {
                return end;
            }
            let spent = self.kernel.now().saturating_sub(now);
            self.pace(spent, merged, &mut whole.frames);
            if self.switched.is_on() {
                tick = self.rotate(opened, now);
            }
        }
    }

    /// Ends a measurement of what goes on running: software counts first, as groups take time to read.
    fn end_counting(&mut self, opened: &Opened, software: &mut software::Counters, end: &mut End) {
        if self.request.target != Target::Command {
            let (at, totals) = self.software_now(software);
            (end.at, end.software) = (at, Some(totals));
            self.disable(opened);
        }
    }

    /// The end of an interval that began at `since`: the next multiple of `length`. If multiples have
    /// passed without a reading, the interval is longer.
    fn boundary(&self, since: Duration, length: Duration) -> Duration {
        let length = length.as_nanos().max(1);
        let next = (since.saturating_sub(self.begin).as_nanos() / length + 1) * length;
        self.begin + Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX))
    }

    /// Chooses the next period, from the time of a reading and whether frames were merged. The rate is
    /// halved in steps, so that frames stay of equal length.
    fn pace(&mut self, spent: Duration, merged: bool, frames: &mut Frames) {
        if let Some(length) = self.request.interval {
            // Costly readings: fewer an interval, down to one.
            let most = length.min(LONGEST);
            self.affordable = self.affordable.max(spent * COST_IN_INTERVALS);
            let usual = (length / PER_INTERVAL).max(FIRST / 4).max(self.affordable);
            self.period = if self.multiplexed { usual.min(most) } else { most };
            return;
        }
        self.period = self.period.max(spent * COST_AT_FIRST);
        let costly = spent * COST > self.period && frames.len() >= ENOUGH;
        if costly && !merged {
            frames.merge();
        }
        if (merged || costly) && self.period < LONGEST {
            self.period = (self.period * 2).min(LONGEST);
            frames.halve_rate();
        }
    }

    /// Waits until `until`; `Some` if the run ends.
    pub(super) fn sleep(
        &mut self,
        until: Duration,
        interrupted: &mut Option<i32>,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Option<End> {
        let wake = self.kernel.wait(Some(until));
        let at = self.kernel.now();
        match wake {
            Wake::Time => None,
            Wake::Control(order) => {
                self.switched.asked = Some(order);
                None
            }
            Wake::Exited | Wake::TargetEnded => {
                Some(End { at, software: None, interrupted: *interrupted, forced: false })
            }
            Wake::Signal { number, from_terminal } => {
                // The first signal is for the command, which may have data to save; the second ends
                // the run.
                let again = interrupted.replace(number).is_some();
                let forced = again || self.request.command.is_none();
                if !from_terminal && !again {
                    self.kernel.signal(number);
                }
                on_progress(Progress::Interrupted { signal: number });
                let interrupted = Some(number);
                forced.then_some(End { at, software: None, interrupted, forced: true })
            }
        }
    }

    /// The software counts, and the middle of the time it took to read them.
    pub(super) fn software_now(
        &mut self,
        software: &mut software::Counters,
    ) -> (Duration, software::Totals) {
        let before = self.kernel.now();
        let totals = software.totals(self.kernel);
        (before + self.kernel.now().saturating_sub(before) / 2, totals)
    }

    /// Emits the interval that ends with these software counts and begins the next.
    fn emit_interval(
        &mut self,
        opened: &Opened,
        software: &mut software::Counters,
        readings: Readings,
        at: Duration,
        totals: software::Totals,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Readings {
        let clock = self.switched.clock(at);
        let wall = clock.saturating_sub(readings.clock);
        let next = Readings { frames: Frames::new(), software: totals, since: at, clock };
        if wall.is_zero() && self.is_controlled() {
            return next;
        }
        let span = (readings.since - self.begin, at - self.begin);
        let frames = readings.frames.finish();
        let mut counts = end::counts(self.request, opened, &frames, &self.unread, wall);
        counts.iter_mut().for_each(|c| c.interval = Some(span));
        let software = software.between(&readings.software, &totals, wall, None);
        let run = self.number;
        on_progress(Progress::Interval(Box::new(Interval { run, span, counts, software })));
        next
    }

    pub(super) fn enable(&mut self, opened: &Opened) {
        for handle in opened.leaders() {
            let _ = self.kernel.enable(handle);
        }
    }

    pub(super) fn disable(&mut self, opened: &Opened) {
        let wholes = opened.wholes.iter().flat_map(|w| w.group.leaders());
        for handle in opened.leaders().chain(wholes) {
            let _ = self.kernel.disable(handle);
        }
    }

    /// Reads all groups; `delta` has the counts since the last reading.
    pub(super) fn read(&mut self, opened: &Opened) {
        self.read_beside(opened, None);
    }

    /// As [`Self::read`], and the software counts while a CPU is visited; when those were read, on average.
    pub(super) fn read_beside(
        &mut self,
        opened: &Opened,
        mut software: Option<&mut Counters>,
    ) -> (Duration, Totals) {
        self.delta.fill(0);
        let (mut at, mut totals) = (Duration::ZERO, Totals::default());
        let mut instances: Vec<&Instance> = opened.all().flat_map(|g| &g.instances).collect();
        let beside = software.as_ref().map_or(0, |s| s.len());
        if opened.by_cpu && instances.len() + beside >= VISIT_FROM * self.places.max(1) {
            // Each visit of another CPU is a migration: the first is where this thread runs.
            let here = self.kernel.here();
            let order = |cpu: Option<u32>| (cpu != here, cpu);
            instances.sort_by_key(|i| order(i.spot.cpu));
            let of_software = software.iter().flat_map(|s| s.cpus());
            let all = instances.iter().map(|i| i.spot.cpu).chain(of_software.copied());
            let stops: BTreeSet<_> = all.map(order).collect();
            let mut rest = instances.as_slice();
            for (_, cpu) in &stops {
                self.kernel.visit(*cpu);
                if let Some(software) = &mut software {
                    at += self.kernel.now();
                    software.add(*cpu, self.kernel, &mut totals);
                }
                let n = rest.iter().take_while(|i| i.spot.cpu == *cpu).count();
                rest[..n].iter().for_each(|i| self.read_instance(i));
                rest = &rest[n..];
            }
            self.kernel.visit(None);
            at /= u32::try_from(stops.len()).unwrap_or(1).max(1);
            if let Some(software) = software {
                software.complete(self.kernel, &mut totals);
            }
        } else {
            instances.iter().for_each(|i| self.read_instance(i));
            if let Some(software) = software {
                (at, totals) = self.software_now(software);
            }
        }
        self.share_wholes(opened);
        self.multiplexed |= self.is_multiplexed(opened);
        (at, totals)
    }

    /// Whether a group had to wait for counters since the last reading.
    fn is_multiplexed(&self, opened: &Opened) -> bool {
        let waits = |i: &Instance| match self.delta.get(i.offset..i.offset + 2) {
            // Times of a group are not read at one instant everywhere.
            Some([enabled, running]) => *running as f64 + 1e3 < 0.99 * *enabled as f64,
            _ => false,
        };
        !opened.wholes.is_empty() || opened.groups.iter().flat_map(|g| &g.instances).any(waits)
    }

    fn read_instance(&mut self, instance: &Instance) {
        match self.read_words(instance) {
            Ok(()) => self.late_readings |= self.unread.remove(&instance.offset).is_some(),
            Err(errno) => {
                self.unread.insert(instance.offset, errno);
            }
        }
    }

    fn read_words(&mut self, instance: &Instance) -> Result<(), Errno> {
        let mut at = instance.offset;
        let mut put = |value: u64| {
            if let (Some(last), Some(delta)) = (self.last.get_mut(at), self.delta.get_mut(at)) {
                *delta = value.saturating_sub(*last);
                *last = value.max(*last);
            }
            at += 1;
        };
        let Some(leader) = instance.handles.first() else { return Ok(()) };
        self.kernel.read(*leader, &mut self.words)?;
        let members = &instance.handles[1..];
        match self.words.as_slice() {
            [nr, times_and_values @ ..] if self.group_read => {
                let apart = *nr == 1 && !members.is_empty();
                times_and_values.iter().take(2 + instance.handles.len()).for_each(|v| put(*v));
                if apart {
                    // The kernel takes groups apart when their CPU goes offline (perf_event_exit_cpu): each member
                    // retains its count.
                    self.left.extend(instance.spot.cpu);
                    for member in members {
                        let read = self.kernel.read(*member, &mut self.words);
                        put(self.words.get(3).copied().filter(|_| read.is_ok()).unwrap_or(0));
                    }
                }
                Ok(())
            }
            [value, enabled, running] => {
                [enabled, running, value].into_iter().for_each(|v| put(*v));
                let mut outcome = Ok(());
                for member in members {
                    let read = self.kernel.read(*member, &mut self.words);
                    // A failed read leaves the old words: no new counts.
                    put(if read.is_ok() { self.words[0] } else { 0 });
                    outcome = outcome.and(read);
                }
                outcome
            }
            // The kernel's end of file for events in its error state (perf_event_open(2)).
            _ => Err(Errno::EIO),
        }
    }
}
