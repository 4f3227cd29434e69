//! CPU time by mode: of the host and its sockets in `/proc/stat` (proc_stat(5)), of control groups in `cpu.stat`.

use super::{LONGEST, tick};
use fleet::metrics::{Count, Counted, Mode, Reason, Subject};
use fleet::window::{Owner, Source};
use pmu::machine::Topology;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// Seconds in each mode, of a subject's CPU, or of all of them together; of a control group only user and system.
type Seconds = BTreeMap<(Subject, Mode, Option<u32>), f64>;

/// Differences between readings. The kernel's own sums may fall (idle and iowait, where a CPU goes offline): such a
/// difference counts as none. A CPU that was offline has no earlier reading, and adds nothing.
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
    ///
    /// # Errors
    /// Why it has no CPU time.
    pub fn of_cgroup(&mut self, folder: &Path, owner: &Owner) -> Result<Vec<Count>, Reason> {
        let read = tma::files::read_text(&folder.join("cpu.stat"), LONGEST);
        let subject = Subject { owner: owner.clone(), core: None };
        let now = cgroup(read.as_deref().unwrap_or_default(), &subject);
        let why = now.is_empty().then(|| without(folder, read.err().map(|error| error.kind())));
        let counts = self.since(now);
        why.map_or(Ok(counts), Err)
    }

    fn since(&mut self, now: Seconds) -> Vec<Count> {
        let Some(last) = self.last.replace(now.clone()) else { return Vec::new() };
        let mut passed: BTreeMap<(Subject, Mode), f64> = BTreeMap::new();
        for (key, seconds) in now {
            let Some(more) = last.get(&key).map(|before| seconds - before) else { continue };
            if more >= 0.0 {
                let (subject, mode, _) = key;
                *passed.entry((subject, mode)).or_default() += more;
            }
        }
        let count = |((subject, mode), count)| {
            let (of, source) = (Counted::Mode(mode), Source::Counted);
            Count { subject, of, count, source }
        };
        passed.into_iter().map(count).collect()
    }
}

/// Why a control group has no CPU time: only those of version 2 have it in `cpu.stat`.
fn without(folder: &Path, unread: Option<ErrorKind>) -> Reason {
    match unread {
        Some(ErrorKind::PermissionDenied) => Reason::NotPermitted,
        _ if !folder.exists() => Reason::Absent,
        None | Some(ErrorKind::NotFound) => Reason::NotSupported,
        Some(_) => Reason::Failed,
    }
}

/// The lines of `/proc/stat`; with a topology those of each socket, too. User and nice have guests' time already.
fn host(stat: &str, topology: Option<&Topology>, tick: f64) -> Seconds {
    let mut all = Seconds::new();
    for line in stat.lines() {
        let Some((cpu, fields)) = line.strip_prefix("cpu").and_then(|l| l.split_once(' ')) else {
            continue;
        };
        let number = cpu.parse::<u32>().ok();
        let socket = number.and_then(|cpu| topology?.cpu(cpu)).map(|cpu| cpu.socket);
        if !cpu.is_empty() && socket.is_none() {
            continue;
        }
        let subject = Subject { owner: Owner { socket, ..Owner::default() }, core: None };
        let fields = fields.split_whitespace().map_while(|field| field.parse::<f64>().ok());
        for (mode, ticks) in Mode::ALL.into_iter().zip(fields) {
            *all.entry((subject.clone(), mode, number)).or_default() += ticks * tick;
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
        Some(((subject.clone(), mode, None), microseconds * 1e-6))
    };
    names.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu::machine::LogicalCpu;

    const STAT: &str = "cpu  30 0 20 400 5 0 1 7 2 0\ncpu0 10 0 5 200 5 0 0 3 1 0\n\
                        cpu1 20 0 15 200 0 0 1 4 1 0\nintr 5\n";

    /// CPUs of these sockets.
    fn topology(sockets: &[u32]) -> Topology {
        let cpu = |(id, socket): (u32, &u32)| LogicalCpu { id, socket: *socket, core: 0 };
        let cpus = (0..).zip(sockets).map(cpu).collect();
        Topology { cpus, ..Topology::default() }
    }

    fn user(counts: &[Count], socket: Option<u32>) -> Option<f64> {
        let is_user = |count: &&Count| count.of == Counted::Mode(Mode::User);
        let of_socket = |count: &&Count| count.subject.owner.socket == socket;
        counts.iter().filter(is_user).find(of_socket).map(|count| count.count)
    }

    #[test]
    fn sockets_are_the_sums_of_their_cpus_and_only_where_asked_for() {
        let mut modes = Modes::default();
        let later = "cpu  36 0 20 400\ncpu0 12 0 5 200\ncpu1 24 0 15 200\n";
        let texts = [STAT, later];
        let mut all = Vec::new();
        for text in texts {
            all = modes.since(host(text, Some(&topology(&[0, 1])), 0.5));
        }
        // By hand: 6, 2 and 4 ticks.
        let found = [None, Some(0), Some(1)].map(|socket| user(&all, socket));
        assert_eq!(found, [Some(3.0), Some(1.0), Some(2.0)]);
        assert_eq!(host(STAT, None, 0.5).len(), 8);
        assert!(host("cpu\ncpuX 1\n", None, 0.5).is_empty(), "damaged lines");
    }

    #[test]
    fn a_cpu_that_was_offline_adds_nothing_of_its_time_since_boot() {
        let mut modes = Modes::default();
        let texts = [
            "cpu  500 0 0 0\ncpu0 100 0 0 0\n",
            "cpu  510 0 0 0\ncpu0 105 0 0 0\ncpu1 400 0 0 0\n",
            "cpu  530 0 0 0\ncpu0 110 0 0 0\ncpu1 415 0 0 0\n",
        ];
        let of = |text| user(&modes.since(host(text, Some(&topology(&[0, 0])), 1.0)), Some(0));
        assert_eq!(texts.map(of), [None, Some(5.0), Some(20.0)]);
    }

    #[test]
    fn a_group_without_cpu_time_has_a_reason() {
        let here = std::env::temp_dir();
        assert_eq!(without(&here, None), Reason::NotSupported);
        assert_eq!(without(&here, Some(ErrorKind::NotFound)), Reason::NotSupported);
        assert_eq!(without(&here, Some(ErrorKind::PermissionDenied)), Reason::NotPermitted);
        let none = here.join("tdtool-no-such-group");
        assert_eq!(Modes::default().of_cgroup(&none, &Owner::default()), Err(Reason::Absent));
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
