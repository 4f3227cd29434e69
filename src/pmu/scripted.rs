//! A simulated kernel: multiplexed counters, known rates, and scripted refusals. All decisions of
//! the collector are tested against it without a PMU and without waiting.
//!
//! The model: every CPU has the same number of counters; each hardware event takes one, software
//! events none. Groups that do not fit together are multiplexed with period [`Scripted::rotation`].
//! An event counts its rate times the time it runs. Time passes only in [`Kernel::wait`].

use super::kernel::{Event, Handle, Kernel, Subject, Usage, Wake};
use super::{Command, Exit};
use nix::errno::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use tma::error::{Error, Result};

/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_CPU_CLOCK` and `PERF_COUNT_SW_TASK_CLOCK`.
const CLOCKS: [u64; 2] = [0, 1];

/// The script of the simulated kernel, and a record of its calls.
#[derive(Debug, Clone)]
pub struct Scripted {
    /// Counts per nanosecond of each `config` (or `config` and `config1`).
    pub rates: BTreeMap<u64, f64>,
    /// Counters of a CPU.
    pub counters: usize,
    /// Counters in use by other programs, by CPU; `u32::MAX`: on every CPU.
    pub busy: BTreeMap<u32, usize>,
    /// Period of multiplexing.
    pub rotation: Duration,
    /// Configs this kernel does not have (ENOENT).
    pub absent: BTreeSet<u64>,
    /// Refuses events that count the kernel (paranoid 2), or all (`Some(true)`).
    pub denied: Option<bool>,
    /// Refuses inherited groups, as before Linux 4.13.
    pub no_inherited_groups: bool,
    /// CPUs of each PMU type that is not on all of them.
    pub pmu_cpus: BTreeMap<u32, Vec<u32>>,
    /// Non-idle share of each CPU; other CPUs are unknown.
    pub loads: BTreeMap<u32, f64>,
    /// CPUs that are busy in a system-wide measurement, and on which tasks run: from when.
    pub task_on: Vec<(Duration, u32)>,
    /// Threads of the watched process; empty: there is none.
    pub threads: Vec<i32>,
    /// Those of them that have ended but are still listed.
    pub ended_threads: BTreeSet<i32>,
    /// CPUs that went offline after the topology was read.
    pub offline: BTreeSet<u32>,
    /// Configs that a CPU refuses, and how.
    pub refusals: Vec<(u32, u64, Errno)>,
    /// When reading the event with this config fails (EIO): from, to.
    pub unreadable: Vec<(u64, Duration, Duration)>,
    /// Lifetime of the command (or the watched process) once started.
    pub lifetime: Duration,
    /// How the command ends at the end of its lifetime.
    pub exit: Exit,
    /// Why exec fails.
    pub exec_error: Option<Error>,
    /// The command does not end by SIGINT.
    pub stubborn: bool,
    /// The command ends by no signal but SIGKILL.
    pub deaf: bool,
    /// Another process waits for the command: how it ended is unknown.
    pub reaped_elsewhere: bool,
    /// Signals to this process: when, which, from a terminal.
    pub signals: Vec<(Duration, i32, bool)>,
    /// Times in which this process is not scheduled: from when, and for how long. A wait that ends in
    /// one returns late.
    pub stalls: Vec<(Duration, Duration)>,
    /// Open files allowed, and the limit after raising it.
    pub files: (usize, usize),
    /// Every event opened, with its leader.
    pub opened: Vec<(Event, Option<Handle>)>,
    /// Signals sent to the command.
    pub sent: Vec<i32>,
    /// How often a command was started.
    pub started: u32,
    /// State of the simulation.
    pub so_far: SoFar,
}

/// State of a simulation.
#[derive(Debug, Clone, Default)]
pub struct SoFar {
    now: Duration,
    began: Option<Duration>,
    ended: Option<Exit>,
    events: Vec<Option<State>>,
    rotations: usize,
}

impl SoFar {
    /// Time since its start.
    pub fn now(&self) -> Duration {
        self.now
    }
}

#[derive(Debug, Clone)]
struct State {
    event: Event,
    leader: usize,
    on: bool,
    enabled: Duration,
    running: Duration,
    value: f64,
}

impl Default for Scripted {
    fn default() -> Self {
        Self {
            rates: BTreeMap::new(),
            counters: 4,
            busy: BTreeMap::new(),
            rotation: Duration::from_millis(4),
            absent: BTreeSet::new(),
            denied: None,
            no_inherited_groups: false,
            pmu_cpus: BTreeMap::new(),
            loads: BTreeMap::new(),
            task_on: vec![(Duration::ZERO, 0)],
            threads: Vec::new(),
            ended_threads: BTreeSet::new(),
            offline: BTreeSet::new(),
            refusals: Vec::new(),
            unreadable: Vec::new(),
            lifetime: Duration::from_secs(1),
            exit: Exit::Status(0),
            exec_error: None,
            stubborn: false,
            deaf: false,
            reaped_elsewhere: false,
            signals: Vec::new(),
            stalls: Vec::new(),
            files: (1024, 1024),
            opened: Vec::new(),
            sent: Vec::new(),
            started: 0,
            so_far: SoFar::default(),
        }
    }
}

impl Scripted {
    fn task_cpu(&self) -> u32 {
        let before = self.task_on.iter().rev().find(|(from, _)| *from <= self.so_far.now);
        before.map_or(0, |(_, cpu)| *cpu)
    }

    fn is_hardware(event: &Event) -> bool {
        event.encoding.kind != SOFTWARE
    }

    /// Members of the group led by `leader`, itself first.
    fn members(&self, leader: usize) -> Vec<usize> {
        let of = |i: &usize| self.so_far.events[*i].as_ref().is_some_and(|s| s.leader == leader);
        (0..self.so_far.events.len()).filter(of).collect()
    }

    fn hardware_in(&self, group: &[usize]) -> usize {
        let hardware = |i: &&usize| {
            self.so_far.events[**i].as_ref().is_some_and(|s| Self::is_hardware(&s.event))
        };
        group.iter().filter(hardware).count()
    }

    fn free_on(&self, cpu: u32) -> usize {
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

    /// Advances all events by `step`, at most one multiplexing period.
    fn pass(&mut self, step: Duration) {
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
    fn scheduled(&self, leaders: &[usize]) -> Vec<usize> {
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

    fn count(&mut self, at: usize, step: Duration, ran: bool, task_lives: bool) {
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

    fn advance(&mut self, to: Duration) {
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

    fn refuse(&self, event: &Event, leader: Option<Handle>) -> Option<Errno> {
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

impl Kernel for Scripted {
    fn open(
        &mut self,
        event: &Event,
        leader: Option<Handle>,
    ) -> std::result::Result<Handle, Errno> {
        if let Some(errno) = self.refuse(event, leader) {
            return Err(errno);
        }
        self.opened.push((*event, leader));
        let at = self.so_far.events.len();
        self.so_far.events.push(Some(State {
            event: *event,
            leader: leader.map_or(at, |l| l.0),
            on: false,
            enabled: Duration::ZERO,
            running: Duration::ZERO,
            value: 0.0,
        }));
        Ok(Handle(at))
    }

    fn close(&mut self, event: Handle) {
        self.so_far.events[event.0] = None;
    }

    fn enable(&mut self, leader: Handle) -> std::result::Result<(), Errno> {
        self.so_far.events[leader.0].as_mut().ok_or(Errno::EBADF)?.on = true;
        Ok(())
    }

    fn disable(&mut self, leader: Handle) -> std::result::Result<(), Errno> {
        self.so_far.events[leader.0].as_mut().ok_or(Errno::EBADF)?.on = false;
        Ok(())
    }

    fn read(&mut self, leader: Handle, words: &mut Vec<u64>) -> std::result::Result<(), Errno> {
        let first = self.so_far.events[leader.0].as_ref().ok_or(Errno::EBADF)?;
        let now = self.so_far.now;
        let fails = |(config, from, to): &(u64, Duration, Duration)| {
            *config == first.event.encoding.config && (*from..*to).contains(&now)
        };
        if Self::is_hardware(&first.event) && self.unreadable.iter().any(fails) {
            return Err(Errno::EIO);
        }
        let times = [first.enabled.as_nanos() as u64, first.running.as_nanos() as u64];
        words.clear();
        if !first.event.group_read {
            words.push(first.value as u64);
            words.extend(times);
            return Ok(());
        }
        let members = self.members(leader.0);
        words.push(members.len() as u64);
        words.extend(times);
        words.extend(members.iter().flat_map(|m| &self.so_far.events[*m]).map(|s| s.value as u64));
        Ok(())
    }

    fn runs(&mut self, leader: Handle, _: Option<&[u32]>, _: Duration) -> Option<bool> {
        let busy = self.busy.get(&u32::MAX).copied().unwrap_or(0);
        let needs = self.hardware_in(&self.members(leader.0));
        Some(needs <= self.counters.saturating_sub(busy))
    }

    fn open_cgroup(&mut self, folder: &Path) -> Result<Handle> {
        if folder.ends_with("absent") {
            return Err(Error::failed("there is no control group absent"));
        }
        Ok(Handle(0))
    }

    fn raise_file_limit(&mut self) -> bool {
        let raised = self.files.1 > self.files.0;
        self.files.0 = self.files.1;
        raised
    }

    fn threads(&mut self, _: i32) -> std::result::Result<Vec<i32>, Errno> {
        if self.threads.is_empty() { Err(Errno::ESRCH) } else { Ok(self.threads.clone()) }
    }

    fn busy(&mut self, cpus: &[u32]) -> Option<Duration> {
        let loads = cpus.iter().map(|cpu| self.loads.get(cpu).copied());
        loads.sum::<Option<f64>>().map(|load| self.so_far.now.mul_f64(load))
    }

    fn now(&mut self) -> Duration {
        self.so_far.now
    }

    fn prepare(&mut self, _: &Command) -> Result<i32> {
        (self.so_far.began, self.so_far.ended) = (None, None);
        Ok(4711)
    }

    fn start(&mut self) -> Result<()> {
        if let Some(error) = &self.exec_error {
            return Err(error.clone());
        }
        self.started += 1;
        self.so_far.began = Some(self.so_far.now);
        for state in self.so_far.events.iter_mut().flatten() {
            state.on |= state.event.enable_on_exec;
        }
        Ok(())
    }

    fn watch(&mut self, _: i32) -> Result<()> {
        self.so_far.began = Some(self.so_far.now);
        Ok(())
    }

    fn wait(&mut self, until: Option<Duration>) -> Wake {
        if self.so_far.ended.is_some() {
            return Wake::Exited;
        }
        let end = self.so_far.began.map(|b| b + self.lifetime);
        let signal = self.signals.first().map(|s| s.0.max(self.so_far.now));
        let next = [until, end, signal].into_iter().flatten().min().unwrap_or(self.so_far.now);
        self.advance(next);
        if let Some((from, length)) = self.stalls.first().copied()
            && next >= from
        {
            self.stalls.remove(0);
            self.advance(from + length);
        }
        if signal == Some(next) {
            let (_, number, from_terminal) = self.signals.remove(0);
            if from_terminal && !self.stubborn && !self.deaf {
                self.so_far.ended = Some(Exit::Signal(number));
            }
            return Wake::Signal { number, from_terminal };
        }
        if end == Some(next) {
            if !self.threads.is_empty() {
                return Wake::TargetEnded;
            }
            self.so_far.ended = Some(self.exit);
            return Wake::Exited;
        }
        Wake::Time
    }

    fn signal(&mut self, number: i32) {
        self.sent.push(number);
        let stubborn = self.stubborn && number == libc::SIGINT;
        let deaf = self.deaf && number != libc::SIGKILL;
        if self.so_far.ended.is_none() && !stubborn && !deaf {
            self.so_far.ended = Some(Exit::Signal(number));
        }
    }

    fn reap(&mut self) -> Option<(Exit, Usage)> {
        let began = self.so_far.began.take()?;
        let seconds = self.so_far.now.saturating_sub(began).as_secs_f64();
        let usage = Usage { cpu_seconds: seconds, context_switches: 7, ..Usage::default() };
        (!self.reaped_elsewhere).then(|| (self.so_far.ended.unwrap_or(self.exit), usage))
    }
}
