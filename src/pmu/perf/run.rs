//! One run: open, start, read now and then, and end — by itself, by time or by a signal.

use super::bank::Bank;
use super::opened::{Opened, Unread};
use super::parts::Part;
use super::place::{Places, Spot};
use super::{result, software};
use crate::kernel::{Event, Kernel, Subject, Usage, Wake};
use crate::sampling::{Companion, Whom};
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
/// Readings of an interval: enough for a jackknife with some lost to rotation.
const PER_INTERVAL: u32 = 16;
/// A reading takes at most 1/this of the period, so it costs below 1 %, …
const COST: u32 = 100;
/// … but for the first few of a run.
const COST_AT_FIRST: u32 = 4;
/// Time a command has to end by SIGTERM before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longer than anybody measures.
const NEVER: Duration = Duration::from_secs(1 << 32);
/// Frames from which readings are made rarer because of their cost: half of them are left.
const ENOUGH: usize = 24;

/// One run of a measurement.
pub struct Run<'k, 'r> {
    pub(super) kernel: &'k mut dyn Kernel,
    companion: &'k mut dyn Companion,
    pub(super) request: &'r Request<'r>,
    pub(super) part: &'r Part,
    /// Places a group is opened at.
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
    /// Readings failed, but later ones had their counts.
    pub(super) late_readings: bool,
    /// The command had to be killed.
    killed: bool,
}

/// What a run gave.
#[derive(Debug)]
pub struct RunResult {
    /// Counts by kind of core and scope.
    pub counts: Vec<Counts>,
    /// Software counts.
    pub software: Software,
    /// How the command ended, unless we ended it.
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
    /// The command was still running; we end it.
    ours: bool,
}

/// The readings of a whole run or of one interval.
struct Readings {
    bank: Bank,
    software: software::Totals,
    since: Duration,
}

/// Everything to count on has gone.
fn nothing_left() -> Error {
    Error::failed("nothing is left to count on")
        .because("all its threads have ended (or all CPUs are offline)")
        .hint("ps -eL lists processes and threads")
}

impl<'k, 'r> Run<'k, 'r> {
    /// A run of the groups in `part`.
    pub fn new(
        kernel: &'k mut dyn Kernel,
        request: &'r Request<'r>,
        part: &'r Part,
        number: u32,
        companion: &'k mut dyn Companion,
    ) -> Self {
        Self {
            kernel,
            companion,
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
            let gone = |s| self.has_gone(Errno::ESRCH, s, opened.user_only);
            let ended = places.spots.iter().all(gone);
            return Err(if ended { nothing_left() } else { self.nothing_permitted() });
        }
        let attached = self.attach(&places, opened.user_only);
        let done = attached.and_then(|()| self.count(&opened, &mut software, on_progress));
        self.companion.finish();
        let result = done.map(|(whole, end)| {
            let totals = software.totals(self.kernel);
            let ended = self.finish_command(&end);
            let usage = ended.map(|(_, usage)| usage);
            let wall = end.at.saturating_sub(self.begin);
            let software = software.between(&whole.software, &totals, wall, usage);
            self.result(&opened, &whole.bank.finish(), software, &end, ended.map(|(e, _)| e))
        });
        if result.is_err() {
            self.abandon();
        }
        software.close(self.kernel);
        self.close_all(&opened);
        result
    }

    /// Tells the companion whom to go with.
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
        self.companion.attach(&Whom {
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
        let (whom, (cause, remedy)) = match &self.request.target {
            Target::System | Target::Cpus(_) => ("whole CPUs".to_owned(), kernel.why_no_cpus()),
            Target::Cgroup(_) => ("a control group".to_owned(), kernel.why_no_cpus()),
            Target::Process(id) | Target::Thread(id) => {
                let why = owner(*id).map(|owner| kernel.why_not_theirs(&owner));
                (format!("process {id}"), why.unwrap_or_else(|| kernel.why_denied()))
            }
            Target::Command => ("this process".to_owned(), kernel.why_denied()),
        };
        Error::failed(format!("not permitted to count on {whom}")).because(cause).hint(remedy)
    }

    /// Ends the wait of a command that will not be measured.
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
            // A signal that is the command's wakes us early, and ends the run only with it.
            while end.is_none() && self.kernel.now() < until {
                end = self.sleep(until, &mut interrupted, on_progress);
            }
        }
        if !with_exec && end.is_none() {
            self.enable(opened);
            software.enable(self.kernel);
            self.companion.enable();
        }
        self.begin = self.kernel.now();
        let mut whole = Readings { bank: Bank::new(), software: [None; 5], since: self.begin };
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

    /// The loop: wait, read, tell.
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
        let first = Readings { bank: Bank::new(), software: whole.software, since: self.begin };
        let mut current = length.map(|_| first);
        let mut tick = self.begin + self.period;
        loop {
            let boundary = current.as_ref().zip(length).map(|(c, l)| self.boundary(c.since, l));
            let until = [Some(tick), boundary, finish].into_iter().flatten().min();
            let until = until.unwrap_or(tick);
            let mut end = self.sleep(until, &mut interrupted, on_progress);
            let now = self.kernel.now();
            if end.is_none() && finish.is_some_and(|f| now >= f) {
                end = Some(End { at: now, interrupted, ours: true });
            }
            if end.is_some() && self.request.target != Target::Command {
                self.disable(opened);
            }
            self.read(opened);
            let merged = whole.bank.push(&self.delta);
            if let Some(readings) = &mut current {
                readings.bank.push(&self.delta);
            }
            let complete = boundary.is_some_and(|b| now >= b) || end.is_some();
            if complete && let Some(readings) = current.take() {
                // Late by however long we did not run: what was counted tells how long it was.
                let at = end.as_ref().map_or_else(|| self.kernel.now(), |e| e.at);
                current = Some(self.tell(opened, software, readings, at, on_progress));
            }
            if let Some(end) = end {
                return end;
            }
            let spent = self.kernel.now().saturating_sub(now);
            self.pace(spent, merged, &mut whole.bank);
            tick = now + self.period;
        }
    }

    /// When an interval that began at `since` ends: at the next multiple of `length`. Multiples
    /// that passed unread are gone, the interval they were in is longer.
    fn boundary(&self, since: Duration, length: Duration) -> Duration {
        let length = length.as_nanos().max(1);
        let next = (since.saturating_sub(self.begin).as_nanos() / length + 1) * length;
        self.begin + Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX))
    }

    /// Chooses the next period, from what a reading took and whether the bank has just merged.
    /// Readings become rarer in steps of two, so that the frames stay of equal length.
    fn pace(&mut self, spent: Duration, merged: bool, bank: &mut Bank) {
        self.period = self.period.max(spent * COST_AT_FIRST);
        if self.request.interval.is_some() {
            return;
        }
        let costly = spent * COST > self.period && bank.len() >= ENOUGH;
        if costly && !merged {
            bank.merge();
        }
        if (merged || costly) && self.period < LONGEST {
            self.period = (self.period * 2).min(LONGEST);
            bank.reading_slower();
        }
    }

    /// Waits until `until`; `Some` if that is the end of the run.
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
            Wake::Exited | Wake::Gone => Some(End { at, interrupted: *interrupted, ours: false }),
            Wake::Signal { number, from_terminal } => {
                // The first one is the command's: it may have something to save. With the second
                // we do not wait for it any longer.
                let again = interrupted.replace(number).is_some();
                let ours = again || self.request.command.is_none();
                if !from_terminal && !again {
                    self.kernel.signal(number);
                }
                on_progress(Progress::Interrupted { signal: number });
                ours.then_some(End { at, interrupted: Some(number), ours: true })
            }
        }
    }

    /// Emits the interval that ends at `at` and begins the next.
    fn tell(
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
        let frames = readings.bank.finish();
        let mut counts = result::counts(self.request, opened, &frames, &self.unread, wall);
        counts.iter_mut().for_each(|c| c.interval = Some(span));
        let software = software.between(&readings.software, &totals, wall, None);
        let run = self.number;
        on_progress(Progress::Interval(Box::new(Interval { run, span, counts, software })));
        Readings { bank: Bank::new(), software: totals, since: at }
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

    /// Ends the command if it still runs, and how it ended.
    fn finish_command(&mut self, end: &End) -> Option<(Exit, Usage)> {
        self.request.command.as_ref()?;
        if end.ours {
            self.kernel.signal(libc::SIGTERM);
            let mut patience = Some(self.kernel.now() + PATIENCE);
            // Out of patience, or somebody else is.
            while let wake @ (Wake::Signal { .. } | Wake::Time) = self.kernel.wait(patience) {
                self.kernel.signal(libc::SIGKILL);
                self.killed |= wake == Wake::Time;
                patience = None;
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
                "the kernel refused some readings; their counts came in with the next".into(),
            );
        }
        if self.request.command.is_some() && exit.is_none() {
            notes.push(
                "how the command ended is not known: something else waited for it before us".into(),
            );
        }
        if end.ours && end.interrupted.is_none() && self.request.command.is_some() {
            notes.push("the command was ended when the time was up".into());
        }
        if self.killed {
            let seconds = PATIENCE.as_secs();
            notes.push(format!("the command did not end by SIGTERM in {seconds} s and was killed"));
        }
        RunResult {
            counts,
            software,
            // Ended by us when the time was up: no failure of the command's.
            exit: exit.filter(|_| !end.ours || end.interrupted.is_some()),
            interrupted: end.interrupted,
            user_only: opened.user_only,
            core_time: result::core_time(opened, frames, &self.unread),
            notes,
        }
    }
}

/// Whom the process or thread `id` belongs to, if that is not us.
fn owner(id: i32) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let folder = std::fs::metadata(format!("/proc/{id}")).ok()?;
    let user = nix::unistd::Uid::from_raw(folder.uid());
    let is_ours = user == nix::unistd::Uid::effective()
        && folder.gid() == nix::unistd::Gid::effective().as_raw();
    let name = || nix::unistd::User::from_uid(user).ok().flatten().map(|u| u.name);
    (!is_ours).then(|| name().unwrap_or_else(|| format!("user {user}")))
}
