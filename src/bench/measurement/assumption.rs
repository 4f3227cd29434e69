//! Assumptions of a measurement.

use serde::Serialize;

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
