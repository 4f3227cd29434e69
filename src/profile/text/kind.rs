//! Which tool wrote a text, by its content.

use super::{counts, lackey, script};

/// Tool or format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `perf script` with branches.
    PerfScript,
    /// `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// Counted ranges and branches: AutoFDO's text, llvm-profgen's unsymbolized profile.
    Counts,
}

/// Lines that may precede one that identifies the format.
const LEAST_KNOWN: usize = 1000;

/// Kind of the text that begins with these bytes; the last line may be incomplete.
pub fn recognise(start: &[u8]) -> Option<Kind> {
    if start.contains(&0) {
        return None;
    }
    let text = String::from_utf8_lossy(start);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(LEAST_KNOWN);
    if counts::begins(lines.clone()) {
        return Some(Kind::Counts);
    }
    lines.find_map(|line| match () {
        () if lackey::is_trace(line) => Some(Kind::Lackey),
        () if script::tells(line) => Some(Kind::PerfScript),
        () => None,
    })
}
