//! Errors as people meet them, on standard error, and the exit status they mean.

use std::process::ExitCode;
use tdtool::{Error, ErrorKind};

/// Prints `error:` / `cause:` / `try:` and returns 1 (failed), 2 (wrong usage) or 3 (not possible).
#[allow(clippy::print_stderr)]
pub fn report(error: &Error) -> ExitCode {
    eprintln!("error: {}", error.what());
    if let Some(cause) = error.cause() {
        eprintln!("cause: {}", cause.replace('\n', "\n       "));
    }
    if let Some(remedy) = error.remedy() {
        eprintln!("try:   {}", remedy.replace('\n', "\n       "));
    }
    ExitCode::from(match error.kind() {
        ErrorKind::Failed => 1,
        ErrorKind::Usage => 2,
        ErrorKind::NotPossible => 3,
    })
}
