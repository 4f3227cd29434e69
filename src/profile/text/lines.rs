//! The lines of a text, and those that cannot be read.

use crate::input::Input;
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
    ///
    /// # Errors
    /// The disk fails.
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
