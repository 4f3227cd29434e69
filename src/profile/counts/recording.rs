//! Recorded counts as they were written: rows, blocks, files; their scopes, and why a line is skipped.

use super::formats::CountFormat;
use crate::session::Session;
use std::fmt;
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
    pub format: CountFormat,
    /// Number of runs appended to one another in it.
    pub runs: u32,
}

/// The count of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Count {
    /// A count, scaled by the recorder.
    Value(f64),
    /// `<not counted>`: the event never got a counter.
    #[default]
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

/// Events that need no PMU, as perf names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SoftwareKind {
    /// Time on a CPU in milliseconds.
    TaskClock,
    /// CPU clock in milliseconds.
    CpuClock,
    /// Wall time in nanoseconds.
    DurationTime,
    /// Time in user mode in nanoseconds.
    UserTime,
    /// Time in kernel mode in nanoseconds.
    SystemTime,
    /// Context switches.
    ContextSwitches,
    /// Migrations to another CPU.
    CpuMigrations,
    /// Page faults.
    PageFaults,
    /// Page faults without input or output.
    MinorFaults,
    /// Page faults with input or output.
    MajorFaults,
    /// Unaligned accesses that the kernel fixed up.
    AlignmentFaults,
    /// Instructions that the kernel emulated.
    EmulationFaults,
    /// Switches to another control group.
    CgroupSwitches,
}

impl SoftwareKind {
    /// All of them, with the names that perf accepts; it prints the first.
    const NAMES: [(SoftwareKind, &'static [&'static str]); 13] = [
        (SoftwareKind::TaskClock, &["task-clock"]),
        (SoftwareKind::CpuClock, &["cpu-clock"]),
        (SoftwareKind::DurationTime, &["duration_time"]),
        (SoftwareKind::UserTime, &["user_time"]),
        (SoftwareKind::SystemTime, &["system_time"]),
        (SoftwareKind::ContextSwitches, &["context-switches", "cs"]),
        (SoftwareKind::CpuMigrations, &["cpu-migrations", "migrations"]),
        (SoftwareKind::PageFaults, &["page-faults", "faults"]),
        (SoftwareKind::MinorFaults, &["minor-faults"]),
        (SoftwareKind::MajorFaults, &["major-faults"]),
        (SoftwareKind::AlignmentFaults, &["alignment-faults"]),
        (SoftwareKind::EmulationFaults, &["emulation-faults"]),
        (SoftwareKind::CgroupSwitches, &["cgroup-switches"]),
    ];

    /// The name perf prints.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(k, _)| *k == self).map_or("", |(_, names)| names[0])
    }

    /// The event called `name`, whatever its modifiers (`task-clock:u`).
    pub fn from_name(name: &str) -> Option<Self> {
        let bare = name.trim().split(':').next().unwrap_or_default();
        Self::NAMES
            .iter()
            .find(|(_, names)| names.iter().any(|n| n.eq_ignore_ascii_case(bare)))
            .map(|(kind, _)| *kind)
    }
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
#[derive(Debug, Clone, Default, PartialEq)]
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
    pub software: Vec<(SoftwareKind, Row)>,
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

/// The part of the machine or the workload that a block was counted on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Kind of part.
    pub kind: ScopeKind,
    /// Its name in reports: `cpu3`, `S0-D0-C1`, `bash-4711`.
    pub name: String,
    /// The control group (`--for-each-cgroup`).
    pub cgroup: Option<String>,
}

/// Kind of a [`Scope`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScopeKind {
    /// All of it: only the control group is given.
    #[default]
    Whole,
    /// A logical CPU (`-A`).
    Cpu,
    /// A physical core (`--per-core`).
    Core,
    /// A die, cluster or cache (`--per-die`, `--per-cluster`, `--per-cache`).
    Die,
    /// A socket (`--per-socket`).
    Socket,
    /// A NUMA node (`--per-node`).
    Node,
    /// A thread (`--per-thread`).
    Thread,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match (&self.cgroup, self.name.is_empty()) {
            (Some(cgroup), true) => write!(f, "cgroup {cgroup}"),
            (Some(cgroup), false) => write!(f, " cgroup {cgroup}"),
            (None, _) => Ok(()),
        }
    }
}

/// Parses `CPU3`, `S0`, `S0-D0-C1`, `S0-D0-L3-ID0`, `N1`, `comm-4711`; `counts_cpus` if a number of
/// CPUs follows, so that it is no CPU or thread. `None` if it is no scope.
pub fn scope_of(name: &str, counts_cpus: bool) -> Option<Scope> {
    let made = |kind, name: &str| Some(Scope { kind, name: name.to_owned(), cgroup: None });
    if let Some(cpu) = name.strip_prefix("CPU")
        && is_whole(cpu)
    {
        return made(ScopeKind::Cpu, &format!("cpu{cpu}"));
    }
    if is_whole(name) && !counts_cpus {
        return made(ScopeKind::Cpu, &format!("cpu{name}"));
    }
    let parts: Vec<&str> = name.split('-').collect();
    let numbered = |part: &str, prefix: &str| part.strip_prefix(prefix).is_some_and(is_whole);
    match parts.as_slice() {
        [s] if numbered(s, "S") => made(ScopeKind::Socket, name),
        [n] if numbered(n, "N") => made(ScopeKind::Node, name),
        [s, c] if numbered(s, "S") && numbered(c, "C") => made(ScopeKind::Core, name),
        [s, d, c] if numbered(s, "S") && numbered(d, "D") && numbered(c, "C") => {
            made(ScopeKind::Core, name)
        }
        [s, d, ..] if numbered(s, "S") && (numbered(d, "D") || numbered(d, "L")) => {
            made(ScopeKind::Die, name)
        }
        [_, .., pid] if !counts_cpus && is_whole(pid) => made(ScopeKind::Thread, name),
        _ => None,
    }
}

pub(super) fn is_whole(field: &str) -> bool {
    !field.is_empty() && field.bytes().all(|b| b.is_ascii_digit())
}

/// Why a line of a file of counts is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unparsed {
    /// A constant that is not known.
    Constant,
    /// A value that is no number.
    NoNumber,
    /// A value that is not finite.
    Infinite,
    /// A value below 0.
    Negative,
    /// A value above that of any counter.
    Large,
    /// A line that is cut off.
    CutOff,
    /// `perf stat` writes no such line.
    Foreign,
    /// No event follows the count.
    NothingCounted,
    /// A number is where the unit should be.
    NoUnit,
    /// A run time that is none.
    RunTime,
    /// A running share that is no percentage.
    Percentage,
    /// The slash that ends a PMU's event is missing.
    OpenEvent,
    /// A line that is no JSON; the rest of the file cannot be read either.
    NoJson,
    /// A JSON value that is no object.
    NoObject,
    /// No whole JSON object.
    PartOfObject,
    /// It has neither a count nor a metric.
    NoCount,
    /// It names no event.
    NoEvent,
    /// An interval that is no time.
    Interval,
    /// It has too few columns.
    FewColumns,
    /// It has too many columns.
    ManyColumns,
    /// It has other columns than the header says.
    OtherColumns,
    /// It has no value.
    NoValue,
    /// A group that is no number.
    Group,
    /// A running share that is neither a share nor a percentage.
    Share,
    /// A time stamp that is no number.
    NoTime,
    /// A time stamp that is no time.
    Time,
}

impl fmt::Display for Unparsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Constant => "not a constant this version knows",
            Self::NoNumber => "the value is not a number",
            Self::Infinite => "the value is not a finite number",
            Self::Negative => "the value is negative",
            Self::Large => "the value is larger than any counter",
            Self::CutOff => "the line is cut off",
            Self::Foreign => "not a line of perf stat",
            Self::NothingCounted => "there is no event after the count",
            Self::NoUnit => "a number in place of the unit (decimal commas? use `-x;`)",
            Self::RunTime => "the run time is not a number of nanoseconds",
            Self::Percentage => "the running share is not a percentage",
            Self::OpenEvent => "the event has no closing `/`",
            Self::NoJson => "not JSON: nothing of the file from here on is read",
            Self::NoObject => "a value that is no object is not read",
            Self::PartOfObject => "not a whole JSON object",
            Self::NoCount => "there is neither a count nor a metric",
            Self::NoEvent => "there is no event",
            Self::Interval => "the interval is not a time in seconds",
            Self::FewColumns => "columns are missing",
            Self::ManyColumns => "there are more columns than expected",
            Self::OtherColumns => "the number of columns differs from the header's",
            Self::NoValue => "there is no value",
            Self::Group => "the group is not a number",
            Self::Share => "the running share is neither 0 to 1 nor a percentage",
            Self::NoTime => "the time stamp is not a number",
            Self::Time => "the time stamp is not a time in seconds",
        })
    }
}
