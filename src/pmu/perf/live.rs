//! The real kernel: events, waits and processes.

use super::child::{Child, pidfd};
use super::ending::Ending;
use super::events::Events;
use super::proc_stat::{StatFile, busy, switches};
use super::signals::{Pipe, Signals};
use super::software::DUMMY;
use crate::kernel::{Event, Handle, Kernel, Subject, Usage, Wake};
use crate::machine::{Machine, Probe, encode};
use crate::{Command, Control, Exit};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::time::TimeSpec;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tma::error::{Error, Result};

/// The kernel we run on, for one measurement.
pub struct Live {
    origin: Instant,
    events: Events,
    cgroups: Vec<File>,
    child: Option<Child>,
    watched: Option<(i32, Option<OwnedFd>)>,
    control: Option<Pipe>,
    ends: Ends,
    /// Where this thread may run, while it visits a CPU.
    home: Option<CpuSet>,
    stat: StatFile,
}

/// What ends a measurement from outside.
enum Ends {
    Signals(Signals),
    Ending(Arc<Ending>),
}

impl Ends {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Signals(signals) => signals.as_fd(),
            Self::Ending(ending) => ending.as_fd(),
        }
    }

    /// The signal that ends it, and whether the terminal sent it.
    fn next(&self) -> Option<(i32, bool)> {
        match self {
            Self::Signals(signals) => signals.next(),
            Self::Ending(ending) => ending.wait(Duration::ZERO).then_some((libc::SIGTERM, false)),
        }
    }
}

impl Live {
    /// Ends by `ending`, and catches no signals.
    pub fn until(ending: Arc<Ending>) -> Self {
        Self::ended_by(Ends::Ending(ending))
    }

    /// Catches SIGINT, SIGTERM and SIGHUP until dropped.
    ///
    /// # Errors
    /// Another measurement is running in this process.
    pub fn new() -> Result<Self> {
        Ok(Self::ended_by(Ends::Signals(Signals::catch()?)))
    }

    fn ended_by(ends: Ends) -> Self {
        Self {
            origin: Instant::now(),
            events: Events::default(),
            cgroups: Vec::new(),
            child: None,
            watched: None,
            control: None,
            ends,
            home: None,
            stat: StatFile::default(),
        }
    }
}

impl Kernel for Live {
    fn open(
        &mut self,
        event: &Event,
        leader: Option<Handle>,
    ) -> std::result::Result<Handle, Errno> {
        self.events.open(event, leader, &self.cgroups)
    }

    fn close(&mut self, event: Handle) {
        self.events.close(event);
    }

    fn enable(&mut self, leader: Handle) -> std::result::Result<(), Errno> {
        self.events.enable(leader)
    }

    fn disable(&mut self, leader: Handle) -> std::result::Result<(), Errno> {
        self.events.disable(leader)
    }

    fn read(&mut self, leader: Handle, words: &mut Vec<u64>) -> std::result::Result<(), Errno> {
        self.events.read(leader, words)
    }

    fn visit(&mut self, cpu: Option<u32>) {
        let us = nix::unistd::Pid::from_raw(0);
        if self.home.is_none() {
            self.home = sched_getaffinity(us).ok();
        }
        let mut there = CpuSet::new();
        let set = match (cpu, self.home) {
            (None, _) => self.home.take(),
            (Some(cpu), Some(_)) => there.set(cpu as usize).ok().map(|()| there),
            _ => None,
        };
        // Where the kernel refuses, events of other CPUs are read from afar.
        let _ = set.map(|set| sched_setaffinity(us, &set));
    }

    fn here(&mut self) -> Option<u32> {
        sched_getcpu().ok().and_then(|cpu| u32::try_from(cpu).ok())
    }

    fn runs(&mut self, leader: Handle, cpus: Option<&[u32]>, timeout: Duration) -> Option<bool> {
        let us = nix::unistd::Pid::from_raw(0);
        let home = sched_getaffinity(us).ok()?;
        if let Some(cpus) = cpus {
            let mut set = CpuSet::new();
            let allowed = |c: &&u32| home.is_set(**c as usize).unwrap_or(false);
            for cpu in cpus.iter().filter(allowed) {
                let _ = set.set(*cpu as usize);
            }
            sched_setaffinity(us, &set).ok()?;
        }
        let ran = self.runs_within(leader, timeout);
        if cpus.is_some() {
            let _ = sched_setaffinity(us, &home);
        }
        ran
    }

    fn open_cgroup(&mut self, folder: &Path) -> Result<Handle> {
        let path = find_cgroup(folder);
        let file = File::open(&path).and_then(|f| {
            let is_group = path.join("cgroup.procs").exists() || path.join("tasks").exists();
            if is_group { Ok(f) } else { Err(std::io::ErrorKind::NotFound.into()) }
        });
        let file = file.map_err(|e| {
            Error::failed(format!("there is no control group {}", folder.display()))
                .because(e)
                .hint("systemd-cgls lists them; a name is taken below /sys/fs/cgroup")
        })?;
        self.cgroups.push(file);
        Ok(Handle(self.cgroups.len() - 1))
    }

    fn raise_file_limit(&mut self) -> bool {
        raise_file_limit()
    }

    fn threads(&mut self, process: i32) -> std::result::Result<Vec<i32>, Errno> {
        let entries =
            std::fs::read_dir(format!("/proc/{process}/task")).map_err(|_| Errno::ESRCH)?;
        let name = |e: std::fs::DirEntry| e.file_name().to_str().and_then(|n| n.parse().ok());
        let mut all: Vec<i32> = entries.flatten().filter_map(name).collect();
        all.sort_unstable();
        if all.is_empty() { Err(Errno::ESRCH) } else { Ok(all) }
    }

    fn switches(&mut self, tasks: &[i32]) -> Vec<(i32, u64)> {
        let mut found = std::collections::BTreeMap::new();
        for task in tasks {
            if found.contains_key(task) {
                continue;
            }
            for thread in Kernel::threads(self, *task).unwrap_or_default() {
                let path = format!("/proc/{task}/task/{thread}/status");
                let status = std::fs::read_to_string(path).unwrap_or_default();
                found.extend(switches(&status).map(|number| (thread, number)));
            }
        }
        found.into_iter().collect()
    }

    fn busy(&mut self, cpus: &[u32]) -> Option<Duration> {
        let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
        busy(self.stat.text()?, cpus, u64::try_from(ticks).ok()?)
    }

    fn now(&mut self) -> Duration {
        self.origin.elapsed()
    }

    fn prepare(&mut self, command: &Command) -> Result<i32> {
        let child = Child::prepare(command)?;
        let pid = child.pid;
        self.child = Some(child);
        Ok(pid)
    }

    fn start(&mut self) -> Result<()> {
        self.child.as_mut().map_or(Ok(()), Child::start)
    }

    fn listen(&mut self, control: &Control) -> Result<()> {
        self.control = Some(Pipe::open(control)?);
        Ok(())
    }

    fn acknowledge(&mut self) {
        self.control.iter_mut().for_each(Pipe::acknowledge);
    }

    fn watch(&mut self, process: i32) -> Result<()> {
        self.watched = Some((process, pidfd(process)));
        Ok(())
    }

    fn wait(&mut self, until: Option<Duration>) -> Wake {
        loop {
            if let Some((number, from_terminal)) = self.ends.next() {
                return Wake::Signal { number, from_terminal };
            }
            if self.child.as_ref().is_some_and(Child::has_ended) {
                return Wake::Exited;
            }
            if self.watched.as_ref().is_some_and(|(pid, fd)| has_ended(*pid, fd.as_ref())) {
                return Wake::TargetEnded;
            }
            if let Some(order) = self.control.as_mut().and_then(Pipe::next) {
                return Wake::Control(order);
            }
            let left = until.map(|u| u.saturating_sub(self.origin.elapsed()));
            if left == Some(Duration::ZERO) {
                return Wake::Time;
            }
            self.poll(left);
        }
    }

    fn signal(&mut self, number: i32) {
        if let Some(child) = &self.child
            && !child.has_ended()
            && let Ok(signal) = nix::sys::signal::Signal::try_from(number)
        {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.pid), signal);
        }
    }

    fn reap(&mut self) -> Option<(Exit, Usage)> {
        self.child.take().and_then(|mut child| child.reap())
    }
}

impl Live {
    /// Enables a group on this process and spins until it has run or `timeout` has passed.
    fn runs_within(&mut self, leader: Handle, timeout: Duration) -> Option<bool> {
        let mut words = Vec::new();
        self.enable(leader).ok()?;
        let begin = Instant::now();
        let ran = loop {
            self.read(leader, &mut words).ok()?;
            let ran = words.get(2).is_some_and(|running| *running > 0);
            if ran || begin.elapsed() > timeout {
                break ran;
            }
        };
        let _ = self.disable(leader);
        Some(ran)
    }

    /// Sleeps until a signal, the end of a process, or `left` has passed. Processes without a pidfd
    /// (threads; kernels before 5.3) are polled every 5 ms.
    fn poll(&self, left: Option<Duration>) {
        let child = self.child.as_ref().map(|c| c.pidfd.as_ref());
        let watched = self.watched.as_ref().map(|(_, fd)| fd.as_ref());
        let polled = matches!(child, Some(None)) || matches!(watched, Some(None));
        let mut fds = vec![PollFd::new(self.ends.as_fd(), PollFlags::POLLIN)];
        for fd in [child.flatten(), watched.flatten()].into_iter().flatten() {
            fds.push(PollFd::new(fd.as_fd(), PollFlags::POLLIN));
        }
        fds.extend(self.control.iter().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        let period = Duration::from_millis(5);
        let left = match (left, polled) {
            (Some(left), true) => Some(left.min(period)),
            (None, true) => Some(period),
            (left, false) => left,
        };
        let _ = ppoll(&mut fds, left.map(TimeSpec::from), None);
    }
}

/// Raises the limit on open files; whether it was raised.
pub(crate) fn raise_file_limit() -> bool {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return false };
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open").ok();
    let most = most.and_then(|t| t.trim().parse().ok()).unwrap_or(hard);
    // Root may exceed the hard limit; for others that fails, and the hard limit is the next attempt.
    [most.max(hard), hard].into_iter().any(|limit| {
        limit > soft && setrlimit(Resource::RLIMIT_NOFILE, limit, limit.max(hard)).is_ok()
    })
}

/// Whether a process or thread that is no child of this process has ended, reaped or not.
fn has_ended(id: i32, pidfd: Option<&OwnedFd>) -> bool {
    if let Some(fd) = pidfd {
        let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
        return ppoll(&mut fds, Some(Duration::ZERO.into()), None) == Ok(1);
    }
    let folder = format!("/proc/{id}");
    // A main thread that has ended stays listed as a zombie until the last of the others has ended.
    is_dead(&folder)
        && !std::fs::read_dir(format!("{folder}/task"))
            .is_ok_and(|all| all.flatten().any(|t| !is_dead(&t.path().to_string_lossy())))
}

/// Whether the thread with this folder below /proc has ended: field 3 of its `stat`, after the name in
/// parentheses, is Z or X.
fn is_dead(folder: &str) -> bool {
    let stat = std::fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, None | Some('Z' | 'X'))
}

/// The folder of a control group: `name` if it is a path, otherwise `name` below the unified or the
/// perf_event hierarchy.
pub fn find_cgroup(name: &Path) -> std::path::PathBuf {
    if name.is_absolute() && name.exists() {
        return name.to_owned();
    }
    let name = name.strip_prefix("/").unwrap_or(name);
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified"];
    let all = mounts.iter().map(|m| Path::new(m).join(name));
    let mut all = all.filter(|p| p.exists());
    all.next().unwrap_or_else(|| Path::new(mounts[0]).join(name))
}

/// Tests what this process may open, for `tdtool doctor`.
pub fn probe(machine: &Machine) -> Probe {
    let Ok(mut kernel) = Live::new() else {
        return Probe { software: Err(libc::EBUSY), core: None, inherit_groups: false };
    };
    let event = |encoding| Event {
        encoding,
        subject: Subject::Task(0),
        cpu: None,
        inherit: false,
        exclude_kernel: true,
        enable_on_exec: false,
        group_read: true,
    };
    let opened = |r: std::result::Result<Handle, Errno>| r.map(|_| ()).map_err(|e| e as i32);
    let software = opened(kernel.open(&event(DUMMY), None));
    let inherited = Event { inherit: true, ..event(DUMMY) };
    let inherit_groups = kernel.open(&inherited, None).is_ok();
    let core = machine.core_pmus().next().map(|pmu| {
        // The core clock: 0x76 on AMD, 0x3c on Intel, 0x11 on Arm.
        let code = match machine.cpu.vendor.as_str() {
            "AuthenticAMD" | "HygonGenuine" => 0x76,
            "GenuineIntel" => 0x3c,
            _ => 0x11,
        };
        let spec = tma::tables::EventSpec { code, ..Default::default() };
        let encoding = encode(&spec, pmu).map_err(|_| libc::ENOENT)?;
        opened(kernel.open(&event(encoding), None))
    });
    Probe { software, core, inherit_groups }
}
