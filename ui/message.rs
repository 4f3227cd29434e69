//! Errors and notes on standard error, and the exit status an error means.

use std::io::Write as _;
use std::process::ExitCode;
use tma::{Error, ErrorKind};

/// Prints `error:` / `cause:` / `try:` and returns the exit status.
pub fn error(error: &Error) -> ExitCode {
    print("error", error.what(), error.cause(), error.remedy());
    ExitCode::from(status(error))
}

/// The exit status that an error means: 1 failed, 2 wrong usage, 3 not possible on this machine, 126
/// and 127 as a shell has them for a command that cannot be started.
pub fn status(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Failed => 1,
        ErrorKind::Usage => 2,
        ErrorKind::NotPossible => 3,
        ErrorKind::CommandNotExecutable => 126,
        ErrorKind::CommandNotFound => 127,
    }
}

/// Prints `note:`.
pub fn note(text: &str) {
    print("note", text, None, None);
}

/// Prints up to three lines: `kind:` what, `cause:` why, `try:` what to do.
pub fn print(kind: &str, what: &str, cause: Option<&str>, remedy: Option<&str>) {
    let lines =
        [(format!("{kind}:"), Some(what)), ("cause:".into(), cause), ("try:".into(), remedy)];
    for (head, text) in lines {
        if let Some(text) = text {
            plain(&format!("{head:<6} {}\n", tma::text::lines(text).replace('\n', "\n       ")));
        }
    }
}

/// Writes to standard error as it is. That it cannot be written (`2>&1 | head`) can be told nobody.
pub fn plain(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
