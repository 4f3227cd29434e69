//! What protects the host from a block, layer by layer.

/// The layers of a sandbox that was set up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// Those that hold: set, and read back.
    pub held: Vec<&'static str>,
    /// Those that do not, each with the reason.
    pub missing: Vec<String>,
}

impl Layers {
    /// Enters a layer, which holds unless there is a reason.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no sandbox there"))]
    pub(crate) fn enter(&mut self, layer: &'static str, why_not: Option<String>) {
        match why_not {
            None => self.held.push(layer),
            Some(why) => self.missing.push(format!("{layer}: {why}")),
        }
    }
}
