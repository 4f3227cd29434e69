//! The load of the machine over a short time.

use super::Root;

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
        let part = |get: fn(&Self) -> u64| get(self).saturating_sub(get(before)) as f64;
        let (busy, idle, stolen) = (part(|t| t.busy), part(|t| t.idle), part(|t| t.stolen));
        let all = busy + idle + stolen;
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
        assert_eq!(ticks("intr 5\n"), None);
    }
}
