//! The document of a measured block: `tdtool.block/2`. Text, JSON and CSV are views of it.
//!
//! | file | concern |
//! |---|---|
//! | `settings` | settings, machine and assumptions of the measurement |
//! | `explanation` | the bound of the block: classes and names, the top-down tree |
//!
//! This file has the block and its time: headline, forms, samples, changes, misses.

mod explanation;
mod settings;

pub use explanation::{
    Bound, Cause, Class, Explanation, Found, Hierarchy, Node, Verdict, bound_names,
};
pub use settings::{Assumed, Assumption, MeasuredOn, Outcome, Settings};

use crate::values::Values;
use isa::code::Inst;
use serde::{Deserialize, Serialize};

/// The schema's name and version.
pub const SCHEMA: &str = "tdtool.block/2";

/// The headline of straight copies.
pub const UNROLLED: &str = "unrolled";
/// The headline of a loop.
pub const LOOP: &str = "loop";

/// Outcome of a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Measured, and the timing reproduced.
    Ok,
    /// Ran, but without a single reproducible number.
    Unstable,
    /// Could not be run.
    #[default]
    Failed,
    /// Must not be run.
    Rejected,
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

/// The document of one block.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The block.
    pub block: Code,
    /// Measurement settings; none for input that is not code.
    pub settings: Option<Settings>,
    /// The processor and its table.
    pub machine: Option<MeasuredOn>,
    /// Outcome.
    pub status: Status,
    /// The reason, unless `ok`.
    pub reason: Option<String>,
    /// Whether that is contention on the core.
    #[serde(skip)]
    pub disturbed: bool,
    /// Whether it failed because it was cancelled.
    #[serde(skip)]
    pub interrupted: bool,
    /// Where, if it failed.
    #[serde(rename = "where")]
    pub location: Option<FaultLocation>,
    /// The headline, if there is one.
    pub throughput: Option<Throughput>,
    /// Instructions per cycle.
    pub ipc: Option<f64>,
    /// Both forms, if it ran.
    pub forms: Option<Forms>,
    /// The form of the headline: `loop` where the block was run as the program's loop.
    pub headline: &'static str,
    /// Findings of the run as a loop, where that is the headline.
    #[serde(skip)]
    pub closed: Option<Closed>,
    /// Executions of the program's loop that were measured, of which the headline is the mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executions: Vec<Execution>,
    /// Notes on the origin of the block and its values.
    pub notes: Vec<String>,
    /// The assumptions.
    pub assumptions: Vec<Assumption>,
    /// Stores and loads that alias only because of the initial values, one sentence each.
    pub alias_pairs: Vec<String>,
    /// Bounds on the throughput.
    pub bounds: Vec<Bound>,
    /// The top-down tree of the block.
    pub hierarchy: Hierarchy,
    /// The what-if measurements, if requested.
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
            disturbed: false,
            interrupted: false,
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

    /// Marks its number as rejected, with the reason, and whether that is contention on the core.
    pub(super) fn distrust(&mut self, status: Status, reason: String, disturbed: bool) {
        (self.status, self.reason, self.disturbed) = (status, Some(reason), disturbed);
    }

    /// Names of the violated assumptions, except `alignment`: an unaligned access within a cache line does
    /// not affect the result.
    pub fn violated(&self) -> Vec<Assumed> {
        let matters =
            |i: &&Assumption| i.outcome == Outcome::Violated && i.name != Assumed::Alignment;
        self.assumptions.iter().filter(matters).map(|i| i.name).collect()
    }

    /// Whether anything requested is missing because of contention.
    pub fn was_disturbed(&self) -> bool {
        let failed = matches!(self.status, Status::Unstable | Status::Failed);
        let mut missing = self.what_if.iter().filter(|w| w.cycles.is_none());
        (failed && self.disturbed) || missing.any(|w| w.disturbed)
    }

    /// Whether it is unstable because of contention most of the time.
    pub fn is_contended(&self) -> bool {
        self.status == Status::Unstable && 4 * self.samples.contended > self.samples.accepted
    }

    /// The reference of the changes in `what_if`: the unchanged block, measured in the same form.
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

/// One instruction.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Line {
    /// Offset in the block, `0x…`.
    pub offset: String,
    /// Address in the program's file (p_vaddr), `0x…`, where that is known; jumps in `text` then lead to such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its bytes, hexadecimal.
    pub bytes: String,
    /// Intel syntax.
    pub text: String,
}

impl Line {
    /// An instruction of a block that starts at `start` in its program, if that is known.
    pub(crate) fn of(inst: &Inst, start: Option<u64>) -> Self {
        Self {
            offset: format!("{:#x}", inst.offset),
            address: start.map(|start| format!("{:#x}", start.wrapping_add(inst.offset as u64))),
            bytes: inst.bytes.iter().map(|b| format!("{b:02x}")).collect(),
            text: start.map_or_else(|| inst.text.clone(), |start| inst.text_at(start)),
        }
    }
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
    /// As text: `instruction 3, copy 0, address 0x10`; empty if nothing is known.
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
    /// Why it was not measured, or why its cycles were rejected.
    pub reason: Option<String>,
}

impl FormResult {
    /// Its cycles, unless they were rejected.
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

/// The block measured with one thing changed.
#[derive(Debug, Clone, Default, Serialize)]
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
    /// Whether that is contention on the core.
    #[serde(skip)]
    pub disturbed: bool,
    /// Whether removing the instruction cuts a loop-carried dependency, which it carries from one register to
    /// another, or through memory: the program is then a different one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cuts: bool,
}

/// Events counted while the block ran, per iteration; only a PMU has them.
#[derive(Debug, Clone, Serialize)]
pub struct Miss {
    /// The event.
    pub name: String,
    /// Count per iteration.
    pub per_iteration: f64,
    /// The evidence.
    pub how: String,
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

/// Findings of a run as a loop.
#[derive(Debug, Clone)]
pub struct Closed {
    /// Whether loads of an iteration read what an earlier one stored; `None` if it was not traced.
    pub(crate) forwards: Option<bool>,
    /// Whether the loop is this block and no other.
    pub(crate) is_one_block: bool,
}
