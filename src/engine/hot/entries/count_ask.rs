//! Whom to count.

use pmu::Command;

/// Whom to count.
#[derive(Debug, Clone)]
pub enum CountAsk {
    /// Further runs of this command.
    Command(Command),
    /// A window of this process.
    Process(i32),
}
