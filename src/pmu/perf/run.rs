//! One run: open, start, read periodically, and end: with the command, by time or by a signal.

use super::frames::Frames;
use super::opened::{Opened, Unread};
use super::parts::Part;
use super::place::{Places, Spot};
use super::{result, software};
use crate::kernel::{Event, Kernel, Subject, Usage, Wake};
use crate::sampling::{Attachment, RunHooks};
use crate::{Exit, Progress, Request, Software, Target};
use nix::errno::Errno;
use std::time::Duration;
use tma::counts::Counts;
use tma::error::{Error, Result};

/// First period between readings.
pub(super) const FIRST: Duration = Duration::from_millis(4);
/// Time between SIGTERM and SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);

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
pub(super) struct End {
    /// When.
    pub(super) at: Duration,
    pub(super) interrupted: Option<i32>,
    /// The command is still running and has to be ended.
    pub(super) forced: bool,
}

/// The readings of a whole run or of one interval.
pub(super) struct Readings {
    pub(super) frames: Frames,
    pub(super) software: software::Totals,
    pub(super) since: Duration,
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
