//! Recorded counts as they were written: rows, blocks, files.

use super::format::Format;
use super::scope::Scope;
use super::unparsed::Unparsed;
use crate::session::Session;
use std::path::PathBuf;
use std::time::Duration;

/// Index into [`Recording::names`].
pub type NameId = u32;

/// One file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its path as given.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// Number of runs appended to one another in it.
    pub runs: u32,
}

/// The count of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Count {
    /// A count, scaled by the recorder.
    Value(f64),
    /// `<not counted>`: the event never got a counter.
    NotCounted,
    /// `<not supported>`: kernel or processor lack the event.
    NotSupported,
}

/// One count of one event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The event, as written.
    pub name: NameId,
    /// Its count.
    pub count: Count,
    /// Running share: running time over enabled time (0..=1), if recorded.
    pub running: Option<f64>,
    /// Running time in nanoseconds, if recorded.
    pub run_time: Option<u64>,
    /// Number of the group, if recorded.
    pub group: Option<u32>,
    /// Unit of the count; `None` for plain counts.
    pub unit: Option<NameId>,
    /// Line of the file, from 1.
    pub line: u32,
}

/// A metric that perf printed with a count: for cross-checks only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Its name (perf prints it in place of a unit).
    pub name: NameId,
    /// Its value, in the unit in its name.
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
    /// `trial` or `block` column of a CSV file.
    pub trial: Option<String>,
    /// Begin and end since the start of the run, with `perf stat -I`.
    pub interval: Option<(Duration, Duration)>,
    /// From perf's `summary` lines: the whole run once more, after its intervals.
    pub summary: bool,
    /// CPU, core, thread, … they were counted on.
    pub scope: Option<Scope>,
    /// Counts of hardware events, in file order.
    pub rows: Vec<Row>,
    /// Counts of software events and times: task-clock, context switches, duration_time.
    pub software: Vec<Row>,
    /// Constants of the run (`#SMT_ON`), by [`tma::tables::Const`] index.
    pub constants: [Option<f64>; 5],
    /// Metrics that perf printed with the counts.
    pub metrics: Vec<Metric>,
}

/// A line that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Index into [`Recording::sources`].
    pub source: usize,
    /// Line of the file, from 1.
    pub line: u32,
    /// The reason.
    pub why: Unparsed,
    /// The beginning of the line.
    pub text: String,
}

/// Recorded counts from one or several files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    /// The files, in the order given.
    pub sources: Vec<Source>,
    /// Every event name and unit that occurs, once.
    pub names: Vec<String>,
    /// The counts.
    pub blocks: Vec<Block>,
    /// The first [`SKIPPED_KEPT`] lines that could not be parsed.
    pub skipped: Vec<Skipped>,
    /// Number of further such lines.
    pub skipped_more: u64,
    /// Facts about the files that a report must state.
    pub notes: Vec<String>,
    /// Sessions among the files; their counts carry event ids instead of names.
    pub sessions: Vec<Session>,
}

/// Largest number of skipped lines stored with their text.
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

    /// The label of a block among several: file, run, trial and scope as needed.
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
