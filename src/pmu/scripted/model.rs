//! The state of the simulated kernel: processes and counts as time passes, and refusals.

use super::{Scripted, State};
use crate::kernel::{Event, Handle, Subject};
use nix::errno::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_CPU_CLOCK` and `PERF_COUNT_SW_TASK_CLOCK`.
const CLOCKS: [u64; 2] = [0, 1];

impl Scripted {
    pub(super) fn task_cpu(&self) -> u32 {
        let before = self.task_on.iter().rev().find(|(from, _)| *from <= self.so_far.now);
        before.map_or(0, |(_, cpu)| *cpu)
    }

    pub(super) fn is_hardware(event: &Event) -> bool {
        event.encoding.kind != SOFTWARE
    }

    /// Members of the group led by `leader`, itself first.
    pub(super) fn members(&self, leader: usize) -> Vec<usize> {
        self.so_far.members.get(&leader).cloned().unwrap_or_default()
    }

    pub(super) fn hardware_in(&self, group: &[usize]) -> usize {
        let hardware = |i: &&usize| {
            self.so_far.events[**i].as_ref().is_some_and(|s| Self::is_hardware(&s.event))
        };
        group.iter().filter(hardware).count()
    }

    pub(super) fn free_on(&self, cpu: u32) -> usize {
        let all = self.busy.get(&u32::MAX).copied().unwrap_or(0);
        let here = self.busy.get(&cpu).copied().unwrap_or(0);
        self.counters.saturating_sub(all + here)
    }

    /// Where the group of `state` would count now; `None` if nowhere.
    fn place(&self, state: &State) -> Option<u32> {
        let cpu = match (state.event.subject, state.event.cpu) {
            (Subject::Task(_), bound) => {
                let cpu = self.task_cpu();
                (bound.is_none_or(|b| b == cpu)).then_some(cpu)?
            }
            (_, cpu) => cpu?,
        };
        let allowed = self.pmu_cpus.get(&state.event.encoding.kind);
        allowed.is_none_or(|all| all.contains(&cpu)).then_some(cpu)
    }

    /// The share of the next `step` that lies in every second phase.
    fn in_other_phases(&self, step: Duration) -> f64 {
        let (from, to) = (self.so_far.now, self.so_far.now + step);
        let mut at = self.phases.partition_point(|begin| *begin <= from);
        let (mut since, mut other) = (from, Duration::ZERO);
        while since < to {
            let next = self.phases.get(at).map_or(to, |next| (*next).min(to));
            if at % 2 == 1 {
                other += next - since;
            }
            (since, at) = (next, at + 1);
        }
        other.as_secs_f64() / step.as_secs_f64().max(1e-9)
    }

    /// The leaders of the groups that are enabled.
    pub(super) fn leaders_on(&self) -> Vec<usize> {
        let on =
            |i: &usize| self.so_far.events[*i].as_ref().is_some_and(|s| s.leader == *i && s.on);
        (0..self.so_far.events.len()).filter(on).collect()
    }

    /// Advances all events by `step`, at most one multiplexing period.
    pub(super) fn pass(&mut self, step: Duration) {
        let leaders = self.leaders_on();
        let runs = self.scheduled(&leaders, self.so_far.rotations);
        let other = self.in_other_phases(step);
        let began =
            self.so_far.began.is_some() && self.so_far.ended.is_none() || !self.threads.is_empty();
        for leader in leaders {
            let ran = runs.contains(&leader);
            for member in self.members(leader) {
                self.count(member, step, other, ran, began);
            }
        }
        self.so_far.now += step;
    }

    /// The groups that run in a period: as many as fit, beginning with another one in each. Those of
    /// whole CPUs come before those of tasks (perf_event_sched_in in kernel/events/core.c).
    pub(super) fn scheduled(&self, leaders: &[usize], period: usize) -> Vec<usize> {
        let placed = |l: &usize| {
            let state = self.so_far.events[*l].as_ref()?;
            let by_cpu = !matches!(state.event.subject, Subject::Task(_));
            let cpu = self.place(state).filter(|cpu| !self.has_left(*cpu))?;
            Some((Some(*l), by_cpu, cpu, self.hardware_in(&self.members(*l))))
        };
        let placed: Vec<_> = leaders.iter().filter_map(placed).collect();
        let (software, ours): (Vec<_>, Vec<_>) = placed.into_iter().partition(|p| p.3 == 0);
        let now = self.so_far.now;
        let others = self.others.iter().filter(|(from, to, _)| (*from..*to).contains(&now));
        let cpus: BTreeSet<u32> = ours.iter().map(|p| p.2).collect();
        let others = others.flat_map(|(.., n)| cpus.iter().map(|cpu| (None, true, *cpu, *n)));
        let (of_cpus, of_tasks): (Vec<_>, Vec<_>) = others.chain(ours).partition(|p| p.1);
        let mut runs: Vec<usize> = software.iter().filter_map(|p| p.0).collect();
        let mut used: BTreeMap<u32, usize> = BTreeMap::new();
        for hardware in [of_cpus, of_tasks] {
            for at in 0..hardware.len() {
                let (leader, _, cpu, needs) = hardware[(at + period) % hardware.len()];
                let taken = used.entry(cpu).or_default();
                if *taken + needs <= self.free_on(cpu) {
                    *taken += needs;
                    runs.extend(leader);
                }
            }
        }
        runs
    }

    pub(super) fn has_left(&self, cpu: u32) -> bool {
        self.leaving.iter().any(|(when, left)| *left == cpu && *when <= self.so_far.now)
    }

    fn count(&mut self, at: usize, step: Duration, other: f64, ran: bool, task_lives: bool) {
        let left = self.so_far.events[at].as_ref().and_then(|s| s.event.cpu);
        let left = left.is_some_and(|cpu| self.has_left(cpu));
        let Some(state) = &mut self.so_far.events[at] else { return };
        if left {
            return;
        }
        let counts = !matches!(state.event.subject, Subject::Task(t) if t != 0 && !task_lives);
        if !counts {
            return;
        }
        state.enabled += step;
        if ran {
            state.running += step;
            let encoding = state.event.encoding;
            let rate = if encoding.kind == SOFTWARE {
                f64::from(u8::from(CLOCKS.contains(&encoding.config)))
            } else {
                let usual = self.rates.get(&encoding.config).copied().unwrap_or(0.0);
                let then = self.other_rates.get(&encoding.config).copied().unwrap_or(usual);
                usual + (then - usual) * other
            };
            state.value += rate * step.as_nanos() as f64;
        }
    }

    pub(super) fn advance(&mut self, to: Duration) {
        while self.so_far.now < to {
            let slot = self.rotation.as_nanos().max(1);
            let next = (self.so_far.now.as_nanos() / slot + 1) * slot;
            let next = Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX));
            self.pass(next.min(to) - self.so_far.now);
            if self.so_far.now == next {
                self.so_far.rotations += 1;
            }
        }
    }

    fn open_files(&self) -> usize {
        self.so_far.events.iter().flatten().count()
    }

    pub(super) fn refuse(&self, event: &Event, leader: Option<Handle>) -> Option<Errno> {
        let encoding = &event.encoding;
        if self.open_files() >= self.files.0 {
            return Some(Errno::EMFILE);
        }
        if matches!(event.subject, Subject::Task(tid) if self.ended_threads.contains(&tid)) {
            return Some(Errno::ESRCH);
        }
        if event.cpu.is_some_and(|cpu| self.offline.contains(&cpu)) {
            return Some(Errno::ENODEV);
        }
        match self.denied {
            Some(true) => return Some(Errno::EACCES),
            Some(false) if !event.exclude_kernel => return Some(Errno::EACCES),
            _ => {}
        }
        if event.inherit && event.group_read && self.no_inherited_groups {
            return Some(Errno::EINVAL);
        }
        if !Self::is_hardware(event) {
            return None;
        }
        if self.absent.contains(&encoding.config) {
            return Some(Errno::ENOENT);
        }
        let here = |(cpu, config, _): &&(u32, u64, Errno)| {
            event.cpu == Some(*cpu) && encoding.config == *config
        };
        if let Some((.., errno)) = self.refusals.iter().find(here) {
            return Some(*errno);
        }
        let group = leader.map_or(0, |l| self.hardware_in(&self.members(l.0)));
        (group + 1 > self.counters).then_some(Errno::EINVAL)
    }
}
