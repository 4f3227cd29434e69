//! Call stacks: as a flame graph, merged from the root, each frame as wide as its share of the samples; as costs of
//! functions and of the calls between them, as callgrind's format has them.

use serde::{Deserialize, Serialize};

/// A flame graph.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlameGraph {
    /// Sampled command or file.
    pub title: String,
    /// Event whose samples the widths are shares of.
    pub event: String,
    /// Samples.
    pub samples: u64,
    /// Where the shares of the nodes come from; absent where none are known: colours then show the time of
    /// the function itself.
    pub source: Option<String>,
    /// The nodes that colours stand for, by their share of the time.
    pub nodes: Vec<FlameNode>,
    /// The frames: callers before what they call, siblings from left to right.
    pub frames: Vec<Frame>,
    /// Frames left out because they are narrower than [`FlameGraph::NARROWEST`].
    pub omitted: usize,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
    /// Other side of the comparison, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

/// The sides of a differential flame graph. Widths are of B.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Names of A and B.
    pub sides: [String; 2],
    /// Time of A and of B, of one run on average.
    pub totals: [f64; 2],
    /// Unit of times: `s`, the sampled event, or `ratio` where both sides are scaled to 1.
    pub unit: String,
    /// Time of A in stacks that B has not: they are not drawn.
    pub gone: f64,
}

impl FlameGraph {
    /// Narrowest frame that is drawn, as a share of all samples: a quarter of a pixel of 1200.
    pub const NARROWEST: f64 = 0.0002;
    /// Name of the node of time whose nodes are not known.
    pub const UNKNOWN: &str = "not known";
}

/// A node that a colour stands for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlameNode {
    /// Its name.
    pub label: String,
    /// Its share of the time of all samples, 0 to 1.
    pub share: f64,
}

/// A function with its callers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Function; a thread at depth 1, all samples at depth 0.
    pub name: String,
    /// Its module; empty for threads.
    pub module: String,
    /// Number of frames below it.
    pub depth: usize,
    /// Share of all samples left of it, 0 to 1.
    pub from: f64,
    /// Its share of all samples, callees included.
    pub share: f64,
    /// Its samples, callees included.
    pub samples: u64,
    /// Share of all samples in the function itself, in whatever frame.
    pub own: f64,
    /// Nodes of its time: number in `nodes`, and share of its time, the largest first.
    pub parts: Vec<(usize, f64)>,
    /// How it changed; absent where the graph is of one side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

/// A frame in A and B, in the unit of [`Compared`]. Margins are half widths of 95 % intervals of the differences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Time of the function itself, called from these callers.
    pub own: [f64; 2],
    /// Margin of its difference.
    pub own_margin: f64,
    /// Time with callees.
    pub all: [f64; 2],
    /// Margin of its difference.
    pub all_margin: f64,
}

impl Change {
    /// Time that the function itself gained, or lost if negative; 0 within the margin.
    pub fn own_beyond_margin(&self) -> f64 {
        let change = self.own[1] - self.own[0];
        if change.abs() > self.own_margin { change } else { 0.0 }
    }
}

/// The costs of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs {
    /// The command.
    pub command: String,
    /// Remarks, one line each.
    pub remarks: Vec<String>,
    /// Kind of positions: `instr` (an address) or `line`.
    pub positions: &'static str,
    /// Names of the counts.
    pub events: Vec<String>,
    /// Sums over all functions.
    pub summary: Vec<u64>,
    /// The functions.
    pub functions: Vec<FunctionCosts>,
}

/// A function, by its names.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId {
    /// Its module.
    pub object: String,
    /// Its source file; `None`: not known.
    pub file: Option<String>,
    /// Its name.
    pub name: String,
}

/// Costs of a function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionCosts {
    /// Identity of the function.
    pub id: FunctionId,
    /// Its own costs.
    pub lines: Vec<LineCosts>,
    /// Costs of what it calls, callees included.
    pub calls: Vec<CallCosts>,
}

/// The own costs of a function at one place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LineCosts {
    /// The source file where it is not the function's: inlined code.
    pub file: Option<String>,
    /// Address or line.
    pub position: String,
    /// Costs in the order of the events.
    pub costs: Vec<u64>,
}

/// A call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallCosts {
    /// The function that is called.
    pub callee: FunctionId,
    /// How often.
    pub count: u64,
    /// Inclusive costs in the order of the events.
    pub costs: Vec<u64>,
}
