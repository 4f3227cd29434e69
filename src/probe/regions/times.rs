//! When a marker was executed.

/// When a marker was executed, from and to.
#[derive(Debug, Clone, Copy)]
pub struct Times(pub u64, pub u64);

impl Times {
    /// From its beginning to its end.
    pub fn ticks(self) -> u64 {
        self.1.saturating_sub(self.0)
    }
}
