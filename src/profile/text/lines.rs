//! Splits a text into lines, some of which cannot be read, and parses an entry of a branch stack as `perf script`
//! writes it: `FROM/TO/M|P|-/X|-/A|-/CYCLES[/TYPE[/SPEC]]`, each address possibly followed by its file in
//! parentheses.
//!
//! perf's `print_brstack` (tools/perf/builtin-script.c): cycles end the entry up to Linux 5.18, then the
//! type follows (empty if unknown), from 6.1 on the speculation, and from 6.16 on `N` beside `P` or `M` is
//! a branch that was not taken.

use crate::input::Input;
use crate::sample::Branch;
use std::io::{BufRead as _, BufReader, Read as _};
use tma::{Error, Result};

/// No line is longer: samples have at most a few thousand branches.
const LONGEST: u64 = 1 << 20;

/// A text that can be read several times.
#[derive(Debug)]
pub struct Text {
    pub input: Input,
    pub source: String,
}

impl Text {
    /// Calls `take` with each line, which returns false for one that cannot be read. Returns what a report
    /// must state of those.
    pub fn each(&self, take: &mut dyn FnMut(&str) -> bool) -> Result<Vec<String>> {
        let mut reader = BufReader::with_capacity(1 << 18, self.input.reader());
        let mut line = Vec::new();
        let mut unread = Unread::default();
        for number in 1_u64.. {
            line.clear();
            let n = (&mut reader)
                .take(LONGEST)
                .read_until(b'\n', &mut line)
                .map_err(|e| Error::failed(format!("cannot read {}", self.source)).because(e))?;
            if n == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            if !take(text.trim_end()) {
                unread.add(number);
            }
        }
        Ok(unread.notes())
    }
}

/// Lines that cannot be read.
#[derive(Debug, Default)]
struct Unread {
    count: u64,
    first: u64,
}

impl Unread {
    fn add(&mut self, line: u64) {
        if self.count == 0 {
            self.first = line;
        }
        self.count += 1;
    }

    fn notes(&self) -> Vec<String> {
        match self.count {
            0 => Vec::new(),
            1 => vec![format!("line {} could not be read and is left out", self.first)],
            n => vec![format!(
                "{n} lines could not be read and are left out; the first is line {}",
                self.first
            )],
        }
    }
}

/// A hexadecimal number, with or without `0x`.
pub fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let all = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    all.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Whether a word looks like an entry.
pub fn is_entry(word: &str) -> bool {
    word.starts_with("0x") && word.contains('/')
}

/// The branch; `None` if it cannot be read. The second is false for a branch that was not taken.
pub fn entry(word: &str) -> Option<(Branch, bool)> {
    let (from, rest) = address(word)?;
    let (to, rest) = address(rest)?;
    let mut fields = rest.split('/');
    let event = fields.next()?;
    let mispredicted = match event {
        "-" | "" => None,
        _ if event.contains('M') => Some(true),
        _ if event.contains('P') => Some(false),
        _ => return None,
    };
    let (transaction, abort) = (fields.next()?, fields.next()?);
    if !matches!((transaction, abort), ("X" | "-", "A" | "-")) {
        return None;
    }
    let cycles: u64 = fields.next()?.parse().ok()?;
    fields.next(); // the type
    let branch = Branch {
        from,
        to,
        mispredicted,
        transaction: (transaction == "X", abort == "A"),
        cycles: Some(u16::try_from(cycles).unwrap_or(u16::MAX)),
        kind: 0,
        wrong_path: fields.next().is_some_and(|spec| spec.ends_with("WRONG_PATH")),
    };
    Some((branch, !event.contains('N')))
}

/// The address at the start of a word, and what follows its slash.
fn address(word: &str) -> Option<(u64, &str)> {
    let digits = word.strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit())?;
    let (number, rest) = digits.split_at(end);
    let rest = match rest.strip_prefix('(') {
        Some(file) => &file[file.find(")/")? + 1..],
        None => rest,
    };
    Some((hex(number)?, rest.strip_prefix('/')?))
}

/// The branches without cycles, if none of them has any.
pub fn without_absent_cycles(mut branches: Vec<Branch>) -> Vec<Branch> {
    if branches.iter().all(|branch| branch.cycles == Some(0)) {
        branches.iter_mut().for_each(|branch| branch.cycles = None);
    }
    branches
}
