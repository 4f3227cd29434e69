//! The simulated counters: which of them run, and what they count as time passes.

use super::{Scripted, State};
use crate::kernel::{Event, Handle, Subject};
use nix::errno::Errno;
use std::collections::BTreeMap;
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
        let of = |i: &usize| self.so_far.events[*i].as_ref().is_some_and(|s| s.leader == leader);
        (0..self.so_far.events.len()).filter(of).collect()
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
    pub(super) fn place(&self, state: &State) -> Option<u32> {
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

    /// Advances all events by `step`, at most one multiplexing period.
    pub(super) fn pass(&mut self, step: Duration) {
        let leaders: Vec<usize> = (0..self.so_far.events.len())
            .filter(|i| self.so_far.events[*i].as_ref().is_some_and(|s| s.leader == *i && s.on))
            .collect();
        let runs = self.scheduled(&leaders);
        let began =
            self.so_far.began.is_some() && self.so_far.ended.is_none() || !self.threads.is_empty();
        for leader in leaders {
            let ran = runs.contains(&leader);
            for member in self.members(leader) {
                self.count(member, step, ran, began);
            }
        }
        self.so_far.now += step;
    }

    /// The groups that run now: as many as fit, beginning with another one in each period.
    pub(super) fn scheduled(&self, leaders: &[usize]) -> Vec<usize> {
        let placed = |l: &usize| {
            let cpu = self.so_far.events[*l].as_ref().and_then(|s| self.place(s))?;
            Some((*l, cpu, self.hardware_in(&self.members(*l))))
        };
        let placed: Vec<(usize, u32, usize)> = leaders.iter().filter_map(placed).collect();
        let (software, hardware): (Vec<_>, Vec<_>) = placed.into_iter().partition(|p| p.2 == 0);
        let mut runs: Vec<usize> = software.iter().map(|p| p.0).collect();
        let mut used: BTreeMap<u32, usize> = BTreeMap::new();
        for at in 0..hardware.len() {
            let (leader, cpu, needs) = hardware[(at + self.so_far.rotations) % hardware.len()];
            let taken = used.entry(cpu).or_default();
            if *taken + needs <= self.free_on(cpu) {
                *taken += needs;
                runs.push(leader);
            }
        }
        runs
    }

    pub(super) fn count(&mut self, at: usize, step: Duration, ran: bool, task_lives: bool) {
        let Some(state) = &mut self.so_far.events[at] else { return };
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
                self.rates.get(&encoding.config).copied().unwrap_or(0.0)
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

    pub(super) fn open_files(&self) -> usize {
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
