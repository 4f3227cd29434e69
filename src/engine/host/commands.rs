//! Processes by the name of their command: CPU time and page faults in `/proc/PID/stat` (proc_pid_stat(5)). A process
//! counts from the first look at it, one that began later from its start; its last part of an interval is lost.

use super::{LONGEST, tick};
use fleet::metrics::{Count, Counted, Interval, Mode, NotMeasured, Reason, Subject};
use fleet::window::{Owner, Source};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::path::Path;

/// Longest name that the kernel keeps.
const LONGEST_NAME: usize = 15;

/// Totals of a process: user and system time in ticks, minor and major faults.
type Totals = [u64; 4];

/// A process: its number, and when it began.
type Process = (u32, u64);

/// The processes of commands.
#[derive(Debug, Default)]
pub struct Commands {
    names: Vec<SmolStr>,
    last: Option<BTreeMap<Process, Totals>>,
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
        let mut found: BTreeMap<&SmolStr, Totals> = BTreeMap::new();
        let mut now = BTreeMap::new();
        for (name, process, totals) in processes() {
            let Some(name) = self.names.iter().find(|own| is_named(own, &name)) else { continue };
            let sums = found.entry(name).or_default();
            // Nobody knows how much of what ran before the first look is of this interval.
            let before = self.last.as_ref().map(|last| last.get(&process).copied());
            let before = before.map_or(totals, Option::unwrap_or_default);
            let passed =
                totals.iter().zip(before).map(|(total, before)| total.saturating_sub(before));
            sums.iter_mut().zip(passed).for_each(|(sum, passed)| *sum += passed);
            now.insert(process, totals);
        }
        for name in &self.names {
            rows_of(rows, name, found.get(name));
        }
        self.last = Some(now);
    }
}

fn is_named(asked: &str, name: &[u8]) -> bool {
    let asked = asked.as_bytes();
    &asked[..asked.len().min(LONGEST_NAME)] == name
}

/// All processes, with their names.
fn processes() -> Vec<(Vec<u8>, Process, Totals)> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let process = |pid: u32| {
        let path = format!("/proc/{pid}/stat");
        let (name, began, totals) = parse(&tma::files::read(Path::new(&path), LONGEST).ok()?)?;
        Some((name, (pid, began), totals))
    };
    folder.flatten().filter_map(number).filter_map(process).collect()
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

fn rows_of(rows: &mut Interval, name: &SmolStr, found: Option<&Totals>) {
    let owner = Owner { command: Some(name.clone()), ..Owner::default() };
    let subject = Subject { owner, core: None };
    let mut missing = |what: &'static str, reason| {
        let (subject, what) = (subject.clone(), SmolStr::new_static(what));
        rows.not_measured.push(NotMeasured { subject, what, reason });
    };
    // Processes come and go too often to count each with events: a control group has them all.
    missing("topdown", Reason::NotAmongCounts);
    let Some([user, system, minor, major]) = found.map(|totals| totals.map(|n| n as f64)) else {
        return missing("cpu", Reason::Absent);
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
        assert!(is_named("a-name-of-many-bytes", b"a-name-of-many-"));
    }
}
