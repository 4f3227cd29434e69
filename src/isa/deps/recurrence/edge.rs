//! An edge of the dependency graph.

use crate::deps::Kind;
use crate::latency::{Forward, Latency, Output};

/// The path of a value from its writer through the reader to the reader's result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// Node of the value read.
    pub from: usize,
    /// Node of the value computed from it.
    pub to: usize,
    /// Index of the instruction that wrote it.
    pub writer: usize,
    /// Index of the reading instruction.
    pub reader: usize,
    /// Iterations between writer and reader.
    pub delta: u32,
    /// Carrier of the value.
    pub kind: Kind,
    /// The register or flag group, unless it is memory.
    pub reg: Option<crate::effects::ArchReg>,
    /// For memory: index of the reader's access that loads it, and the forwarding class.
    pub forward: Option<(usize, Forward)>,
    /// Where the computed value goes.
    pub output: Output,
    /// Latency from writer's result to reader's result, including forwarding.
    pub latency: Latency,
}
