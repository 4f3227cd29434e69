//! One run: open, start, read periodically, and end: with the command, by time or by a signal.

use super::frames::Frames;
use super::opened::{Opened, Unread};
use super::parts::Part;
use super::place::{Places, Spot};
use super::{result, software};
use crate::kernel::{Event, Kernel, Subject, Usage, Wake};
use crate::sampling::{Attachment, RunHooks};
use crate::{Exit, Interval, Progress, Request, Software, Target};
use nix::errno::Errno;
use std::time::Duration;
use tma::counts::Counts;
use tma::error::{Error, Result};

/// First period between readings.
const FIRST: Duration = Duration::from_millis(4);
/// Longest period: the fixed top-down metrics are 8-bit fractions that lose their meaning over
/// long stretches (Linux, `topdown.txt`: read every few seconds).
const LONGEST: Duration = Duration::from_secs(2);
/// Readings of an interval: enough for a jackknife even if multiplexing leaves some empty.
const PER_INTERVAL: u32 = 16;
/// Minimum ratio of the period to the time of a reading: the cost is below 1 %, …
const COST: u32 = 100;
/// … except for the first readings of a run.
const COST_AT_FIRST: u32 = 4;
/// Time between SIGTERM and SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer than any measurement.
const NEVER: Duration = Duration::from_secs(1 << 32);
/// Number of frames from which the rate of readings is reduced because of their cost: half remain.
const ENOUGH: usize = 24;

/// One run of a measurement.
pub struct Run<'k, 'r> {
    pub(super) kernel: &'k mut dyn Kernel,
    hooks: &'k mut dyn RunHooks,
    pub(super) request: &'r Request<'r>,
    pub(super) part: &'r Part,
    /// Number of places at which a group is opened.
    pub(super) places: usize,
    /// Whether this kernel reads inherited groups.
    pub(super) group_read: bool,
    number: u32,
    begin: Duration,
    period: Duration,
    pub(super) words: Vec<u64>,
    pub(super) last: Vec<u64>,
    pub(super) delta: Vec<u64>,
    pub(super) unread: Unread,
    /// Readings failed, but later ones included their counts.
    pub(super) late_readings: bool,
    /// The command had to be killed.
    killed: bool,
}

/// Result of a run.
#[derive(Debug)]
pub struct RunResult {
    /// Counts by kind of core and scope.
    pub counts: Vec<Counts>,
    /// Software counts.
    pub software: Software,
    /// How the command ended, unless this program ended it.
    pub exit: Option<Exit>,
    /// The signal that ended the run early.
    pub interrupted: Option<i32>,
    /// Kernel mode was not counted.
    pub user_only: bool,
    /// Time on each kind of core, nanoseconds; empty unless hybrid.
    pub core_time: Vec<Option<u64>>,
    /// What a report must state.
    pub notes: Vec<String>,
}

/// How the counting ended.
struct End {
    /// When.
    at: Duration,
    interrupted: Option<i32>,
    /// The command is still running and has to be ended.
    forced: bool,
}

/// The readings of a whole run or of one interval.
struct Readings {
    frames: Frames,
    software: software::Totals,
    since: Duration,
}

/// The error if all threads have ended or all CPUs are offline.
fn nothing_left() -> Error {
    Error::failed("there is nothing to count on")
        .because("all its threads have ended, or all CPUs are offline")
        .hint("ps -eL lists processes and threads")
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
            words: Vec::new(),
            last: Vec::new(),
            delta: Vec::new(),
            unread: Unread::new(),
            late_readings: false,
            killed: false,
        }
    }

    /// Whether exec starts the counting.
    pub(super) fn enable_on_exec(&self) -> bool {
        self.request.target == Target::Command && self.request.delay.is_zero()
    }

    /// Makes the run.
    pub fn go(&mut self, on_progress: &mut dyn FnMut(Progress)) -> Result<RunResult> {
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
            let gone = |s| self.is_absent(Errno::ESRCH, s, opened.user_only);
            let ended = places.spots.iter().all(gone);
            return Err(if ended { nothing_left() } else { self.nothing_permitted() });
        }
        let attached = self.attach(&places, opened.user_only);
        let done = attached.and_then(|()| self.count(&opened, &mut software, on_progress));
        self.hooks.finish();
        let result = done.map(|(whole, end)| {
            let totals = software.totals(self.kernel);
            let ended = self.finish_command(&end);
            let usage = ended.map(|(_, usage)| usage);
            let wall = end.at.saturating_sub(self.begin);
            let software = software.between(&whole.software, &totals, wall, usage);
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

    /// Nothing at all can be counted on this target.
    fn nothing_permitted(&self) -> Error {
        let kernel = &self.request.machine.kernel;
        let (subject, (cause, remedy)) = match &self.request.target {
            Target::System | Target::Cpus(_) => ("whole CPUs".to_owned(), kernel.why_no_cpus()),
            Target::Cgroup(_) => ("a control group".to_owned(), kernel.why_no_cpus()),
            Target::Process(id) | Target::Thread(id) => {
                let why = owner(*id).map(|owner| kernel.why_not_theirs(&owner));
                (format!("process {id}"), why.unwrap_or_else(|| kernel.why_denied()))
            }
            Target::Command => ("this process".to_owned(), kernel.why_denied()),
        };
        Error::failed(format!("not permitted to count on {subject}")).because(cause).hint(remedy)
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
            self.enable(opened);
            software.enable(self.kernel);
            self.hooks.enable();
        }
        self.begin = self.kernel.now();
        let mut whole = Readings { frames: Frames::new(), software: [None; 5], since: self.begin };
        if !with_exec {
            whole.software = software.totals(self.kernel);
        }
        if !delayed {
            self.kernel.start()?;
        }
        let end = match end {
            Some(end) => end,
            None => self.watch(opened, software, &mut whole, interrupted, on_progress),
        };
        Ok((whole, end))
    }

    /// Waits, reads and emits intervals until the end.
    fn watch(
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
        let first = Readings { frames: Frames::new(), software: whole.software, since: self.begin };
        let mut current = length.map(|_| first);
        let mut tick = self.begin + self.period;
        loop {
            let boundary = current.as_ref().zip(length).map(|(c, l)| self.boundary(c.since, l));
            let until = [Some(tick), boundary, finish].into_iter().flatten().min();
            let until = until.unwrap_or(tick);
            let mut end = self.sleep(until, &mut interrupted, on_progress);
            let now = self.kernel.now();
            if end.is_none() && finish.is_some_and(|f| now >= f) {
                end = Some(End { at: now, interrupted, forced: true });
            }
            if end.is_some() && self.request.target != Target::Command {
                self.disable(opened);
            }
            self.read(opened);
            let merged = whole.frames.push(&self.delta);
            if let Some(readings) = &mut current {
                readings.frames.push(&self.delta);
            }
            let complete = boundary.is_some_and(|b| now >= b) || end.is_some();
            if complete && let Some(readings) = current.take() {
                // If this process was not scheduled, the interval is longer.
                let at = end.as_ref().map_or_else(|| self.kernel.now(), |e| e.at);
                current = Some(self.emit_interval(opened, software, readings, at, on_progress));
            }
            if let Some(end) = end {
                return end;
            }
            let spent = self.kernel.now().saturating_sub(now);
            self.pace(spent, merged, &mut whole.frames);
            tick = now + self.period;
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
        self.period = self.period.max(spent * COST_AT_FIRST);
        if self.request.interval.is_some() {
            return;
        }
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
    fn sleep(
        &mut self,
        until: Duration,
        interrupted: &mut Option<i32>,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Option<End> {
        let wake = self.kernel.wait(Some(until));
        let at = self.kernel.now();
        match wake {
            Wake::Time => None,
            Wake::Exited | Wake::TargetEnded => {
                Some(End { at, interrupted: *interrupted, forced: false })
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
                forced.then_some(End { at, interrupted: Some(number), forced: true })
            }
        }
    }

    /// Emits the interval that ends at `at` and begins the next.
    fn emit_interval(
        &mut self,
        opened: &Opened,
        software: &mut software::Counters,
        readings: Readings,
        at: Duration,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Readings {
        let totals = software.totals(self.kernel);
        let wall = at.saturating_sub(readings.since);
        let span = (readings.since - self.begin, at - self.begin);
        let frames = readings.frames.finish();
        let mut counts = result::counts(self.request, opened, &frames, &self.unread, wall);
        counts.iter_mut().for_each(|c| c.interval = Some(span));
        let software = software.between(&readings.software, &totals, wall, None);
        let run = self.number;
        on_progress(Progress::Interval(Box::new(Interval { run, span, counts, software })));
        Readings { frames: Frames::new(), software: totals, since: at }
    }

    fn enable(&mut self, opened: &Opened) {
        for handle in opened.leaders() {
            let _ = self.kernel.enable(handle);
        }
    }

    fn disable(&mut self, opened: &Opened) {
        for handle in opened.leaders() {
            let _ = self.kernel.disable(handle);
        }
    }

    /// Ends the command if it is still running; how it ended.
    fn finish_command(&mut self, end: &End) -> Option<(Exit, Usage)> {
        self.request.command.as_ref()?;
        if end.forced {
            self.kernel.signal(libc::SIGTERM);
            let mut deadline = Some(self.kernel.now() + TERM_TIMEOUT);
            // Kills it after the timeout or another signal.
            while let wake @ (Wake::Signal { .. } | Wake::Time) = self.kernel.wait(deadline) {
                self.kernel.signal(libc::SIGKILL);
                self.killed |= wake == Wake::Time;
                deadline = None;
            }
        }
        self.kernel.reap()
    }

    fn result(
        &self,
        opened: &Opened,
        frames: &[Vec<u64>],
        software: Software,
        end: &End,
        exit: Option<Exit>,
    ) -> RunResult {
        let counts = result::counts(self.request, opened, frames, &self.unread, software.wall);
        let mut notes = opened.notes.clone();
        if self.late_readings {
            notes.push(
                "the kernel refused some readings; later readings include their counts".into(),
            );
        }
        if self.request.command.is_some() && exit.is_none() {
            notes.push("how the command ended is unknown: something else waited for it".into());
        }
        if end.forced && end.interrupted.is_none() && self.request.command.is_some() {
            notes.push("the command was ended when the time was up".into());
        }
        if self.killed {
            let seconds = TERM_TIMEOUT.as_secs();
            notes.push(format!("the command did not end by SIGTERM in {seconds} s and was killed"));
        }
        RunResult {
            counts,
            software,
            // Ended by this program when the time was up: no failure of the command.
            exit: exit.filter(|_| !end.forced || end.interrupted.is_some()),
            interrupted: end.interrupted,
            user_only: opened.user_only,
            core_time: result::core_time(opened, frames, &self.unread),
            notes,
        }
    }
}

/// The user of the process or thread `id`, if it is another user.
fn owner(id: i32) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let folder = std::fs::metadata(format!("/proc/{id}")).ok()?;
    let user = nix::unistd::Uid::from_raw(folder.uid());
    let is_ours = user == nix::unistd::Uid::effective()
        && folder.gid() == nix::unistd::Gid::effective().as_raw();
    let name = || nix::unistd::User::from_uid(user).ok().flatten().map(|u| u.name);
    (!is_ours).then(|| name().unwrap_or_else(|| format!("user {user}")))
}
