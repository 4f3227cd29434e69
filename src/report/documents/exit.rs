//! How a command ended, in every document about one.

use serde::{Deserialize, Serialize};

/// How the measured command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this status.
    Status(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl Exit {
    /// The exit status of a shell: the status, or 128 + the signal.
    pub fn code(self) -> i32 {
        pmu::Exit::from(self).code()
    }
}

impl From<pmu::Exit> for Exit {
    fn from(exit: pmu::Exit) -> Self {
        match exit {
            pmu::Exit::Status(status) => Exit::Status(status),
            pmu::Exit::Signal(signal) => Exit::Signal(signal),
        }
    }
}

impl From<Exit> for pmu::Exit {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Status(status) => pmu::Exit::Status(status),
            Exit::Signal(signal) => pmu::Exit::Signal(signal),
        }
    }
}
