//! Online CPUs, and the cores and sockets they belong to; their load over a short time.

use super::Root;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::unistd::{SysconfVar, sysconf};
use std::collections::BTreeSet;
use std::time::Duration;

/// One online CPU (hardware thread).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogicalCpu {
    /// The kernel's number.
    pub id: u32,
    /// Socket (physical package).
    pub socket: u32,
    /// Core number in the socket: the kernel's, or counted from 0 if that is ambiguous.
    pub core: u32,
}

/// CPUs, cores and sockets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    /// Online CPUs, by number.
    pub cpus: Vec<LogicalCpu>,
    /// Whether several online CPUs share a core.
    pub smt: bool,
    /// Sockets with an online CPU; at least 1.
    pub sockets: usize,
    /// Cores with an online CPU, per socket; at least 1.
    pub cores_per_socket: usize,
}

const BASE: &str = "sys/devices/system/cpu";

/// The lowest online CPU on the core of `cpu`.
fn first_sibling(root: &Root, cpu: u32, online: &[u32]) -> Option<u32> {
    let lists = ["core_cpus_list", "thread_siblings_list"];
    let mut lists = lists.iter().filter_map(|f| root.text(format!("{BASE}/cpu{cpu}/topology/{f}")));
    let siblings = lists.find_map(|text| parse_cpu_list(&text).filter(|l| l.contains(&cpu)))?;
    siblings.into_iter().find(|s| online.contains(s))
}

/// If the kernel's core numbers contradict its lists of siblings (`first`: the lowest sibling of each
/// CPU), numbers the cores of each socket from 0 in the order of their first CPUs.
fn renumber(cpus: &mut [LogicalCpu], first: &[u32]) {
    let named: BTreeSet<(u32, u32)> = cpus.iter().map(|c| (c.socket, c.core)).collect();
    let real: BTreeSet<(u32, u32)> =
        cpus.iter().map(|c| c.socket).zip(first.iter().copied()).collect();
    let both: BTreeSet<((u32, u32), u32)> =
        cpus.iter().map(|c| (c.socket, c.core)).zip(first.iter().copied()).collect();
    if named.len() == real.len() && both.len() == real.len() {
        return;
    }
    for (cpu, first) in cpus.iter_mut().zip(first) {
        let before = real.iter().filter(|(socket, f)| *socket == cpu.socket && f < first).count();
        cpu.core = u32::try_from(before).unwrap_or(u32::MAX);
    }
}

impl Topology {
    /// Reads `/sys/devices/system/cpu`.
    ///
    /// Which CPUs share a core is what the kernel lists as siblings (`core_cpus_list`, before
    /// Linux 5.3 `thread_siblings_list`): `core_id` need not be unique in a socket. If no siblings
    /// are listed, `smt/active` (Linux 5.0) reports whether there are any.
    pub fn read(root: &Root) -> Self {
        let online = root.text(format!("{BASE}/online")).unwrap_or_else(|| "0".into());
        let ids = parse_cpu_list(&online).unwrap_or_else(|| vec![0]);
        let mut cpus: Vec<LogicalCpu> = ids
            .iter()
            .map(|&id| {
                let read = |file: &str| root.number(format!("{BASE}/cpu{id}/topology/{file}"));
                LogicalCpu {
                    id,
                    socket: read("physical_package_id").unwrap_or(0),
                    core: read("core_id").unwrap_or(id),
                }
            })
            .collect();
        // The first online CPU of each one's core.
        let listed: Option<Vec<u32>> =
            ids.iter().map(|id| first_sibling(root, *id, &ids)).collect();
        let active = root.number::<u8>(format!("{BASE}/smt/active")).map(|n| n != 0);
        match (&listed, active) {
            (Some(first), _) => renumber(&mut cpus, first),
            (None, Some(false)) => renumber(&mut cpus, &ids),
            (None, _) => {}
        }
        let cores: BTreeSet<(u32, u32)> = cpus.iter().map(|c| (c.socket, c.core)).collect();
        let sockets: BTreeSet<u32> = cpus.iter().map(|c| c.socket).collect();
        let sockets = sockets.len().max(1);
        Self {
            smt: cores.len() < cpus.len() || (listed.is_none() && active == Some(true)),
            cores_per_socket: (cores.len() / sockets).max(1),
            sockets,
            cpus,
        }
    }

    /// The online CPU numbered `id`.
    pub fn cpu(&self, id: u32) -> Option<LogicalCpu> {
        self.cpus.iter().copied().find(|c| c.id == id)
    }
}

/// The CPUs of the same kind as `cpu` on a hybrid, by the kernel's core PMUs (`cpu_core`,
/// `cpu_atom`, … under `/sys/bus/event_source/devices`); `None` where all are of one kind or that
/// is not known.
pub fn same_kind(root: &Root, cpu: u32) -> Option<Vec<u32>> {
    let kinds = ["cpu_core", "cpu_atom", "cpu_lowpower"];
    let of = |kind: &&str| {
        let list = root.text(format!("sys/bus/event_source/devices/{kind}/cpus"))?;
        parse_cpu_list(&list).filter(|cpus| cpus.contains(&cpu))
    };
    kinds.iter().find_map(of)
}

/// The numbers of a kernel CPU list such as `0-3,8,10-11`; `None` if it is none.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut all = BTreeSet::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // The kernel's own limit is 8192; beyond 2^16 it is no CPU list.
        if last < first || last > 0xffff {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all.into_iter().collect())
}

/// Share of the CPUs' time above which other processes disturb what is timed.
const MAX_BUSY: f64 = 0.1;
/// Share of the CPUs' time taken by the hypervisor above which it disturbs what is timed.
const MAX_STOLEN: f64 = 0.01;

/// Time of all CPUs since boot, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    busy: u64,
    idle: u64,
    stolen: u64,
}

/// Load between two moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Non-idle share of all CPUs' time, 0..=1.
    pub busy: f64,
    /// Share of all CPUs' time stolen by the hypervisor, 0..=1.
    pub stolen: f64,
}

impl Load {
    /// Whether it disturbs what is timed.
    pub fn disturbs(&self) -> bool {
        self.busy > MAX_BUSY || self.stolen > MAX_STOLEN
    }
}

/// From when on what others use of the CPUs is of interest.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    ticks: Option<Ticks>,
    own: Duration,
}

impl Moment {
    /// This moment.
    pub fn now() -> Self {
        let own = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN];
        let own = own.into_iter().filter_map(|who| getrusage(who).ok()).map(|of| cpu_time(&of));
        Self { ticks: Ticks::read(&Root::system()), own: own.sum() }
    }

    /// CPU time since then used by all but this process and its ended children; `None` if it is not known.
    pub fn others(&self) -> Option<Load> {
        let now = Self::now();
        let second = sysconf(SysconfVar::CLK_TCK).ok()?? as f64;
        let own = now.own.saturating_sub(self.own).as_secs_f64() * second;
        now.ticks?.without(&self.ticks?, own)
    }
}

/// CPU time in all.
pub fn cpu_time(of: &Usage) -> Duration {
    let time = |t: nix::sys::time::TimeVal| {
        let (seconds, micros) = (u64::try_from(t.tv_sec()), u64::try_from(t.tv_usec()));
        Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_micros(micros.unwrap_or(0))
    };
    time(of.user_time()) + time(of.system_time())
}

impl Ticks {
    /// The first line of `/proc/stat`; `None` if it is missing. proc_stat(5): user, nice,
    /// system, idle, iowait, irq, softirq and steal; guests' time is in user and nice already.
    pub fn read(root: &Root) -> Option<Self> {
        let stat = root.text("proc/stat")?;
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> = line.split_whitespace().map_while(|f| f.parse().ok()).collect();
        let sum = |places: &[usize]| places.iter().filter_map(|at| fields.get(*at)).sum();
        (fields.len() >= 4).then(|| Self {
            busy: sum(&[0, 1, 2, 5, 6]),
            idle: sum(&[3, 4]),
            stolen: sum(&[7]),
        })
    }

    /// The load since `before`; `None` if no time has passed.
    pub fn since(&self, before: &Self) -> Option<Load> {
        self.without(before, 0.0)
    }

    /// The load since `before` less `own` busy ticks.
    fn without(&self, before: &Self, own: f64) -> Option<Load> {
        let part = |get: fn(&Self) -> u64| get(self).saturating_sub(get(before)) as f64;
        let (busy, idle, stolen) = (part(|t| t.busy), part(|t| t.idle), part(|t| t.stolen));
        let all = busy + idle + stolen;
        let busy = (busy - own).max(0.0);
        (all > 0.0).then(|| Load { busy: busy / all, stolen: stolen / all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_as_the_kernel_writes_them() {
        assert_eq!(parse_cpu_list("0-2,8,10-11\n"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(parse_cpu_list(""), Some(vec![]));
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("0-99999999"), None);
        assert_eq!(parse_cpu_list("a"), None);
    }

    #[test]
    fn cores_of_another_kind_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for (kind, cpus) in [("cpu_core", "0-3\n"), ("cpu_atom", "4-7\n")] {
            let place = folder.path().join("sys/bus/event_source/devices").join(kind);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("cpus"), cpus).unwrap();
        }
        let root = Root::at(folder.path());
        assert_eq!(same_kind(&root, 5), Some(vec![4, 5, 6, 7]));
        assert_eq!(same_kind(&root, 0), Some(vec![0, 1, 2, 3]));
        assert_eq!(same_kind(&root, 9), None);
    }

    fn ticks(line: &str) -> Option<Ticks> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("proc")).expect("made");
        std::fs::write(folder.path().join("proc/stat"), line).expect("written");
        Ticks::read(&Root::at(folder.path()))
    }

    #[test]
    fn shares_are_of_all_that_passed() {
        // By hand: 30 + 10 busy, 40 + 10 idle and waiting, 10 stolen: 100 ticks.
        let before = ticks("cpu  100 0 50 1000 10 0 0 5 0 0\ncpu0 1 1 1 1\n").expect("ticks");
        let after = ticks("cpu  130 0 60 1040 20 0 0 15 0 0\n").expect("ticks");
        assert_eq!(after.since(&before), Some(Load { busy: 0.4, stolen: 0.1 }));
        assert_eq!(before.since(&before), None);
        // 25 of the 40 were ours.
        assert_eq!(after.without(&before, 25.0), Some(Load { busy: 0.15, stolen: 0.1 }));
        assert_eq!(after.without(&before, 50.0), Some(Load { busy: 0.0, stolen: 0.1 }));
        assert_eq!(ticks("intr 5\n"), None);
    }

    #[test]
    fn what_this_process_uses_is_not_of_others() {
        let moment = Moment::now();
        let used = || cpu_time(&getrusage(UsageWho::RUSAGE_SELF).expect("usage"));
        let begin = used();
        while used() < begin + Duration::from_millis(300) {}
        let (Some(others), Some(before)) = (moment.others(), moment.ticks) else { return };
        let all = Ticks::read(&Root::system()).and_then(|now| now.since(&before));
        assert!(all.is_some_and(|all| others.busy < all.busy), "{others:?} of {all:?}");
    }
}
