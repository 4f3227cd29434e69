//! Mistakes in table files.

use crate::formula::{FormulaError, Uncompiled};
use std::fmt;

/// A mistake in a table file. Nodes are named by their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalid {
    /// It has another schema.
    Schema(u32),
    /// A name stands for two things.
    Twice(String),
    /// It has too many names.
    ManyNames,
    /// Its `clocks` are no event.
    Clocks(String),
    /// A text of a node does not parse; the text.
    Unparsed(NodeText, String, FormulaError, String),
    /// A text of a node does not compile; the name that was perhaps meant.
    Uncompiled(NodeText, String, Uncompiled, Option<String>),
    /// The parent of a node is not before it.
    NoParent(String, String),
    /// A node is not one level below its parent.
    Level {
        /// The node and its level.
        node: (String, u32),
        /// Its parent and the parent's level.
        parent: (String, u32),
    },
    /// A node below level 1 has no parent.
    Orphan(String, u32),
    /// The formulas of two nodes need each other.
    Cycle(String, String),
}

/// Which text of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeText {
    /// The formula of its value.
    Formula,
    /// The condition under which it is notable.
    Threshold,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schema(n) => write!(f, "schema {n} is not supported (this version supports 1)"),
            Self::Twice(name) => write!(f, "`{name}` is defined twice"),
            Self::ManyNames => f.write_str("more than 65,534 names"),
            Self::Clocks(name) => write!(f, "`clocks` is not an event: `{name}`"),
            Self::Unparsed(of, id, why, text) => write!(f, "{of} of `{id}`, {why}: `{text}`"),
            Self::Uncompiled(of, id, why, near) => {
                write!(f, "{of} of `{id}`: {why}")?;
                near.iter().try_for_each(|near| write!(f, "; did you mean `{near}`?"))
            }
            Self::NoParent(id, parent) => write!(f, "`{id}` has no parent `{parent}` before it"),
            Self::Level { node: (id, level), parent: (parent, above) } => {
                write!(f, "`{id}` is at level {level} under `{parent}` at level {above}")
            }
            Self::Orphan(id, level) => write!(f, "`{id}` is at level {level} and has no parent"),
            Self::Cycle(a, b) => write!(f, "formulas form a cycle through `{a}` and `{b}`"),
        }
    }
}

impl std::error::Error for Invalid {}

impl fmt::Display for NodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Formula => "formula",
            Self::Threshold => "threshold",
        })
    }
}
