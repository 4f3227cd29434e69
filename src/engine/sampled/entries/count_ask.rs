//! The command or process to count in.

use pmu::Command;

/// The command or process to count in.
#[derive(Debug, Clone)]
pub enum CountAsk {
    /// Further runs of this command.
    Command(Command),
    /// A window of this process.
    Process(i32),
}
