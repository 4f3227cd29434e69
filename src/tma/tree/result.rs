//! Results of an evaluation, for each node.

use crate::quantity::Quantity;

/// The result for one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeResult {
    /// Value with error and running share; ratios as ratios.
    pub quantity: Quantity,
    /// Its terms had to come from several groups, which share no common time.
    pub split: bool,
    /// The vendor's threshold: holds, does not hold, or there is none (or a term is missing).
    pub over: Option<bool>,
}

/// Results of all nodes of a table for one [`Counts`](crate::counts::Counts).
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// By [`NodeId`](crate::tables::NodeId).
    pub nodes: Vec<NodeResult>,
}
