//! Samples with their times, and the node that each of them goes to.

use profile::hot::Timeline as Taken;

/// Samples over time. It is no part of the report in JSON: it is as large as the recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// The sampled event.
    pub event: String,
    /// The samples.
    pub taken: Taken,
    /// Nodes that time goes to.
    pub nodes: Vec<String>,
    /// Number of each sample's node, where one is known: the samples of a function are divided among its nodes.
    pub node_of: Vec<Option<usize>>,
    /// Where the nodes come from.
    pub source: Option<String>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

impl Timeline {
    /// The function of a call chain of `taken`, without functions inlined into it.
    pub fn function(&self, stack: u32) -> Option<&profile::hot::StackFrame> {
        let frames = self.taken.stacks.get(stack as usize)?.iter();
        frames.rev().map(|frame| &self.taken.frames[*frame]).find(|frame| !frame.is_inlined())
    }
}
