//! Facts of a core that were measured, beside what is stated of it.

use serde::Serialize;
use tma::measured::{Fact, Kind};

/// How a measured fact and a stated one go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Nothing is stated.
    OnlyMeasured,
    /// Not measured.
    Open,
    /// The stated value was measured, too (`doctor --toml`): agreement says nothing.
    SameOrigin,
    /// Within the error.
    Agrees,
    /// Less than stated, of a capacity: what filled it may have needed something else first.
    Less,
    /// The measured one is taken.
    Measured,
    /// The values differ, and nothing uses the measured one: other guests or a hypervisor may take part of a cache.
    Differs,
}

/// A fact in a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Kind of the fact.
    pub kind: Kind,
    /// Its name, and the unit of its numbers.
    pub name: &'static str,
    /// See `name`.
    pub unit: &'static str,
    /// Measured value, or why there is none.
    #[serde(flatten)]
    pub fact: Fact,
    /// The stated value and its source.
    pub stated: Option<(f64, String)>,
    /// Agreement of both.
    pub agreement: Agreement,
    /// Users of the measured value in place of the stated one.
    pub wins_for: Vec<&'static str>,
}
