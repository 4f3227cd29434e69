//! The kinds of files that are read as recordings, recognised by content, and the formats of counts: the one list that
//! help and errors are made of.

use crate::{kept, perfdata, session};
use std::fmt;
use std::io::{self, BufRead as _, Read as _};
use std::path::Path;
use tma::error::{Error, Result};
use tma::files::name;

/// The kind of a file, by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A session of tdtool.
    Session,
    /// perf.data with samples.
    PerfData,
    /// perf.data with counts: `perf stat record`.
    PerfStatRecord,
    /// The evidence of an estimate.
    Evidence,
    /// Another document of tdtool.
    Document,
    /// Counts as text, or something else.
    Other,
}

/// Bytes by which a file is known.
const START: u64 = 64;
/// The begin of a document, without white space.
const DOCUMENT: &[u8] = b"{\"schema\":\"tdtool.";

impl FileKind {
    /// The kind of the file.
    ///
    /// # Errors
    /// It cannot be read, or is a folder without a recording in it.
    pub fn of(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::of_input(path);
        }
        if path.is_dir() {
            // A folder of `perf record --threads`.
            return match path.join("data").is_file() {
                true => Ok(Self::PerfData),
                false => Err(Error::failed(format!("{} is a folder, not a recording", name(path)))
                    .hint(formats())),
            };
        }
        Self::of_kept(path)
    }

    fn of_kept(path: &Path) -> Result<Self> {
        let mut start = Vec::new();
        let file = kept::open(path).map_err(|e| unreadable(path, &e))?;
        file.take(START).read_to_end(&mut start).map_err(|e| unreadable(path, &e))?;
        Ok(Self::of_start(path, &start))
    }

    /// The kind of a file that begins in this way.
    fn of_start(path: &Path, start: &[u8]) -> Self {
        if perfdata::recognise(start) {
            return match perfdata::holds_counts(path) {
                true => Self::PerfStatRecord,
                false => Self::PerfData,
            };
        }
        if start.starts_with(&session::MAGIC) {
            return Self::Session;
        }
        let text: Vec<u8> = start.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
        match text.strip_prefix(DOCUMENT) {
            Some(of) if of.starts_with(b"evidence/") => Self::Evidence,
            Some(_) => Self::Document,
            None => Self::Other,
        }
    }

    /// The kind of standard input. A text is read from its begin later; the parts of a recording are read in an order
    /// of their own, so it is saved in a file.
    fn of_input(path: &Path) -> Result<Self> {
        let mut input = io::stdin().lock();
        let start = input.fill_buf().map_err(|e| unreadable(path, &e))?;
        let is_recording = perfdata::recognise(start) || start.starts_with(&session::MAGIC);
        if !is_recording && kept::Packing::of(start).is_none() && kept::kept(path).is_none() {
            return Ok(Self::of_start(path, start));
        }
        drop(input);
        Self::of_kept(path)
    }
}

/// The error for a file that cannot be opened or read.
fn unreadable(path: &Path, e: &io::Error) -> Error {
    let is_command = e.kind() == io::ErrorKind::NotFound && path.extension().is_none();
    let error = tma::error::unreadable(path, e);
    // Commands have no `.csv`.
    match is_command && tma::error::near(path).is_none() {
        false => error,
        true => error.hint(format!(
            "to measure a command of that name: `tdtool report -- {}`",
            tma::shell::quoted(&[path])
        )),
    }
}

/// Format of a file of counts, recognised by content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountFormat {
    /// `perf stat -x SEP`.
    PerfCsv {
        /// Between the fields.
        separator: String,
    },
    /// `perf stat -j`: one JSON object per line.
    PerfJson,
    /// `perf stat record`.
    PerfStatRecord,
    /// toplev's `--valcsv`.
    Toplev,
    /// `event,value` or `trial,event,value`.
    Plain {
        /// Between the fields.
        separator: char,
    },
    /// A session of `tdtool record`.
    Session,
}

impl fmt::Display for CountFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerfCsv { separator } => {
                write!(f, "perf stat -x{}", separator.escape_default())
            }
            Self::PerfJson => f.write_str("perf stat -j"),
            Self::PerfStatRecord => f.write_str("perf stat record"),
            Self::Toplev => f.write_str("toplev --valcsv"),
            Self::Plain { .. } => f.write_str("event,value CSV"),
            Self::Session => f.write_str("tdtool session"),
        }
    }
}

/// The formats of other tools.
static OF_TOOLS: [CountFormat; 5] = [
    CountFormat::PerfCsv { separator: String::new() },
    CountFormat::PerfJson,
    CountFormat::PerfStatRecord,
    CountFormat::Toplev,
    CountFormat::Plain { separator: ',' },
];

/// The inputs that are read, as a hint after an error.
pub fn formats() -> String {
    let written = OF_TOOLS.iter().map(|format| match format {
        CountFormat::PerfCsv { .. } => format!("`{format},`"),
        CountFormat::Plain { .. } => "or CSV lines `event,value`".to_owned(),
        _ => format!("`{format}`"),
    });
    let written: Vec<String> = written.collect();
    format!(
        "to measure a program: `tdtool report -- ./PROGRAM`; a recording is a session of `tdtool \
         record`, perf.data, or the output of {}",
        written.join(", ")
    )
}

/// The formats of other tools on one line, each tool named once.
pub fn formats_of_tools() -> String {
    let (mut all, mut tool) = (Vec::new(), String::new());
    for format in &OF_TOOLS {
        let text = format.to_string();
        let (own, option) = text.rsplit_once(' ').unwrap_or(("", &text));
        all.push(if own == tool { option.to_owned() } else { text.clone() });
        tool = own.to_owned();
    }
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_is_named_once() {
        let expected = "perf stat -x, -j, record, toplev --valcsv, event,value CSV";
        assert_eq!(formats_of_tools(), expected);
    }
}
