//! The document of a measured block: `tdtool.block/1`. Text, JSON and CSV are views of it.

use super::settings::{MeasuredOn, Settings};
use crate::initial::values::Values;
use serde::Serialize;

/// The schema's name and version.
pub const SCHEMA: &str = "tdtool.block/1";

/// Outcome of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Measured, and the timing reproduced.
    Ok,
    /// Ran, but no single number can be trusted.
    Unstable,
    /// Could not be run.
    Failed,
    /// Must not be run.
    Rejected,
}

impl Hierarchy {
    /// A tree without measurements: level 1 of this processor's tree, each node with `reason`.
    pub fn not_measured(reason: &str, level_1: &[(String, String)]) -> Self {
        let node = |(id, label): &(String, String)| Node {
            id: id.clone(),
            label: label.clone(),
            reason: Some(reason.to_owned()),
            ..Node::default()
        };
        let nodes = level_1.iter().map(node).collect();
        Self { verdict: format!("not measured: {reason}"), bound: None, nodes }
    }

    /// Whether any node was measured.
    pub fn is_measured(&self) -> bool {
        self.nodes.iter().any(|node| node.share.is_some())
    }
}

impl Status {
    /// As printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unstable => "unstable",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
        }
    }
}

/// Whether an assumption of the measurement holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It held.
    Held,
    /// It did not.
    Violated,
    /// Not checkable here.
    Unchecked,
}

/// One assumption.
#[derive(Debug, Clone, Serialize)]
pub struct Assumption {
    /// Its name; docs/method/blocks.md lists them.
    pub name: &'static str,
    /// Whether it held.
    #[serde(rename = "verdict")]
    pub outcome: Outcome,
    /// Evidence.
    pub how: String,
}

/// One instruction.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Offset in the block, `0x…`.
    pub offset: String,
    /// Its bytes, hexadecimal.
    pub bytes: String,
    /// Intel syntax.
    pub text: String,
}

/// The block itself.
#[derive(Debug, Clone, Serialize)]
pub struct Code {
    /// Its name, where the input gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All bytes, hexadecimal.
    pub hex: String,
    /// All instructions.
    pub instructions: Vec<Line>,
}

/// Where a block failed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FaultLocation {
    /// Copy, from 0.
    pub copy: Option<usize>,
    /// Instruction, from 0.
    pub instruction: Option<usize>,
    /// The address touched, `0x…`.
    pub address: Option<String>,
}

impl FaultLocation {
    /// In words: `instruction 3, copy 0, address 0x10`; empty where nothing is known.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.instruction.map(|i| format!("instruction {i}")));
        parts.extend(self.copy.map(|c| format!("copy {c}")));
        parts.extend(self.address.as_ref().map(|a| format!("address {a}")));
        parts.join(", ")
    }
}

/// A group of batches that agree.
#[derive(Debug, Clone, Serialize)]
pub struct Mode {
    /// Cycles per iteration.
    pub cycles: f64,
    /// Share of the batches.
    pub share: f64,
}

/// The headline.
#[derive(Debug, Clone, Serialize)]
pub struct Throughput {
    /// Core cycles per iteration.
    pub cycles: f64,
    /// Lowest pass.
    pub low: f64,
    /// Highest pass.
    pub high: f64,
    /// Groups of batches.
    pub modes: Vec<Mode>,
    /// Source of the cycles.
    pub clock: &'static str,
}

/// One execution of a loop with the program's values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Execution {
    /// Its iterations.
    pub iterations: u64,
    /// Core cycles of an iteration.
    pub cycles: f64,
    /// The lowest of the samples' range.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

/// One form of running the block.
#[derive(Debug, Clone, Serialize)]
pub struct FormResult {
    /// Core cycles per iteration; absent where it was not measured.
    pub cycles: Option<f64>,
    /// Lowest pass.
    pub low: Option<f64>,
    /// Highest pass.
    pub high: Option<f64>,
    /// Copies in the body.
    pub copies: usize,
    /// Why it was not measured, or why its cycles are not to be trusted.
    pub reason: Option<String>,
}

impl FormResult {
    /// Its cycles, if they are to be trusted.
    pub fn trusted(&self) -> Option<f64> {
        self.cycles.filter(|_| self.reason.is_none())
    }
}

/// Both forms.
#[derive(Debug, Clone, Serialize)]
pub struct Forms {
    /// Straight copies between fences.
    pub unrolled: FormResult,
    /// A loop.
    #[serde(rename = "loop")]
    pub looped: FormResult,
}

/// Accepted and rejected samples.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Samples {
    /// Accepted rounds.
    #[serde(rename = "kept")]
    pub accepted: usize,
    /// Rounds rejected because of contention.
    pub contended: usize,
    /// Rounds rejected because the clock frequency differed from that of the others.
    pub clock_changed: usize,
    /// Why whole passes were void.
    pub void: Vec<String>,
}

/// Cycles of an iteration and their range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline {
    /// Core cycles.
    pub cycles: f64,
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
}

impl Measurement {
    /// What changes of `what_if` compare with: the block unchanged in the form that they are measured in.
    pub fn baseline(&self) -> Option<Baseline> {
        if self.headline == LOOP {
            let form = &self.forms.as_ref()?.unrolled;
            let (cycles, low, high) = (form.trusted()?, form.low?, form.high?);
            return Some(Baseline { cycles, low, high });
        }
        let own = self.throughput.as_ref()?;
        Some(Baseline { cycles: own.cycles, low: own.low, high: own.high })
    }
}

/// The headline of straight copies.
pub const UNROLLED: &str = "unrolled";
/// The same of a loop.
pub const LOOP: &str = "loop";

/// What a run as a loop showed.
#[derive(Debug, Clone)]
pub struct Closed {
    /// Whether loads of an iteration read what an earlier one stored; `None` if it was not traced.
    pub(super) forwards: Option<bool>,
    /// Whether the loop is this block and no other.
    pub(super) is_one_block: bool,
}

/// Start of the reason where samples were dropped because of contention.
pub(super) const SHARED: &str = "contention on the core";
/// The reason where the worker was not scheduled.
pub(super) const TAKEN: &str = "another process occupied the core";

/// The document of one block.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The block.
    pub block: Code,
    /// Measurement settings; none for input that is not code.
    pub settings: Option<Settings>,
    /// What it was measured on.
    pub machine: Option<MeasuredOn>,
    /// Outcome.
    pub status: Status,
    /// The reason, unless `ok`.
    pub reason: Option<String>,
    /// Where, if it failed.
    #[serde(rename = "where")]
    pub location: Option<FaultLocation>,
    /// The headline, if there is one.
    pub throughput: Option<Throughput>,
    /// Instructions per cycle.
    pub ipc: Option<f64>,
    /// Both forms, if it ran.
    pub forms: Option<Forms>,
    /// The form that the headline is of: `loop` where the block was run as the program's loop.
    pub headline: &'static str,
    /// What the run as a loop showed, where that is the headline.
    #[serde(skip)]
    pub closed: Option<Closed>,
    /// Executions of the program's loop that were measured, of which the headline is the mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executions: Vec<Execution>,
    /// Notes on the origin of the block and its values.
    pub notes: Vec<String>,
    /// The assumptions.
    #[serde(rename = "invariants")]
    pub assumptions: Vec<Assumption>,
    /// Stores and loads that alias only because of the initial values, one sentence each.
    #[serde(rename = "meetings")]
    pub alias_pairs: Vec<String>,
    /// Bounds on the throughput.
    pub bounds: Vec<Bound>,
    /// The top-down tree of the block.
    pub hierarchy: Hierarchy,
    /// What-if measurements, if requested.
    pub what_if: Vec<WhatIf>,
    /// Counted misses; none without a PMU.
    pub misses: Vec<Miss>,
    /// Accepted and rejected samples.
    pub samples: Samples,
    /// Initial values it ran with.
    pub values: Option<Values>,
    /// Pages mapped for it, `0x…`.
    pub pages: Vec<String>,
    /// Layers of the sandbox that are not available here.
    pub sandbox: Vec<String>,
}

impl Measurement {
    /// An empty document for `block`.
    pub(super) fn blank(block: Code, hierarchy: Hierarchy) -> Self {
        Self {
            schema: SCHEMA,
            block,
            settings: None,
            machine: None,
            status: Status::Failed,
            reason: None,
            location: None,
            throughput: None,
            ipc: None,
            forms: None,
            headline: UNROLLED,
            closed: None,
            executions: Vec::new(),
            notes: Vec::new(),
            assumptions: Vec::new(),
            alias_pairs: Vec::new(),
            bounds: Vec::new(),
            hierarchy,
            what_if: Vec::new(),
            misses: Vec::new(),
            samples: Samples::default(),
            values: None,
            pages: Vec::new(),
            sandbox: Vec::new(),
        }
    }

    /// Names of the violated assumptions, except `alignment`: an unaligned access within a cache line does
    /// not affect the result.
    pub fn violated(&self) -> Vec<&'static str> {
        let matters = |i: &&Assumption| i.outcome == Outcome::Violated && i.name != "alignment";
        self.assumptions.iter().filter(matters).map(|i| i.name).collect()
    }

    /// Whether anything requested is missing because of contention.
    pub fn was_disturbed(&self) -> bool {
        let failed = matches!(self.status, Status::Unstable | Status::Failed);
        let own = self.reason.iter().filter(|_| failed);
        let missing = self.what_if.iter().filter(|w| w.cycles.is_none());
        own.chain(missing.filter_map(|w| w.reason.as_ref()))
            .any(|why| why.contains(SHARED) || why.contains(TAKEN))
    }

    /// Whether it is unstable because of contention most of the time.
    pub fn is_contended(&self) -> bool {
        self.status == Status::Unstable && 4 * self.samples.contended > self.samples.accepted
    }
}

/// A bound on the throughput.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Bound {
    /// Its name.
    pub name: &'static str,
    /// Core cycles per iteration.
    pub cycles: f64,
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
    /// Evidence.
    pub how: String,
    /// Whether the block is measured to be clearly faster: the bound is wrong and explains nothing.
    pub refuted: bool,
    /// The instructions of the loop-carried dependency, if it is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Whether any latency in it is assumed, because no table or calibration has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

impl Bound {
    /// The bound of iterations a `share` of which needs this one, and the others nothing for certain.
    pub(super) fn times(self, share: f64) -> Self {
        let Self { cycles, low, high, .. } = self;
        Self { cycles: share * cycles, low: share * low, high: share * high, ..self }
    }

    /// That it exceeds the measurement, in words.
    pub fn needs_more(&self, measured: f64) -> String {
        let Self { name, cycles, low, high, .. } = self;
        format!(
            "{name} needs {cycles:.3} cycles ({low:.3} to {high:.3}), more than the {measured:.3} \
             measured"
        )
    }
}

/// The top-down tree of the block.
#[derive(Debug, Clone, Serialize)]
pub struct Hierarchy {
    /// In words: what bounds the block, or why that was not measured.
    pub verdict: String,
    /// What bounds the block: `front-end`, `issue-width`, `ports`, `dependency`, `store-forwarding`,
    /// `undecided` or `unexplained`; absent where its variants were not measured.
    pub bound: Option<&'static str>,
    /// Nodes, parents before their children; without a PMU each with the reason why it was not
    /// measured.
    pub nodes: Vec<Node>,
}

/// One node of the tree.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Node {
    /// Its id in the event tables, `Frontend_Bound`.
    pub id: String,
    /// Its display name.
    pub label: String,
    /// The id of its parent.
    pub parent: Option<String>,
    /// Share of the pipeline's slots, 0 to 1; absent where it was not measured.
    pub share: Option<f64>,
    /// Lowest of the runs.
    pub low: Option<f64>,
    /// Highest of the runs.
    pub high: Option<f64>,
    /// Why it was not measured.
    pub reason: Option<String>,
    /// The block's bound for this node in core cycles per iteration; bounds of nodes overlap.
    pub bound: Option<f64>,
    /// Whether it explains the block's time.
    pub is_verdict: bool,
}

/// The block measured with one thing changed.
#[derive(Debug, Clone, Serialize)]
pub struct WhatIf {
    /// The change: a dependency broken, an instruction removed.
    pub change: String,
    /// Core cycles per iteration with the change.
    pub cycles: Option<f64>,
    /// Lowest.
    pub low: Option<f64>,
    /// Highest.
    pub high: Option<f64>,
    /// Why it was not measured, or a caveat.
    pub reason: Option<String>,
}

/// Events counted while the block ran, per iteration; only a PMU has them.
#[derive(Debug, Clone, Serialize)]
pub struct Miss {
    /// The event.
    pub name: String,
    /// Count per iteration.
    pub per_iteration: f64,
    /// How that is known.
    pub how: String,
}
