//! The document of a measured block: `tdtool.block/2`. Text, JSON and CSV are views of it.
//!
//! | file | concern |
//! |---|---|
//! | `code` | the block, and a place in it |
//! | `timing` | the block's time: headline, forms, samples |
//! | `assumption` | assumptions of the measurement |
//! | `explanation`, `class`, `cause`, `bound_names` | the bound of the block |

mod assumption;
pub mod bound_names;
mod cause;
mod class;
mod code;
mod explanation;
mod timing;

pub use assumption::{Assumed, Assumption, Outcome};
pub use cause::Cause;
pub use class::Class;
pub use code::{Code, FaultLocation, Line};
pub use explanation::{Bound, Hierarchy, Miss, Node, WhatIf};
pub use timing::{
    Baseline, Closed, Execution, FormResult, Forms, LOOP, Mode, Samples, Throughput, UNROLLED,
};

use crate::settings::{MeasuredOn, Settings};
use crate::values::Values;
use serde::{Deserialize, Serialize};

/// The schema's name and version.
pub const SCHEMA: &str = "tdtool.block/2";

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
}

impl Measurement {
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
