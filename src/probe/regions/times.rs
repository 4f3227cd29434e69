//! Begin and end of a marker's probe.

/// Begin and end of a marker's probe, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Times(pub u64, pub u64);

impl Times {
    /// Its length.
    pub fn ticks(self) -> u64 {
        self.1.saturating_sub(self.0)
    }
}
