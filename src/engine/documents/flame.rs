//! A flame graph: call stacks merged from the root, each frame as wide as its share of the samples.

use serde::{Deserialize, Serialize};

/// A flame graph.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlameGraph {
    /// What was sampled: a command or file.
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
    /// What its time goes to: number in `nodes`, and share of its time, the largest first.
    pub parts: Vec<(usize, f64)>,
}
