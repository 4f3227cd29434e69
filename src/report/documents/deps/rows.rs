//! The document and its rows.

use isa::deps::{Kind, Order, Overlap};
use isa::latency::Forward;
use serde::Serialize;

/// Analysed code, and how.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Subject {
    /// Name of the block, if it has one.
    pub name: Option<String>,
    /// Table of the microarchitecture whose processors are meant.
    pub uarch: Option<String>,
    /// Entries of the reorder buffer.
    pub window: u32,
    /// Source of that number.
    pub window_source: String,
    /// Where initial values come from, if any are given.
    pub seeded: Option<String>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// An instruction.
#[derive(Debug, Clone, Serialize)]
pub struct Instruction {
    /// Address as in the input.
    pub address: String,
    /// Intel syntax.
    pub text: String,
}

/// A dependency; addresses name instructions.
#[derive(Debug, Clone, Serialize)]
pub struct Dependency {
    /// The writer; of a false dependency, the earlier access.
    pub writer: String,
    /// The reader; of a false dependency, the later writer.
    pub reader: String,
    /// Iterations between.
    pub delta: u32,
    /// Kind of the carrier.
    pub kind: Kind,
    /// The place.
    pub through: String,
    /// For memory.
    pub overlap: Option<Overlap>,
    /// True (`raw`) or false (`war`, `waw`).
    pub order: Order,
    /// Positions in `instructions`: on a path an address may come twice.
    pub indices: [usize; 2],
    /// From the writer's result to the reader's; none where the value reaches no result.
    pub latency: Option<Cycles>,
}

/// A latency in core cycles.
#[derive(Debug, Clone, Serialize)]
pub struct Cycles {
    /// Least.
    pub low: f64,
    /// Most: of several results, or where it depends on circumstances.
    pub high: f64,
    /// Where it comes from.
    pub source: String,
}

/// A step of a recurrence.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// The instruction that reads a value and computes the next one.
    pub address: String,
    /// Its text.
    pub text: String,
    /// Its position in `instructions`.
    pub index: usize,
    /// Position of the writer.
    pub writer: usize,
    /// Where the value is read from.
    pub through: String,
    /// Kind of the carrier.
    pub kind: Kind,
    /// Iterations since it was written.
    pub delta: u32,
    /// How the store reaches the load, for memory.
    pub forwarding: Option<Forward>,
    /// Least cycles to the next value.
    pub low: f64,
    /// Most cycles.
    pub high: f64,
    /// Source of the latency.
    pub source: String,
}

impl Step {
    /// Whether it goes through this dependency.
    pub fn carries(&self, dependency: &Dependency) -> bool {
        [self.writer, self.index] == dependency.indices
            && self.delta == dependency.delta
            && self.through == dependency.through
    }
}

/// A loop-carried dependency cycle.
#[derive(Debug, Clone, Serialize)]
pub struct Cycle {
    /// Cycles an iteration takes at least; the same as `low`.
    pub cycles: f64,
    /// With the least latencies.
    pub low: f64,
    /// With the middles of the latencies' ranges: no bound.
    pub middle: f64,
    /// With the greatest.
    pub high: f64,
    /// Iterations that once around takes.
    pub iterations: u64,
    /// Once around.
    pub path: Vec<Step>,
}

/// Accesses that may alias: the region does not determine their addresses.
#[derive(Debug, Clone, Serialize)]
pub struct MayAlias {
    /// Accesses that store.
    pub stores: Vec<String>,
    /// Accesses that load or store elsewhere.
    pub others: Vec<String>,
    /// Source of the stores' addresses.
    pub stores_from: String,
    /// Source of the others' addresses.
    pub others_from: String,
    /// Whether one of the two is the stack: code that compilers make keeps the others off it, unless
    /// a local variable's address is passed on.
    pub stack: bool,
}

/// An instruction that is not completely modelled.
#[derive(Debug, Clone, Serialize)]
pub struct Unmodelled {
    /// The instruction.
    pub address: String,
    /// Its text.
    pub text: String,
    /// Why.
    pub reason: String,
}

/// The document.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    /// `tdtool.deps/1`.
    pub schema: &'static str,
    /// Analysed code.
    #[serde(flatten)]
    pub subject: Subject,
    /// Runs with random values of their own.
    pub runs: u32,
    /// Iterations of each.
    pub iterations: u32,
    /// In order.
    pub instructions: Vec<Instruction>,
    /// In order of reader.
    pub dependencies: Vec<Dependency>,
    /// The slowest first.
    pub recurrences: Vec<Cycle>,
    /// Pairs of groups of accesses.
    pub may_alias: Vec<MayAlias>,
    /// Effects that are incomplete.
    pub unmodelled: Vec<Unmodelled>,
    /// Unknown results: an address computed from one equals no other.
    pub unknown_results: Vec<Unmodelled>,
}
