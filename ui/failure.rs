//! Errors as people meet them, on standard error, and the exit status they mean.

use std::process::ExitCode;
use tdtool::{Error, ErrorKind};

/// Prints `error:` / `cause:` / `try:` and returns the exit status: 1 failed, 2 wrong usage, 3 not
/// possible, 126 and 127 as a shell has them for a command that cannot be started.
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
        ErrorKind::CommandNotExecutable => 126,
        ErrorKind::CommandNotFound => 127,
    })
}
