//! Layers of protection of the host from a block.

use std::fmt;

/// A layer, by the name that users read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// A limit on a resource, and which.
    Limit(&'static str),
    /// Any other.
    Other(&'static str),
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(resource) => write!(f, "limit on {resource}"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// The layers of a sandbox that was set up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// Layers that hold: set, and read back.
    pub held: Vec<Layer>,
    /// Layers that do not hold, each with the reason.
    pub missing: Vec<String>,
}

impl Layers {
    /// Enters a layer, which holds unless there is a reason.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no sandbox there"))]
    pub(crate) fn enter(&mut self, layer: Layer, why_not: Option<String>) {
        match why_not {
            None => self.held.push(layer),
            Some(why) => self.missing.push(format!("{layer}: {why}")),
        }
    }
}
