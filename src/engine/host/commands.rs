//! Processes by the name of their command: CPU time and page faults in `/proc/PID/stat` (proc_pid_stat(5)). A process
//! counts from the first look that finds it by the name, one that began after the look before from its start; its last
//! part of an interval is lost.

use super::{LONGEST, tick};
use fleet::metrics::{Count, Counted, Interval, Mode, NotMeasured, Reason, Subject};
use fleet::window::{Owner, Source};
use nix::time::{ClockId, clock_gettime};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::path::Path;

/// Longest name that the kernel keeps.
const LONGEST_NAME: usize = 15;

/// Totals of a process: user and system time in ticks, minor and major faults.
type Totals = [u64; 4];

/// A process: its number, and when it began.
type Process = (u32, u64);

/// A process with its name.
type Named = (Vec<u8>, Process, Totals);

/// The processes of commands.
#[derive(Debug, Default)]
pub struct Commands {
    names: Vec<SmolStr>,
    last: Option<Look>,
}

/// What was there at one time.
#[derive(Debug)]
struct Look {
    /// When it began, in seconds since boot.
    at: Option<f64>,
    found: BTreeMap<Process, Totals>,
}

impl Look {
    /// What a process had used by then, which has used `now`. One with another name then is not among those found:
    /// nobody knows how much of what it has used is of its name.
    fn totals(&self, process: Process, now: Totals) -> Totals {
        let (_, began) = process;
        let is_later = self.at.is_some_and(|at| (began as f64 + 1.0) * tick() > at);
        let unknown = if is_later { Totals::default() } else { now };
        self.found.get(&process).copied().unwrap_or(unknown)
    }
}

impl Commands {
    /// Of commands with these names, of which the kernel keeps 15 bytes.
    pub fn new(names: &[SmolStr]) -> Self {
        Self { names: names.to_vec(), last: None }
    }

    /// Adds what came in since the last look.
    pub fn add(&mut self, rows: &mut Interval) {
        if self.names.is_empty() {
            return;
        }
        // Before they are read: what begins meanwhile may not be among them.
        let at = since_boot();
        match processes() {
            Some(all) => self.take(rows, at, all),
            None => self.names.iter().for_each(|name| rows_of(rows, name, Err(Reason::Failed))),
        }
    }

    /// Adds what came in until a look at all processes, which began `at` this time.
    fn take(&mut self, rows: &mut Interval, at: Option<f64>, all: Vec<Named>) {
        let mut sums_of: BTreeMap<&SmolStr, Totals> = BTreeMap::new();
        let mut found = BTreeMap::new();
        for (name, process, totals) in all {
            let Some(name) = self.names.iter().find(|own| kept_name(own) == name) else { continue };
            let sums = sums_of.entry(name).or_default();
            // Nobody knows how much of what ran before the first look is of this interval.
            let before = self.last.as_ref().map_or(totals, |last| last.totals(process, totals));
            let passed =
                totals.iter().zip(before).map(|(total, before)| total.saturating_sub(before));
            sums.iter_mut().zip(passed).for_each(|(sum, passed)| *sum += passed);
            found.insert(process, totals);
        }
        for name in &self.names {
            rows_of(rows, name, sums_of.get(name).ok_or(Reason::Absent));
        }
        self.last = Some(Look { at, found });
    }
}

/// The part of a command's name that the kernel keeps.
pub fn kept_name(name: &str) -> &[u8] {
    let name = name.as_bytes();
    &name[..name.len().min(LONGEST_NAME)]
}

/// Seconds since boot, by the clock that has the starts of processes.
fn since_boot() -> Option<f64> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
    Some(now.tv_sec() as f64 + now.tv_nsec() as f64 * 1e-9)
}

/// All processes, with their names; `None`: they cannot be listed.
fn processes() -> Option<Vec<Named>> {
    let folder = std::fs::read_dir("/proc").ok()?;
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let process = |pid: u32| {
        let path = format!("/proc/{pid}/stat");
        let (name, began, totals) = parse(&tma::files::read(Path::new(&path), LONGEST).ok()?)?;
        Some((name, (pid, began), totals))
    };
    Some(folder.flatten().filter_map(number).filter_map(process).collect())
}

/// Name, start and totals. The name is in parentheses, and may have some itself.
fn parse(stat: &[u8]) -> Option<(Vec<u8>, u64, Totals)> {
    let begin = stat.iter().position(|byte| *byte == b'(')?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let name = stat.get(begin + 1..end)?.to_vec();
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Field 3, the state, is the first here.
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    Some((name, field(22)?, [field(14)?, field(15)?, field(10)?, field(12)?]))
}

fn rows_of(rows: &mut Interval, name: &SmolStr, found: Result<&Totals, Reason>) {
    let owner = Owner { command: Some(name.clone()), ..Owner::default() };
    let subject = Subject { owner, core: None };
    let mut missing = |what: &'static str, reason| {
        let (subject, what) = (subject.clone(), SmolStr::new_static(what));
        rows.not_measured.push(NotMeasured { subject, what, reason });
    };
    // Processes come and go too often to count each with events: a control group has them all.
    missing("topdown", Reason::NotAmongCounts);
    let [user, system, minor, major] = match found {
        Ok(totals) => totals.map(|n| n as f64),
        Err(reason) => return missing("cpu", reason),
    };
    let event = |name| Counted::Event(SmolStr::new_static(name));
    let all = [
        (Counted::Mode(Mode::User), user * tick()),
        (Counted::Mode(Mode::System), system * tick()),
        (event("page_faults"), minor + major),
        (event("major_faults"), major),
    ];
    let count =
        |(of, count)| Count { subject: subject.clone(), of, count, source: Source::Counted };
    rows.counts.extend(all.map(count));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_read_whole() {
        let text = "7 (a) (b) S 1 7 7 0 -1 4 11 0 3 0 250 40 0 0 20 0 1 0 9876 0 0";
        let (name, began, totals) = parse(text.as_bytes()).expect("a line");
        assert_eq!((&*name, began, totals), (&b"a) (b"[..], 9876, [250, 40, 11, 3]));
        assert_eq!(parse(b"7 ) ("), None);
        assert_eq!(parse(b"7 (a) S 1"), None);
        assert_eq!(kept_name("a-name-of-many-bytes"), b"a-name-of-many-");
    }

    /// User time in ticks that a look finds, with processes of these numbers, starts in seconds and user times.
    fn user(commands: &mut Commands, at: f64, all: &[(u32, f64, u64)]) -> Option<f64> {
        let named = |&(pid, began, ticks): &(u32, f64, u64)| {
            (b"x".to_vec(), (pid, (began / tick()) as u64), [ticks, 0, 0, 0])
        };
        let mut rows = Interval::default();
        commands.take(&mut rows, Some(at), all.iter().map(named).collect());
        let user = rows.counts.iter().find(|count| count.of == Counted::Mode(Mode::User))?;
        Some((user.count / tick()).round())
    }

    #[test]
    fn only_what_began_after_the_last_look_counts_from_its_start() {
        let mut commands = Commands::new(&["x".into()]);
        assert_eq!(user(&mut commands, 100.0, &[(1, 5.0, 50)]), Some(0.0), "the first look");
        // By hand: 70 - 50 of the first, all 30 of the second; the third has had another name.
        let all = [(1, 5.0, 70), (2, 105.0, 30), (3, 20.0, 1000)];
        assert_eq!(user(&mut commands, 110.0, &all), Some(50.0));
        assert_eq!(user(&mut commands, 120.0, &[(3, 20.0, 1010)]), Some(10.0));
        assert_eq!(user(&mut commands, 130.0, &[]), None);
        // The number of the first is another process's now.
        assert_eq!(user(&mut commands, 140.0, &[(1, 135.0, 7)]), Some(7.0));
    }
}
