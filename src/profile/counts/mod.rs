//! Recorded counts: what `perf stat`, toplev or a person's own CSV wrote down, read back.
//!
//! | file | concern |
//! |---|---|
//! | `lines` | lines of a file of any size, in bounded memory |
//! | `reader` | which format a file is in, and the way from its lines to blocks |
//! | `perf_csv`, `perf_json`, `toplev`, `plain` | one line of each format |
//! | `scope` | the part of machine or workload a line is about |
//! | `builder` | rows into blocks: one per interval, scope and run |
//! | `event_name`, `encoding`, `names` | event names as written → a table's events |
//! | `groups` | which rows were counted together |
//! | `import` | a recording and a table → [`tma::counts::Counts`] and findings |
//! | `sessions` | the same from a session file |
//! | `rank` | which tables a recording fits |
//! | `aggregate` | sums over CPUs and intervals, where one tree is wanted |
//!
//! What a file says is kept as it was written, with its line; what is not understood is listed.
//! Values in recordings are scaled already and are never scaled again.

mod aggregate;
mod builder;
mod encoding;
mod event_name;
mod groups;
mod import;
mod lines;
pub mod names;
mod perf_csv;
mod perf_json;
mod plain;
mod rank;
mod reader;
mod scope;
mod sessions;
mod toplev;

pub use aggregate::{Over, aggregate};
pub use import::{Findings, Imported, Options, Software, UnknownEvent, counts};
pub use names::{Match, Names, SoftwareKind, resolve};
pub use rank::{TableMatch, best_tables};
pub use reader::{is_folder, read};
pub use scope::{Scope, ScopeKind};

use crate::session::Session;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Index into [`Recording::names`].
pub type NameId = u32;

/// How a file is written; recognised by content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// `perf stat -x SEP`.
    PerfCsv {
        /// The separator.
        separator: String,
    },
    /// `perf stat -j`: a JSON object a line.
    PerfJson,
    /// toplev's `--valcsv`.
    Toplev,
    /// `event,value` or `trial,event,value`.
    Plain {
        /// The separator.
        separator: char,
    },
    /// A session of `tdtool record`.
    Session,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Format::PerfCsv { separator } => {
                write!(f, "perf stat -x{}", separator.escape_default())
            }
            Format::PerfJson => f.write_str("perf stat -j"),
            Format::Toplev => f.write_str("toplev --valcsv"),
            Format::Plain { .. } => f.write_str("event,value CSV"),
            Format::Session => f.write_str("tdtool session"),
        }
    }
}

/// One file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its path as given.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// How many runs were appended to one another in it.
    pub runs: u32,
}

/// What a row holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Count {
    /// A count, scaled by whoever recorded it.
    Value(f64),
    /// `<not counted>`: it never got a counter.
    NotCounted,
    /// `<not supported>`: kernel or processor do not have it.
    NotSupported,
}

/// One count of one event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The event, as written.
    pub name: NameId,
    /// Its count.
    pub count: Count,
    /// Share of the enabled time the event ran (0..=1), where the recording says so.
    pub running: Option<f64>,
    /// Nanoseconds the event ran, where the recording says so.
    pub run_time: Option<u64>,
    /// Number of the group, where the recording says so.
    pub group: Option<u32>,
    /// Unit of the count; `None` for plain counts.
    pub unit: Option<NameId>,
    /// Line of the file, from 1.
    pub line: u32,
}

/// A metric that perf printed beside the counts: for cross-checks, never parsed as a count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Its name (perf prints it in the place of a unit).
    pub name: NameId,
    /// Its value, in the unit the name says.
    pub value: f64,
    /// Line of the file, from 1.
    pub line: u32,
}

/// The rows of one interval, scope and run.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Index into [`Recording::sources`].
    pub source: usize,
    /// Number of the run inside the file, from 0: perf appends runs to one file.
    pub run: u32,
    /// `trial` or `block` column of a CSV.
    pub trial: Option<String>,
    /// Begin and end since the start of the run, with `perf stat -I`.
    pub interval: Option<(Duration, Duration)>,
    /// perf's `summary` lines after the intervals: the whole run once more.
    pub summary: bool,
    /// Part of the machine or the workload.
    pub scope: Option<Scope>,
    /// Counts of hardware events, in file order.
    pub rows: Vec<Row>,
    /// Counts of software events and times: task-clock, context switches, duration_time.
    pub software: Vec<Row>,
    /// Constants of the run (`#SMT_ON`), by [`tma::tables::Const`] index.
    pub constants: [Option<f64>; 5],
    /// Metrics perf printed on the side.
    pub metrics: Vec<Metric>,
}

/// A line that was not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Index into [`Recording::sources`].
    pub source: usize,
    /// Line of the file, from 1.
    pub line: u32,
    /// Why, in a few words.
    pub why: String,
    /// The beginning of the line.
    pub text: String,
}

/// Everything that was read from one or several files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    /// The files, in the order given.
    pub sources: Vec<Source>,
    /// Every name and unit that occurs, once.
    pub names: Vec<String>,
    /// The counts.
    pub blocks: Vec<Block>,
    /// The first [`SKIPPED_KEPT`] lines that were not understood.
    pub skipped: Vec<Skipped>,
    /// How many more there were.
    pub skipped_more: u64,
    /// Facts about the files that a reader of the report must know.
    pub notes: Vec<String>,
    /// Sessions among the files; their counts need no matching of names.
    pub sessions: Vec<Session>,
}

/// How many lines that were not understood are kept with their text.
pub const SKIPPED_KEPT: usize = 200;

impl Recording {
    /// The name with this id.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("", String::as_str)
    }

    /// `FILE:LINE` of a row or a skipped line.
    pub fn place(&self, source: usize, line: u32) -> String {
        match self.sources.get(source) {
            Some(s) => format!("{}:{line}", s.path.display()),
            None => format!("line {line}"),
        }
    }

    /// What a block is called when there are several: file, run, trial and scope as needed.
    pub fn label(&self, block: &Block) -> Option<String> {
        let mut parts = Vec::new();
        if self.sources.len() > 1
            && let Some(source) = self.sources.get(block.source)
        {
            let stem = source.path.file_stem().unwrap_or(source.path.as_os_str());
            let stem_is_unique =
                self.sources.iter().filter(|s| s.path.file_stem() == Some(stem)).count() == 1;
            parts.push(match stem_is_unique {
                true => stem.to_string_lossy().into_owned(),
                false => source.path.display().to_string(),
            });
        }
        if self.sources.get(block.source).is_some_and(|s| s.runs > 1) {
            parts.push(format!("run {}", block.run + 1));
        }
        if let Some(trial) = &block.trial {
            parts.push(format!("trial {trial}"));
        }
        if let Some(scope) = &block.scope {
            parts.push(scope.to_string());
        }
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}
