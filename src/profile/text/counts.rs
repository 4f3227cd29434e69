//! Counted ranges and branches. Each part begins with the number of its lines.
//!
//! | tool | parts | addresses |
//! |---|---|---|
//! | AutoFDO (`--profiler=text`, its sample_reader.cc) | `FIRST-LAST:N`, `ADDRESS:N`, `FROM->TO:N` | offsets in the file |
//! | llvm-profgen `--skip-symbolization` | `FIRST-LAST:N`, `FROM->TO:N` | p_vaddr, or above the first segment (`--use-offset`, its default) |

use super::lines::{Text, hex};
use crate::files::Program;
use crate::input::Input;
use std::collections::BTreeMap;
use std::path::Path;
use tma::{Error, Result};

/// No run counts more (142 years of 2 million branches a second); shares need exact numbers, too.
const MOST: u64 = 1 << 53;

/// Counts of a program's code, by p_vaddr.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Straight code: first instruction and the branch that ends it.
    pub ranges: BTreeMap<(u64, u64), u64>,
    /// Samples of instructions.
    pub instructions: BTreeMap<u64, u64>,
    /// Branches and their targets.
    pub branches: BTreeMap<(u64, u64), u64>,
    /// Whether AutoFDO wrote it.
    pub is_autofdo: bool,
    /// Counts that are not in the program's code.
    pub outside: u64,
}

/// A line of such a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Part(u64),
    Range((u64, u64), u64),
    Address(u64, u64),
    Branch((u64, u64), u64),
}

fn read(line: &str) -> Option<Line> {
    let Some((key, count)) = line.rsplit_once(':') else {
        return line.parse().ok().map(Line::Part);
    };
    let count = count.parse().ok()?;
    if let Some((from, to)) = key.split_once("->") {
        return Some(Line::Branch((hex(from)?, hex(to)?), count));
    }
    match key.split_once('-') {
        Some((first, last)) => Some(Line::Range((hex(first)?, hex(last)?), count)),
        None => Some(Line::Address(hex(key)?, count)),
    }
}

/// Whether a text begins as these do.
pub fn begins(first: &str, second: Option<&str>) -> bool {
    let has_lines = match second.map(read) {
        None => return false,
        Some(Some(Line::Range(..))) => true,
        Some(Some(Line::Part(_))) => false,
        Some(_) => return false,
    };
    matches!(read(first), Some(Line::Part(n)) if (n > 0) == has_lines)
}

impl Counts {
    /// Reads the counts of a program.
    ///
    /// # Errors
    /// The text cannot be read, or has a line that cannot be right, which is named.
    pub fn read(path: &Path, program: &Program) -> Result<Self> {
        let source = path.display().to_string();
        let input = Input::open(path)
            .map_err(|e| Error::failed(format!("cannot read {source}")).because(e))?;
        Self::parse(Text { input, source }, program)
    }

    pub(super) fn parse(text: Text, program: &Program) -> Result<Self> {
        let mut raw = Self::default();
        let (mut left, mut parts, mut number) = (0, 0, 0);
        let mut damage: Option<(u64, &str)> = None;
        text.each(&mut |line| {
            number += 1;
            if damage.is_some() || line.trim().is_empty() {
                return true;
            }
            let found = read(line.trim());
            match found {
                Some(Line::Part(n)) if left == 0 => {
                    (left, parts) = (n, parts + 1);
                    return true;
                }
                Some(Line::Range(_, n) | Line::Address(_, n) | Line::Branch(_, n)) if n > MOST => {
                    damage = Some((number, "its count is over 2^53"));
                }
                _ if left == 0 => damage = Some((number, "the number of lines was expected")),
                Some(Line::Range(key, n)) => add(&mut raw.ranges, key, n),
                Some(Line::Address(key, n)) => add(&mut raw.instructions, key, n),
                Some(Line::Branch(key, n)) => add(&mut raw.branches, key, n),
                _ => damage = Some((number, "it is no range, address or branch with a count")),
            }
            left = left.saturating_sub(1);
            true
        })?;
        let cut = (left > 0).then_some((number, "lines are missing after it"));
        if let Some((line, why)) = damage.or(cut) {
            return Err(Error::failed(format!("cannot read {} at line {line}", text.source))
                .because(why)
                .hint("AutoFDO's text and llvm-profgen's unsymbolized profile are read"));
        }
        raw.is_autofdo = parts > 2 || !raw.instructions.is_empty();
        Ok(raw.placed(program))
    }

    /// With the addresses of the program.
    fn placed(self, program: &Program) -> Self {
        let first = program.first_address();
        let mut all = self.ranges.keys().chain(self.branches.keys());
        let is_offset = first > 0 && all.all(|(a, b)| *a < first || *b < first);
        let place = |address: u64| match (self.is_autofdo, is_offset) {
            (true, _) => program.address_of(address),
            (false, true) => address.checked_add(first),
            (false, false) => Some(address),
        };
        let both = |(a, b): (u64, u64)| place(a).zip(place(b));
        let mut found = Self { is_autofdo: self.is_autofdo, ..Self::default() };
        for (key, n) in &self.ranges {
            match both(*key) {
                Some(key) => add(&mut found.ranges, key, *n),
                None => found.outside = found.outside.saturating_add(*n),
            }
        }
        for (key, n) in &self.branches {
            match both(*key) {
                Some(key) => add(&mut found.branches, key, *n),
                None => found.outside = found.outside.saturating_add(*n),
            }
        }
        for (key, n) in &self.instructions {
            match place(*key) {
                Some(key) => add(&mut found.instructions, key, *n),
                None => found.outside = found.outside.saturating_add(*n),
            }
        }
        found
    }
}

fn add<K: Ord>(to: &mut BTreeMap<K, u64>, key: K, n: u64) {
    let sum = to.entry(key).or_default();
    *sum = sum.saturating_add(n).min(MOST);
}
