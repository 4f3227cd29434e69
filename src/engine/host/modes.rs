//! CPU time by mode: of the host and its sockets in `/proc/stat` (proc_stat(5)), of control groups in `cpu.stat`.

use super::{LONGEST, tick};
use fleet::metrics::{Count, Counted, Mode, Subject};
use fleet::window::{Owner, Source};
use pmu::machine::Topology;
use std::collections::BTreeMap;
use std::path::Path;

/// Seconds in each mode, of a subject; of a control group only user and system.
type Seconds = BTreeMap<(Subject, Mode), f64>;

/// Differences between readings. The kernel's own sums may fall (idle and iowait, where a CPU goes offline): such a
/// difference counts as none.
#[derive(Debug, Default)]
pub struct Modes {
    last: Option<Seconds>,
}

impl Modes {
    /// What came in since the last reading of the host; nothing of the first.
    pub fn of_host(&mut self, topology: Option<&Topology>) -> Vec<Count> {
        let text = tma::files::read_text(Path::new("/proc/stat"), LONGEST).unwrap_or_default();
        self.since(host(&text, topology, tick()))
    }

    /// What came in since the last reading of a control group's folder.
    pub fn of_cgroup(&mut self, folder: &Path, owner: &Owner) -> Vec<Count> {
        let path = folder.join("cpu.stat");
        let text = tma::files::read_text(&path, LONGEST).unwrap_or_default();
        self.since(cgroup(&text, &Subject { owner: owner.clone(), core: None }))
    }

    fn since(&mut self, now: Seconds) -> Vec<Count> {
        let Some(last) = self.last.replace(now.clone()) else { return Vec::new() };
        let passed = now.into_iter().filter_map(|(key, seconds)| {
            let (count, (subject, mode)) = (seconds - last.get(&key)?, key);
            let (of, source) = (Counted::Mode(mode), Source::Counted);
            (count >= 0.0).then_some(Count { subject, of, count, source })
        });
        passed.collect()
    }
}

/// The lines of `/proc/stat`; with a topology those of each socket, too. User and nice have guests' time already.
fn host(stat: &str, topology: Option<&Topology>, tick: f64) -> Seconds {
    let mut all = Seconds::new();
    for line in stat.lines() {
        let Some((cpu, fields)) = line.strip_prefix("cpu").and_then(|l| l.split_once(' ')) else {
            continue;
        };
        let socket = cpu.parse().ok().and_then(|cpu| topology?.cpu(cpu)).map(|cpu| cpu.socket);
        if !cpu.is_empty() && socket.is_none() {
            continue;
        }
        let subject = Subject { owner: Owner { socket, ..Owner::default() }, core: None };
        let fields = fields.split_whitespace().map_while(|field| field.parse::<f64>().ok());
        for (mode, ticks) in Mode::ALL.into_iter().zip(fields) {
            *all.entry((subject.clone(), mode)).or_default() += ticks * tick;
        }
    }
    all
}

/// User and system time of `cpu.stat` (cgroup v2), in microseconds.
fn cgroup(stat: &str, subject: &Subject) -> Seconds {
    let names = [("user_usec", Mode::User), ("system_usec", Mode::System)];
    let of = |(name, mode): (&str, Mode)| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name));
        let microseconds: f64 = line?.trim().parse().ok()?;
        Some(((subject.clone(), mode), microseconds * 1e-6))
    };
    names.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu::machine::LogicalCpu;

    const STAT: &str = "cpu  30 0 20 400 5 0 1 7 2 0\ncpu0 10 0 5 200 5 0 0 3 1 0\n\
                        cpu1 20 0 15 200 0 0 1 4 1 0\nintr 5\n";

    fn user(all: &Seconds, socket: Option<u32>) -> Option<f64> {
        let owner = Owner { socket, ..Owner::default() };
        all.get(&(Subject { owner, core: None }, Mode::User)).copied()
    }

    #[test]
    fn sockets_are_the_sums_of_their_cpus_and_only_where_asked_for() {
        let cpu = |id, socket| LogicalCpu { id, socket, core: 0 };
        let topology = Topology { cpus: vec![cpu(0, 0), cpu(1, 1)], ..Topology::default() };
        let all = host(STAT, Some(&topology), 0.5);
        let found = [None, Some(0), Some(1)].map(|socket| user(&all, socket));
        assert_eq!(found, [Some(15.0), Some(5.0), Some(10.0)]);
        assert_eq!(host(STAT, None, 0.5).len(), 8);
        assert!(host("cpu\ncpuX 1\n", None, 0.5).is_empty(), "damaged lines");
    }

    #[test]
    fn a_sum_that_falls_is_no_time() {
        let mut modes = Modes::default();
        assert!(modes.since(host(STAT, None, 1.0)).is_empty(), "the first reading");
        let fallen = modes.since(host("cpu  31 0 20 399 5 0 1 7\n", None, 1.0));
        let of = |mode| fallen.iter().find(|c| c.of == Counted::Mode(mode)).map(|c| c.count);
        assert_eq!(
            (of(Mode::User), of(Mode::Idle), of(Mode::System)),
            (Some(1.0), None, Some(0.0))
        );
    }
}
