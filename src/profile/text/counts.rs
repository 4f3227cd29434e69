//! Counted ranges and branches. Each part begins with the number of its lines.
//!
//! | tool | parts | addresses |
//! |---|---|---|
//! | AutoFDO (`--profiler=text`, its sample_reader.cc) | `FIRST-LAST:N`, `ADDRESS:N`, `FROM->TO:N` | offsets in the file |
//! | llvm-profgen `--skip-symbolization` | `FIRST-LAST:N`, `FROM->TO:N` | p_vaddr, or above the first segment (`--use-offset`, its default) |
//!
//! An address may have the build-id of its file before it: `BUILDID:ADDRESS`; those of other files are outside. Lines of
//! remarks (`#`), of a build-id alone, and of calling contexts (`[main:3 @ f]`) come between parts.

use super::lines::{Text, hex};
use crate::files::{Program, hexadecimal};
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
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    /// A remark or a context; a build-id, which is that of all addresses after it.
    Between(Option<String>),
    /// An address of this file, and what is counted there.
    Of(String, Box<Line>),
    Part(u64),
    Range((u64, u64), u64),
    Address(u64, u64),
    Branch((u64, u64), u64),
}

fn read(line: &str) -> Option<Line> {
    if line.starts_with(['#', '[']) || build_id(line).is_some() {
        return Some(Line::Between(build_id(line)));
    }
    let Some((key, count)) = line.rsplit_once(':') else {
        return line.parse().ok().map(Line::Part);
    };
    let count = count.parse().ok()?;
    let mut file = None;
    let mut place = |text: &str| match text.split_once(':') {
        Some((id, address)) => {
            file = Some(id.to_lowercase());
            hex(address)
        }
        None => hex(text),
    };
    let found = if let Some((from, to)) = key.split_once("->") {
        Line::Branch((place(from)?, place(to)?), count)
    } else if let Some((first, last)) = key.split_once('-') {
        Line::Range((place(first)?, place(last)?), count)
    } else {
        Line::Address(place(key)?, count)
    };
    Some(match file {
        Some(id) => Line::Of(id, Box::new(found)),
        None => found,
    })
}

/// Digits of the shortest build-id that linkers write (`--build-id=fast`).
const SHORTEST_ID: usize = 16;

/// The build-id of a line that is no more: `build-id: 5b4…`.
fn build_id(line: &str) -> Option<String> {
    let text = line.trim_start_matches(['#', ' ']).to_lowercase();
    let id = ["build-id", "build id", "buildid"].iter().find_map(|word| text.strip_prefix(word))?;
    let id = id.trim_start_matches([':', '=', ' ']).trim();
    let is_id = id.len() >= SHORTEST_ID && id.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

/// Whether a text begins as these do.
pub fn begins<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let mut lines = lines.skip_while(|line| matches!(read(line.trim()), Some(Line::Between(_))));
    let Some(first) = lines.next() else { return false };
    let has_lines = match lines.next().map(|line| read(line.trim())) {
        Some(Some(Line::Of(_, line))) if matches!(*line, Line::Range(..)) => true,
        Some(Some(Line::Range(..))) => true,
        Some(Some(Line::Part(_))) => false,
        _ => return false,
    };
    matches!(read(first.trim()), Some(Line::Part(n)) if (n > 0) == has_lines)
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
        let mut damage: Option<(u64, String)> = None;
        // llvm-profgen writes two parts for each calling context.
        let mut has_contexts = false;
        let own = program.build_id().map(hexadecimal);
        // Where the program has no build-id, nothing contradicts.
        let is_own = |id: &str| own.as_ref().is_none_or(|own| id.starts_with(own.as_str()));
        text.each(&mut |line| {
            number += 1;
            if damage.is_some() || line.trim().is_empty() {
                return true;
            }
            let mut damaged = |why: &str| damage = Some((number, why.to_owned()));
            let (found, is_own) = match read(line.trim()) {
                Some(Line::Of(id, found)) => (Some(*found), is_own(&id)),
                Some(Line::Between(Some(id))) if !is_own(&id) => {
                    damaged(&format!("its counts are of the file with the build-id {id}"));
                    return true;
                }
                Some(Line::Between(_)) => {
                    has_contexts |= line.trim().starts_with('[');
                    return true;
                }
                found => (found, true),
            };
            match found {
                Some(Line::Part(n)) if left == 0 => {
                    (left, parts) = (n, parts + 1);
                    return true;
                }
                Some(Line::Range(_, n) | Line::Address(_, n) | Line::Branch(_, n)) if n > MOST => {
                    damaged("its count is over 2^53");
                }
                _ if left == 0 => damaged("the number of lines was expected"),
                Some(Line::Range(_, n) | Line::Address(_, n) | Line::Branch(_, n)) if !is_own => {
                    raw.outside = raw.outside.saturating_add(n);
                }
                Some(Line::Range(key, n)) => add(&mut raw.ranges, key, n),
                Some(Line::Address(key, n)) => add(&mut raw.instructions, key, n),
                Some(Line::Branch(key, n)) => add(&mut raw.branches, key, n),
                _ => damaged("it is no range, address or branch with a count"),
            }
            left = left.saturating_sub(1);
            true
        })?;
        let cut = (left > 0).then(|| (number, "lines are missing after it".to_owned()));
        if let Some((line, why)) = damage.or(cut) {
            return Err(Error::failed(format!("cannot read {} at line {line}", text.source))
                .because(why)
                .hint("AutoFDO's text and llvm-profgen's unsymbolized profile are read"));
        }
        raw.is_autofdo = !has_contexts && parts > 2 || !raw.instructions.is_empty();
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
        let (is_autofdo, outside) = (self.is_autofdo, self.outside);
        let mut found = Self { is_autofdo, outside, ..Self::default() };
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
