//! Accessed data: variables, mappings, members of structures.

use super::levels::LevelsRow;
use serde::{Deserialize, Serialize};
use std::fmt;
use tma::Address;

/// Kind of the accessed data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VariableKind {
    /// A static variable.
    Variable,
    /// A section without a variable there.
    Section,
    /// The heap, and other mappings without a file.
    Heap,
    /// A stack.
    Stack,
    /// A mapping of a file.
    Mapping,
    /// Not known.
    #[default]
    Unknown,
}

/// Word in documents.
impl fmt::Display for VariableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A variable or mapping.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariableRow {
    /// Event.
    pub event: usize,
    /// Its module; empty for what is in none.
    pub module: String,
    /// Its name, that of its section or mapping, `heap`, `stack`, or `unknown`.
    pub name: String,
    /// Kind.
    pub kind: VariableKind,
    /// Its first address, of variables and sections.
    pub address: Option<Address>,
    /// Bytes.
    pub size: Option<u64>,
    /// Share of the event's accesses, by `shares` of the event.
    pub share: f64,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub stores: u64,
    /// Samples by what served them.
    pub levels: LevelsRow,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
    /// Its members by DWARF, those with the largest share first.
    #[serde(default)]
    pub members: Vec<MemberRow>,
}

/// A member of a variable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberRow {
    /// With the variable: `table.buckets[].next`.
    pub name: String,
    /// Share of the event's accesses, by `shares` of the event.
    pub share: f64,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub stores: u64,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
}

/// A member of a structure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldRow {
    /// Event.
    pub event: usize,
    /// The structure: `struct node`.
    #[serde(rename = "type")]
    pub of: String,
    /// Its path there: `next`.
    pub member: String,
    /// Its offset there.
    pub offset: u64,
    /// Share of the event's loads (of its stores, if it has no loads), by `shares` of the event.
    pub share: f64,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub stores: u64,
    /// Samples by what served them.
    pub levels: LevelsRow,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
}
