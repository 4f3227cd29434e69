//! An edge of the graph of values.

use crate::deps::Kind;
use crate::latency::{Forward, Latency};

/// What a value goes through from one instruction to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// Node of the value that is read.
    pub from: usize,
    /// Node of the value that is computed from it.
    pub to: usize,
    /// Instruction that reads it.
    pub reader: usize,
    /// Iterations between writer and reader.
    pub delta: u32,
    /// What carries it between them.
    pub kind: Kind,
    /// The place, unless it is memory.
    pub place: Option<crate::effects::Place>,
    /// For memory: which access of the reader loads it, and how the store reaches it.
    pub forward: Option<(usize, Forward)>,
    /// How long it takes, forwarding included.
    pub latency: Latency,
}
