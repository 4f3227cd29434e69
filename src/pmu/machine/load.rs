//! The load of the machine over a short time.

use super::Root;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::unistd::{SysconfVar, sysconf};
use std::time::Duration;

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
pub(crate) fn cpu_time(of: &Usage) -> Duration {
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
