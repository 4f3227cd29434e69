//! Step of `main` after a command line has been carried out.

use crate::settings::Settings;
use crate::subject::Subject;
use std::process::ExitCode;

/// Next step of `main`.
pub enum Next {
    /// End with this status.
    Exit(ExitCode),
    /// Open the drill-down.
    DrillDown(Box<Settings>, Subject),
}
