//! Errors as people meet them, on standard error, and the exit status they mean.

use std::process::ExitCode;
use tma::{Error, ErrorKind};

/// Prints `error:` / `cause:` / `try:` and returns the exit status: 1 failed, 2 wrong usage, 3 not
/// possible, 126 and 127 as a shell has them for a command that cannot be started.
pub fn report(error: &Error) -> ExitCode {
    tell("error", error.what(), error.cause(), error.remedy());
    ExitCode::from(status(error))
}

/// The exit status that an error means.
pub fn status(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Failed => 1,
        ErrorKind::Usage => 2,
        ErrorKind::NotPossible => 3,
        ErrorKind::CommandNotExecutable => 126,
        ErrorKind::CommandNotFound => 127,
    }
}

/// Three lines on standard error: `kind:` what, `cause:` why, `try:` what to do.
#[allow(clippy::print_stderr)]
pub fn tell(kind: &str, what: &str, cause: Option<&str>, remedy: Option<&str>) {
    let lines =
        [(format!("{kind}:"), Some(what)), ("cause:".into(), cause), ("try:".into(), remedy)];
    for (head, text) in lines {
        if let Some(text) = text {
            eprintln!("{head:<6} {}", text.replace('\n', "\n       "));
        }
    }
}
