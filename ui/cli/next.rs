//! What is left to do once a command line has been carried out.

use crate::settings::Settings;
use crate::subject::Subject;
use std::process::ExitCode;

/// What `main` does next.
pub enum Next {
    /// End with this status.
    Exit(ExitCode),
    /// Open the drill-down.
    DrillDown(Box<Settings>, Subject),
}
