//! The top-down report, `tdtool.report/1`. Later versions only add keys.

use crate::documents::command::{Exit, recorded};
use crate::documents::estimate::Estimate;
use crate::documents::flame::FlameGraph;
use crate::documents::report_code::{
    AnnotatedFunction, BlockRow, Callees, Callers, EventRow, FunctionRow, LoopRow, Sampled,
};
use crate::documents::report_parts::{PerFunction, Phase, Timeline};
use crate::documents::wall_time::TimeRow;
use pmu::Target;
use profile::hot::half_width;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::{BTreeMap, HashSet};

/// Name and version of this document's shape.
pub const SCHEMA: &str = "tdtool.report/1";

/// Where the numbers come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Counted live by the core PMU.
    Pmu,
    /// Counted by another tool and imported.
    Imported,
    /// From a session recorded by tdtool.
    Session,
    /// No usable core PMU: software counts only.
    #[default]
    NoPmu,
}

impl Source {
    /// As shown.
    pub fn label(self) -> &'static str {
        match self {
            Source::Pmu => "core PMU",
            Source::Imported => "imported counts",
            Source::Session => "recorded session",
            Source::NoPmu => "no core PMU",
        }
    }
}

/// The whole report.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of tdtool that wrote it.
    pub tool: String,
    /// Table, or tables joined by `+` on hybrids; empty if the processor has none.
    pub uarch: String,
    /// Common name of the processors.
    pub title: String,
    /// Where the numbers come from.
    pub source: Source,
    /// Files, for imports and sessions; what was measured, for live reports.
    pub subject: Vec<String>,
    /// The command, where there was one: it was measured, or only timed the measurement of another target.
    pub command: Option<Vec<String>>,
    /// Measured command or file, where known; older documents have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Wall time in seconds, where it is known.
    pub duration: Option<f64>,
    /// Level of the tree that was asked for or chosen.
    pub level: u32,
    /// Nodes of the tree, parents first; several times with several cores, scopes, intervals.
    pub nodes: Vec<NodeRow>,
    /// The bottlenecks view, if asked for.
    pub bottlenecks: Vec<InfoRow>,
    /// Metrics beside the tree.
    pub info: Vec<InfoRow>,
    /// Runs of the command whose spread the errors are; 1: the errors say how well one run is
    /// known.
    #[serde(default = "one")]
    pub repeats: u32,
    /// Begin and end in seconds, where this document is about one interval.
    #[serde(default)]
    pub interval: Option<(f64, f64)>,
    /// Software counts; null if unavailable.
    pub software: BTreeMap<String, Option<f64>>,
    /// Half width of their 95 % interval over repeated runs, or of one reading; those without are
    /// exact.
    #[serde(default)]
    pub software_error: BTreeMap<String, f64>,
    /// Why a software count is null.
    #[serde(default)]
    pub software_missing: BTreeMap<String, String>,
    /// What the wall time went to, of a measured command or process with samples; shares sum to 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wall_time: Vec<TimeRow>,
    /// The samples that `functions` and `blocks` come from; absent if none were taken.
    #[serde(default)]
    pub sampled: Option<Sampled>,
    /// The sampled events, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRow>,
    /// Hot functions, hottest first.
    #[serde(default)]
    pub functions: Vec<FunctionRow>,
    /// Hot loops, hottest first; older documents have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopRow>,
    /// Hot blocks, hottest first.
    #[serde(default)]
    pub blocks: Vec<BlockRow>,
    /// Callers of a function, if asked for.
    #[serde(default)]
    pub callers: Option<Callers>,
    /// Callees of a function, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callees: Option<Callees>,
    /// Level 1 of each function, where samples read its counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_function: Option<PerFunction>,
    /// The source of a function, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotated: Option<AnnotatedFunction>,
    /// The source of the hottest functions, if a page is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<AnnotatedFunction>,
    /// The call stacks, if a page is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flame_graph: Option<FlameGraph>,
    /// Samples with their times, if a profile for the Firefox Profiler or the functions of phases are asked for.
    #[serde(skip)]
    pub timeline: Option<Timeline>,
    /// The phases of a run with intervals; none of fewer than two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Estimated top-down, if asked for; never of counted nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Verdict and next steps; absent of intervals, and in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<Conclusion>,
    /// Conclusions, with the next step.
    pub findings: Vec<Finding>,
    /// Limits of the numbers (user mode only, weak groups, …).
    pub notes: Vec<String>,
    /// Input that was not understood.
    pub unread: Vec<Unread>,
}

/// A line of input that was not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// File name as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Its text, shortened.
    pub text: String,
    /// Defect.
    pub why: String,
}

/// Which part of the measurement a row belongs to; all null when there is one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Kind of core on hybrids: the table's name.
    pub core: Option<SmolStr>,
    /// `cpu3`, `core0`, `socket1`, `tid 4711`, a cgroup.
    pub scope: Option<SmolStr>,
    /// Begin and end in seconds.
    pub interval: Option<(f64, f64)>,
}

impl Place {
    /// Name in a heading; empty for all of the measurement.
    pub fn title(&self) -> String {
        let interval = self.interval.map(|(a, b)| format!("{a:.3} s to {b:.3} s"));
        let core = self.core.as_ref().map(|c| format!("core kind {c}"));
        let parts = [core, self.scope.as_ref().map(ToString::to_string), interval];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Hashable key, the same for equal places.
    pub fn key(&self) -> (Option<&str>, Option<&str>, Option<(u64, u64)>) {
        let interval = self.interval.map(|(a, b)| (a.to_bits(), b.to_bits()));
        (self.core.as_deref(), self.scope.as_deref(), interval)
    }
}

/// A count that a node uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CountRow {
    /// Event.
    pub event: String,
    /// Scaled count, or null.
    pub value: Option<f64>,
    /// Share of the time it ran.
    pub running: Option<f64>,
    /// Why there is no value.
    pub missing: Option<String>,
}

/// A node of the tree. An id is unique only together with its place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeRow {
    /// The vendor's name.
    pub id: SmolStr,
    /// Shown name.
    pub label: SmolStr,
    /// Parent's id.
    pub parent: Option<SmolStr>,
    /// Level from 1.
    pub level: u32,
    /// The share, as a ratio.
    pub value: Option<f64>,
    /// Half width of the 95 % interval, as a ratio.
    pub error: Option<f64>,
    /// Why there is no error.
    pub no_error: Option<SmolStr>,
    /// Smallest running share of its counters (0..=1).
    pub running: Option<f64>,
    /// The vendor's threshold holds.
    pub over: Option<bool>,
    /// Over, as are all its ancestors, and believable.
    pub flagged: bool,
    /// The bottleneck.
    pub bottleneck: bool,
    /// Outside −5…105 %.
    pub mismeasured: bool,
    /// Its terms come from groups that ran at different times.
    pub split: bool,
    /// Why there is no value.
    pub missing: Option<String>,
    /// Whether that is because there is no core PMU.
    #[serde(skip)]
    pub no_pmu: bool,
    /// Why it is an estimate.
    pub estimate: Option<SmolStr>,
    /// Base of the share.
    pub domain: Option<SmolStr>,
    /// Nodes that the vendor links to this one when both stand out.
    pub related: Vec<SmolStr>,
    /// Events to sample to find where it happens.
    pub locate: Vec<String>,
    /// The counts it uses.
    pub counts: Vec<CountRow>,
    /// Part of the measurement.
    #[serde(flatten)]
    pub place: Place,
}

/// A metric beside the tree, or a row of the bottlenecks view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InfoRow {
    /// The vendor's name.
    pub id: SmolStr,
    /// Shown name.
    pub label: SmolStr,
    /// Value in `unit`.
    pub value: Option<f64>,
    /// Its unit; `ratio` for shares (0.15 is 15 %), empty for plain numbers.
    pub unit: SmolStr,
    /// Half width of the 95 % interval.
    pub error: Option<f64>,
    /// Smallest running share of its counters.
    pub running: Option<f64>,
    /// The vendor's threshold holds.
    pub over: Option<bool>,
    /// Why there is no value.
    pub missing: Option<String>,
    /// Part of the measurement.
    #[serde(flatten)]
    pub place: Place,
}

/// Kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The bottleneck, with its meaning.
    Bottleneck,
    /// Two siblings too close to call.
    Undecided,
    /// Nothing is over its threshold.
    Nothing,
    /// A value that cannot be right.
    Mismeasured,
    /// Why there is no tree.
    NotMeasured,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Kind.
    pub kind: FindingKind,
    /// The node it is about.
    pub node: Option<SmolStr>,
    /// One sentence.
    pub text: String,
    /// Meaning of the node.
    pub meaning: Option<String>,
    /// Usual causes.
    pub causes: Option<String>,
    /// Next step.
    pub next: Option<String>,
    /// Part of the measurement.
    #[serde(flatten)]
    pub place: Place,
}

fn one() -> u32 {
    1
}

/// Page faults a second of processor time from which they are worth a word: the kernel takes about a microsecond for each.
const FAULTS: f64 = 10_000.0;

impl Report {
    /// Whether a node of the tree was counted.
    pub fn is_counted(&self) -> bool {
        self.nodes.iter().any(|node| node.value.is_some())
    }

    /// The meaning of a finding's node, after its label.
    pub fn meaning(&self, of: &Finding) -> Option<String> {
        let meaning = of.meaning.as_ref()?;
        let node = self.nodes.iter().find(|node| Some(&node.id) == of.node.as_ref());
        Some(node.map_or(meaning.clone(), |node| format!("{}: {meaning}", node.label)))
    }

    /// The command, if it is what was measured, as far as that is known.
    pub fn measured_command(&self) -> Option<&[String]> {
        let is_other = self.target.as_ref().is_some_and(|target| *target != Target::Command);
        self.command.as_deref().filter(|words| !is_other && !words.is_empty())
    }

    /// The command that was measured; empty where that cannot be told, or it only timed the measurement of something
    /// else.
    pub fn measured_program(&self) -> &[String] {
        let command = self.measured_command().unwrap_or_default();
        if self.target.is_some() { command } else { recorded(command) }
    }

    /// The command, or what else was measured.
    pub fn name(&self) -> String {
        self.measured_command().unwrap_or(&self.subject).join(" ")
    }

    /// Page faults a second of processor time, if they are many.
    pub fn many_faults(&self) -> Option<f64> {
        let value = |name: &str| self.software.get(name).copied().flatten();
        let busy = value("task_clock_ms").filter(|ms| *ms > 0.0)? / 1e3;
        Some(value("page_faults")? / busy).filter(|rate| *rate >= FAULTS)
    }

    /// Half width of the 95 % interval of a share of the samples: sampling error, if samples are independent.
    pub fn sampling_error(&self, share: f64) -> Option<f64> {
        let of = self.sampled.as_ref().filter(|of| of.samples > 0)?;
        Some(half_width(share, of.effective.unwrap_or(of.samples as f64)))
    }

    /// An empty report.
    pub fn new(source: Source) -> Self {
        Self {
            schema: SCHEMA.into(),
            tool: env!("CARGO_PKG_VERSION").into(),
            source,
            repeats: 1,
            ..Self::default()
        }
    }

    /// The places of its rows, in order of appearance.
    pub fn places(&self) -> Vec<&Place> {
        let mut seen = HashSet::new();
        let rows = self.nodes.iter().map(|n| &n.place).chain(self.info.iter().map(|i| &i.place));
        rows.filter(|place| seen.insert(place.key())).collect()
    }
}

/// The verdict of a report, and what to do next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conclusion {
    /// One or two sentences, with the number; empty where nothing was measured.
    pub verdict: String,
    /// Commands that show more, the most useful first.
    pub next: Vec<Step>,
}

/// A command that shows more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Purpose of the command.
    pub why: String,
    /// The command, as a shell takes it.
    pub command: String,
}
