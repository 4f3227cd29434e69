//! Lines of a file of any size: streamed, numbered, of bounded length.

use super::format::FORMATS;
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use tma::error::{Error, Result};

/// Longest line in bytes. perf's lines have some hundred, toplev's some thousand.
pub const LONGEST: usize = 1 << 20;

/// The mark at the start of a text that programs of Windows write.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads numbered lines.
pub struct Lines<R> {
    input: BufReader<R>,
    path: String,
    buffer: Vec<u8>,
    line: u32,
    terminated: bool,
    utf8: Option<u32>,
}

impl<R: Read> Lines<R> {
    /// Lines of `input`; `path` names it in messages.
    pub fn new(input: R, path: &Path) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 16, input),
            path: path.display().to_string(),
            buffer: Vec::new(),
            line: 0,
            terminated: true,
            utf8: None,
        }
    }

    /// The first bytes, without consuming them: at most one buffer full.
    pub fn peek(&mut self) -> Result<&[u8]> {
        let path = &self.path;
        self.input.fill_buf().map_err(|e| Error::failed(format!("cannot read {path}")).because(e))
    }

    /// The next line without its end, and its number from 1; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read, is binary, or has a line of more than [`LONGEST`] bytes.
    pub fn next(&mut self) -> Result<Option<(u32, Cow<'_, str>)>> {
        self.buffer.clear();
        let path = &self.path;
        let place = self.line.saturating_add(1);
        let mut limited = (&mut self.input).take(LONGEST as u64 + 1);
        let n = limited.read_until(b'\n', &mut self.buffer).map_err(|e| {
            Error::failed(format!("cannot read {path} beyond line {}", self.line)).because(e)
        })?;
        if n == 0 {
            return Ok(None);
        }
        self.line = place;
        self.terminated = self.buffer.last() == Some(&b'\n');
        if !self.terminated && n > LONGEST {
            return Err(Error::failed(format!("{path}:{place}: the line is longer than 1 MiB"))
                .because("no format of recorded counts has such lines")
                .hint(FORMATS));
        }
        if self.buffer.contains(&0) {
            return Err(Error::failed(format!("{path}:{place}: this is a binary file"))
                .because("the line holds a NUL byte")
                .hint(FORMATS));
        }
        while matches!(self.buffer.last(), Some(b'\n' | b'\r')) {
            self.buffer.pop();
        }
        let mark = if place == 1 { BYTE_ORDER_MARK } else { b"" };
        let line = self.buffer.strip_prefix(mark).unwrap_or(&self.buffer);
        let text = String::from_utf8_lossy(line);
        if matches!(text, Cow::Owned(_)) && self.utf8.is_none() {
            self.utf8 = Some(place);
        }
        Ok(Some((place, text)))
    }

    /// The input; if no line was read, from its first byte.
    pub fn into_input(self) -> impl Read {
        self.input
    }

    /// Number of the last line read.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Whether the last line read had its line end.
    pub fn terminated(&self) -> bool {
        self.terminated
    }

    /// The first line that was not UTF-8; its invalid bytes were replaced.
    pub fn first_bad_utf8(&self) -> Option<u32> {
        self.utf8
    }
}
