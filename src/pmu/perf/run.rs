//! One run: open, start, read periodically, and end: with the command, by time or by a signal. Others hook into it, as
//! for sampling; a control pipe may switch counting on and off.

use super::opened::{CounterNeeds, Counting, How, Opened, Rotation, Unread};
use super::outcome::{End, Frames, Readings, RunResult};
use super::place::{Part, Places, Spot, nothing_left};
use super::software;
use crate::kernel::{Event, Kernel, Order, Subject};
use crate::{Progress, Request, Software, Target};
use nix::errno::Errno;
use std::collections::BTreeSet;
use std::time::Duration;
use tma::error::Result;
use tma::quantity::Missing;

/// The tasks and CPUs of a run.
#[derive(Debug)]
pub struct Attachment<'a> {
    /// As in the request.
    pub target: &'a Target,
    /// Threads, if tasks are measured.
    pub tasks: Vec<i32>,
    /// CPUs that they may run on, or that are measured as a whole.
    pub cpus: Vec<u32>,
    /// Children and new threads too.
    pub inherit: bool,
    /// The task has not called exec yet, which starts the measurement.
    pub enable_on_exec: bool,
}

/// Called in each run of the collector.
pub trait RunHooks {
    /// Before the run: the command is forked and waits.
    ///
    /// # Errors
    /// Any failure; the measurement ends with it.
    fn attach(&mut self, to: &Attachment<'_>) -> Result<()>;
    /// Counting starts now, unless exec starts it.
    fn enable(&mut self);
    /// Counting is turned off, until it is enabled again.
    fn disable(&mut self);
    /// The run has ended. Called once per run, even if it failed.
    fn finish(&mut self);
}

/// No hooks.
#[derive(Debug)]
pub struct NoHooks;

impl RunHooks for NoHooks {
    fn attach(&mut self, _: &Attachment<'_>) -> Result<()> {
        Ok(())
    }
    fn enable(&mut self) {}
    fn disable(&mut self) {}
    fn finish(&mut self) {}
}

/// The pipe as notes on a run name it.
pub(super) const CONTROL: &str = "the control pipe";

/// Whether events count, and how long they did.
#[derive(Debug, Default)]
pub(super) struct Switched {
    /// Since when they do not, if so.
    pub off: Option<Duration>,
    /// How long they did not, in all, before that.
    pub passed: Duration,
    /// When the next reading was due, seen from there.
    pub left: Duration,
    /// Command to be carried out.
    pub asked: Option<Order>,
    /// How often they were turned on.
    pub times: u32,
    /// Commands that are none.
    pub unknown: u32,
}

impl Switched {
    pub(super) fn is_on(&self) -> bool {
        self.off.is_none()
    }

    /// Time until `now` in which events counted.
    pub(super) fn clock(&self, now: Duration) -> Duration {
        self.off.unwrap_or(now).saturating_sub(self.passed)
    }
}

/// First period between readings.
pub(super) const FIRST: Duration = Duration::from_millis(4);
/// A slice of the kernel: PERF_CPU_HRTIMER in kernel/events/core.c.
const SLICE: Duration = Duration::from_millis(4);
/// Minimum readings of an interval with such groups: every group needs one.
const PER_INTERVAL: u32 = 4;

/// One run of a measurement.
pub struct Run<'k, 'r> {
    pub(super) kernel: &'k mut dyn Kernel,
    pub(super) hooks: &'k mut dyn RunHooks,
    pub(super) request: &'r Request<'r>,
    pub(super) part: &'r Part,
    /// Number of places at which a group is opened.
    pub(super) places: usize,
    /// Whether this kernel reads inherited groups.
    pub(super) group_read: bool,
    pub(super) number: u32,
    pub(super) begin: Duration,
    pub(super) period: Duration,
    /// Shortest period in intervals, by the cost of the readings so far.
    pub(super) affordable: Duration,
    pub(super) words: Vec<u64>,
    pub(super) last: Vec<u64>,
    pub(super) delta: Vec<u64>,
    pub(super) unread: Unread,
    /// Needs of groups that were tested, and whether they got counters.
    pub(super) tested: Vec<(CounterNeeds, bool)>,
    /// For each group on standby: what counts now.
    pub(super) counting: Vec<Counting>,
    /// The last group on trial, and when the next trial is.
    pub(super) tried: usize,
    pub(super) next_trial: Duration,
    /// Groups are multiplexed, with each other or with other programs'.
    pub(super) multiplexed: bool,
    /// The order of many groups.
    pub(super) rotation: Rotation,
    /// Whether counting is on.
    pub(super) switched: Switched,
    /// Groups were counted whole again.
    pub(super) rejoined: bool,
    /// CPUs that went offline.
    pub(super) left: BTreeSet<u32>,
    /// Readings failed, but later ones included their counts.
    pub(super) late_readings: bool,
    /// The command had to be killed.
    pub(super) killed: bool,
}

impl<'k, 'r> Run<'k, 'r> {
    /// A run of the groups in `part`.
    pub fn new(
        kernel: &'k mut dyn Kernel,
        request: &'r Request<'r>,
        part: &'r Part,
        number: u32,
        hooks: &'k mut dyn RunHooks,
    ) -> Self {
        Self {
            kernel,
            hooks,
            request,
            part,
            places: 0,
            group_read: true,
            number,
            begin: Duration::ZERO,
            period: FIRST,
            affordable: Duration::ZERO,
            words: Vec::new(),
            last: Vec::new(),
            delta: Vec::new(),
            unread: Unread::new(),
            tested: Vec::new(),
            counting: Vec::new(),
            tried: 0,
            next_trial: Duration::ZERO,
            multiplexed: false,
            rotation: Rotation::default(),
            switched: Switched::default(),
            rejoined: false,
            left: BTreeSet::new(),
            late_readings: false,
            killed: false,
        }
    }

    /// Whether exec starts the counting.
    pub(super) fn enable_on_exec(&self) -> bool {
        let is_command = self.request.target == Target::Command;
        is_command && self.request.delay.is_zero() && !self.is_controlled()
    }

    /// Makes the run.
    pub fn go(&mut self, on_progress: &mut dyn FnMut(Progress)) -> Result<RunResult> {
        if let Some(control) = &self.request.control {
            self.kernel.listen(control)?;
        }
        let command = self.request.command.as_ref();
        let pid = command.map(|c| self.kernel.prepare(c)).transpose()?;
        let opened = self.open(pid);
        let (places, opened) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.abandon();
                return Err(error);
            }
        };
        let denied = self.request.machine.kernel.why_denied().0;
        let template = Event { group_read: false, ..self.template(opened.user_only) };
        let mut software = software::Counters::open(self.kernel, &places, &template, &denied);
        if self.request.target != Target::Command
            && opened.groups.is_empty()
            && software.is_denied()
        {
            software.close(self.kernel);
            self.abandon();
            let how = How::from_start(opened.user_only);
            let gone = |s| self.is_absent(Errno::ESRCH, s, how);
            let ended = places.spots.iter().all(gone);
            return Err(if ended { nothing_left() } else { self.nothing_permitted() });
        }
        let attached = self.attach(&places, opened.user_only);
        let done = attached.and_then(|()| self.count(&opened, &mut software, on_progress));
        self.hooks.finish();
        let result = done.map(|(whole, end)| {
            let totals = end.software.unwrap_or_else(|| software.totals(self.kernel));
            let ended = self.finish_command(&end);
            // Usage covers the whole command, so it is left out where counting is switched.
            let usage = ended.map(|(_, usage)| usage).filter(|_| !self.is_controlled());
            let wall = self.switched.clock(end.at).saturating_sub(whole.clock);
            let software = match self.is_controlled() && self.switched.times == 0 {
                true => Software::missing(&Missing::NotMeasured(
                    format!("no `enable` came through {CONTROL}").into(),
                )),
                false => software.between(&whole.software, &totals, wall, usage),
            };
            self.result(&opened, &whole.frames.finish(), software, &end, ended.map(|(e, _)| e))
        });
        if result.is_err() {
            self.abandon();
        }
        software.close(self.kernel);
        self.close_all(&opened);
        result
    }

    /// Attaches the hooks.
    fn attach(&mut self, places: &Places, user_only: bool) -> Result<()> {
        let request = self.request;
        let task = |s: &Spot| match s.subject {
            Subject::Task(task) => Some(task),
            _ => None,
        };
        let cpus = match places.by_cpu {
            true => places.spots.iter().filter_map(|s| s.cpu).collect(),
            false => request.machine.topology.cpus.iter().map(|c| c.id).collect(),
        };
        self.hooks.attach(&Attachment {
            target: &request.target,
            tasks: places.spots.iter().filter_map(task).collect(),
            cpus,
            inherit: self.template(user_only).inherit,
            enable_on_exec: self.enable_on_exec(),
        })
    }

    /// Kills a command that will not be measured.
    fn abandon(&mut self) {
        self.kernel.signal(libc::SIGKILL);
        self.kernel.reap();
    }

    fn open(&mut self, pid: Option<i32>) -> Result<(Places, Opened)> {
        let places = Places::find(self.kernel, self.request, pid)?;
        self.places = places.spots.len();
        if let (None, Target::Process(pid) | Target::Thread(pid)) = (pid, &self.request.target) {
            self.kernel.watch(*pid)?;
        }
        let probe = Event {
            subject: Subject::Task(0),
            inherit: true,
            exclude_kernel: true,
            enable_on_exec: false,
            ..self.template(true)
        };
        self.group_read = match self.kernel.open(&probe, None) {
            Ok(handle) => {
                self.kernel.close(handle);
                true
            }
            // Before Linux 4.13 inherited groups cannot be read as one.
            Err(errno) => errno != Errno::EINVAL,
        };
        let mut opened = self.open_all(&places)?;
        opened.scopes.clone_from(&places.scopes);
        opened.by_cpu = places.by_cpu;
        Ok((places, opened))
    }

    /// Starts everything, reads until the end.
    fn count(
        &mut self,
        opened: &Opened,
        software: &mut software::Counters,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<(Readings, End)> {
        self.last = vec![0; opened.width];
        self.delta = vec![0; opened.width];
        self.counting = vec![Counting::Parts; opened.wholes.len()];
        self.rotation = Rotation::new(opened, self.kernel.seed());
        let with_exec = self.enable_on_exec();
        let delayed = !self.request.delay.is_zero();
        let (mut end, mut interrupted) = (None, None);
        if delayed {
            self.kernel.start()?;
            let until = self.kernel.now() + self.request.delay;
            // A signal for the command ends the sleep early, and the run only if the command ends.
            while end.is_none() && self.kernel.now() < until {
                end = self.sleep(until, &mut interrupted, on_progress);
            }
        }
        if !with_exec && end.is_none() {
            // Some have counted while it was tested whether they get counters.
            self.read(opened);
            if self.is_controlled() {
                self.begin_off(software);
            } else {
                self.enable(opened);
                software.enable(self.kernel);
                self.hooks.enable();
            }
        }
        let (begin, totals) = match with_exec {
            true => (self.kernel.now(), [None; 5]),
            false => self.software_now(software),
        };
        self.begin = begin;
        let clock = self.switched.clock(begin);
        let mut whole = Readings { frames: Frames::new(), software: totals, since: begin, clock };
        if !delayed {
            self.kernel.start()?;
        }
        let end = match end {
            Some(end) => end,
            None => self.watch(opened, software, &mut whole, interrupted, on_progress),
        };
        Ok((whole, end))
    }

    /// The kernel multiplexes groups in slices of 4 ms in a fixed order. A program whose phases are about as long as a
    /// round is then always seen at the same point of them, and nothing in the counts shows it. So at each reading a
    /// random half of the groups, or fewer, is enabled for the time until the next, whose length is random, too; the
    /// kernel multiplexes these as usual. Each round a group is drawn once.
    ///
    /// Enables the next groups; returns when the next reading is due, which without such groups is `period` from `now`.
    pub(super) fn rotate(&mut self, opened: &Opened, now: Duration) -> Duration {
        if self.rotation.decks.is_empty() {
            return now + self.period;
        }
        let length = self.request.interval;
        let all = length.is_some_and(|length| self.period * PER_INTERVAL > length);
        let next = match all {
            true => self.period,
            false => self.period.mul_f64(0.75 + 0.5 * self.rotation.random()),
        };
        let slices = (next.as_nanos() / SLICE.as_nanos()) as usize;
        for deck in 0..self.rotation.decks.len() {
            let groups = self.rotation.decks[deck].groups.len();
            let n = if all { groups } else { slices.clamp(1, groups.div_ceil(2)) };
            let on = self.rotation.draw(deck, n);
            let before = std::mem::replace(&mut self.rotation.decks[deck].on, on.clone());
            for g in before.iter().filter(|g| !on.contains(g)) {
                self.switch(&opened.groups[*g], false);
            }
            for g in on.iter().filter(|g| !before.contains(g)) {
                self.switch(&opened.groups[*g], true);
            }
        }
        now + next
    }
}
