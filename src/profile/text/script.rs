//! A line of `perf script` → what it says.

use super::lines::{self, hex};
use crate::record::Mapping;
use crate::sample::Branch;

/// A line. What comes before a sample's branches is all optional: `perf script -F` chooses it.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A mapping (`--show-mmap-events`).
    Map(Mapping),
    /// The start of a sample: thread, time, event; its address, if it is on the same line; its branches,
    /// newest first.
    Sample(Head, Vec<Branch>),
    /// A branch of a trace (`--itrace=b`): where it is, where it goes; 0 for what was not traced.
    Branch(Head, u64, u64),
    /// An address on a line of its own: of the sample, or of a caller.
    Address(u64),
    /// An instruction (`-F brstackinsn`), and whether it is a branch that was taken.
    Instruction(u64, Option<Taken>),
    /// Irrelevant.
    Other,
}

/// A taken branch of `-F brstackinsn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub mispredicted: Option<bool>,
    pub cycles: Option<u16>,
}

/// Fields before the branches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    pub pid: Option<u32>,
    pub tid: Option<u32>,
    /// Nanoseconds.
    pub time: Option<u64>,
    /// The event, with its modifiers.
    pub event: Option<String>,
    pub ip: Option<u64>,
}

/// Whether a line shows that a text is one of `perf script` with branches.
pub fn tells(line: &str) -> bool {
    if line.contains("PERF_RECORD_MMAP") {
        return true;
    }
    match read(line) {
        Some(Line::Sample(_, branches)) => !branches.is_empty(),
        Some(Line::Instruction(..)) => line.contains("insn:"),
        Some(Line::Branch(head, ..)) => head.ip.is_some(),
        _ => false,
    }
}

/// Whether a line is the start of a sample as `perf script` writes it by default: thread, time and event.
pub fn is_sample(line: &str) -> bool {
    match read(line) {
        Some(Line::Sample(head, _)) => {
            head.tid.is_some() && head.time.is_some() && head.event.is_some()
        }
        _ => false,
    }
}

/// Reads a line; `None` if it is none of `perf script`, or damaged.
pub fn read(line: &str) -> Option<Line> {
    let text = line.trim();
    if text.is_empty() || text.starts_with('#') {
        return Some(Line::Other);
    }
    if let Some(at) = text.find("PERF_RECORD_") {
        return match text[at..].starts_with("PERF_RECORD_MMAP") {
            true => mapping(&text[at..]).map(Line::Map),
            false => Some(Line::Other),
        };
    }
    if let Some(instruction) = instruction(text) {
        return Some(instruction);
    }
    if let Some((from, to)) = text.split_once("=>") {
        return branch(from, to);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let first = words.iter().position(|word| lines::is_entry(word)).unwrap_or(words.len());
    let (before, entries) = words.split_at(first);
    let head = head(before);
    if entries.is_empty() {
        return without_branches(text, before, head);
    }
    let mut branches = Vec::with_capacity(entries.len());
    for word in entries {
        let (branch, is_taken) = lines::entry(word)?;
        if is_taken {
            branches.push(branch);
        }
    }
    Some(Line::Sample(head?, lines::without_absent_cycles(branches)))
}

fn without_branches(text: &str, words: &[&str], head: Option<Head>) -> Option<Line> {
    // brstackinsn names the place of each piece: `main+143:`, and where its code is not known.
    if words.len() == 1 && text.ends_with(':') || text.starts_with("...") {
        return Some(Line::Other);
    }
    if let Some(head) = head.filter(|head| head.time.is_some() || head.event.is_some()) {
        return Some(Line::Sample(head, Vec::new()));
    }
    hex(words.first()?).filter(|_| !text.ends_with(':')).map(Line::Address)
}

/// The words before the branches. The time is the word `SECONDS.NANOSECONDS:`, before it come thread (and
/// CPU), after it period and event. `None` if there are words but none of them is known.
fn head(words: &[&str]) -> Option<Head> {
    let mut head = Head::default();
    let time = words.iter().position(|word| time(word).is_some());
    if let Some(at) = time {
        head.time = self::time(words[at]);
        let mut before = words[..at].iter().rev().filter(|word| !word.starts_with('['));
        let thread = before.next().and_then(|word| thread(word));
        (head.pid, head.tid) = thread.unwrap_or_default();
    }
    let after = time.map_or(0, |at| at + 1);
    let is_event = |word: &&str| {
        word.len() > 1 && word.ends_with(':') && hex(word.trim_end_matches(':')).is_none()
    };
    let event = words[after..].iter().position(is_event).map(|at| after + at);
    if let Some(at) = event {
        head.event = Some(words[at].trim_end_matches(':').to_owned());
    }
    let rest = &words[event.map_or(after, |at| at + 1)..];
    head.ip = rest.first().and_then(|word| hex(word));
    let is_known = words.is_empty() || head != Head::default();
    is_known.then_some(head)
}

fn time(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
    let digits = fraction.len();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let fraction: u64 = fraction.parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction * 10_u64.pow(9 - digits as u32))
}

/// `TID` or `PID/TID`.
fn thread(word: &str) -> Option<(Option<u32>, Option<u32>)> {
    match word.split_once('/') {
        Some((pid, tid)) => Some((Some(pid.parse().ok()?), Some(tid.parse().ok()?))),
        None => word.parse().ok().map(|tid| (Some(tid), Some(tid))),
    }
}

/// `… ADDRESS [SYMBOL (FILE)] => ADDRESS [SYMBOL (FILE)]`.
fn branch(from: &str, to: &str) -> Option<Line> {
    let words: Vec<&str> = from.split_whitespace().collect();
    let head = head(&words)?;
    let to = hex(to.split_whitespace().next()?)?;
    Some(Line::Branch(head.clone(), head.ip?, to))
}

/// `ADDRESS insn: BYTES [# FLAGS N cycles …]`, or with the instruction's text (`--xed`).
fn instruction(text: &str) -> Option<Line> {
    let (address, rest) = text.split_once(char::is_whitespace)?;
    let (code, flags) = match rest.split_once('#') {
        Some((code, flags)) => (code, Some(flags)),
        None => (rest, None),
    };
    let is_taken = flags.is_some_and(|flags| flags.contains("PRED") || flags.contains("cycles"));
    if address.len() != 16 || !(code.trim_start().starts_with("insn:") || is_taken) {
        return None;
    }
    let taken = flags.filter(|_| is_taken).map(|flags| {
        let words: Vec<&str> = flags.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "cycles");
        Taken {
            mispredicted: flags.contains("PRED").then(|| flags.contains("MISPRED")),
            cycles: at.and_then(|at| words.get(at.checked_sub(1)?)?.parse().ok()),
        }
    });
    Some(Line::Instruction(hex(address)?, taken))
}

/// `PERF_RECORD_MMAP2 PID/TID: [START(LENGTH) @ OFFSET …]: PROTECTION PATH`.
fn mapping(text: &str) -> Option<Mapping> {
    let (thread, rest) = text.split_once(' ')?.1.trim().split_once(": [")?;
    let (pid, tid) = thread.split_once('/')?;
    let (place, rest) = rest.split_once("]: ")?;
    let (start, after) = place.split_once('(')?;
    let (length, after) = after.split_once(')')?;
    let offset = after.trim().strip_prefix('@')?.split_whitespace().next()?;
    let (protection, path) = rest.split_once(' ')?;
    let pid: i64 = pid.parse().ok()?;
    Some(Mapping {
        pid: pid as u32,
        tid: tid.parse::<i64>().ok()? as u32,
        start: hex(start)?,
        length: hex(length)?,
        offset: if offset == "0" { 0 } else { hex(offset)? },
        path: path.to_owned(),
        build_id: None,
        inode: None,
        executable: Some(protection.contains('x')),
        kernel: pid == -1,
    })
}
