//! Prints errors and notes on standard error, and chooses the exit status of an error.

use crate::terminal;
use report::format::words;
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

/// Prints `note:` even if notes are not wanted, and what to do.
pub fn always(text: &str, remedy: Option<&str>) {
    print_lines("note", text, None, remedy);
}

/// Prints up to three lines: `kind:` what, `cause:` why, `try:` what to do.
pub fn print(kind: &str, what: &str, cause: Option<&str>, remedy: Option<&str>) {
    if kind != "note" || !terminal::is_quiet() {
        print_lines(kind, what, cause, remedy);
    }
}

/// Prints `try:`, what to do, alone.
pub fn remedy(text: &str) {
    let columns = terminal::columns(&std::io::stderr()).unwrap_or(usize::MAX);
    plain(&wrapped("try:   ", &tma::text::lines(text), columns));
}

fn print_lines(kind: &str, what: &str, cause: Option<&str>, remedy: Option<&str>) {
    let lines =
        [(format!("{kind}:"), Some(what)), ("cause:".into(), cause), ("try:".into(), remedy)];
    for (head, text) in lines {
        if let Some(text) = text {
            let text = tma::text::lines(text);
            let columns = terminal::columns(&std::io::stderr()).unwrap_or(usize::MAX);
            plain(&wrapped(&format!("{head:<6} "), &text, columns));
        }
    }
}

/// The lines of `text` after `head`, no wider than the terminal; a command between backticks stays on one line, so
/// that it can be copied.
fn wrapped(head: &str, text: &str, columns: usize) -> String {
    let indent = " ".repeat(head.len());
    let mut out = head.to_owned();
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out += &indent;
        }
        let mut used = head.len();
        for (place, word) in words(line).into_iter().enumerate() {
            let width = word.chars().count();
            if used > head.len() && used + 1 + width > columns {
                out = out + "\n" + &indent;
                used = head.len();
            } else if place > 0 {
                out.push(' ');
                used += 1;
            }
            out += word;
            used += width;
        }
        out.push('\n');
    }
    out
}

/// Writes to standard error as it is. That it cannot be written (`2>&1 | head`) can be told nobody.
pub fn plain(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_around_commands() {
        let text = "to measure it: `tdtool report -- ./a`, or not at all\nsecond";
        let shown = "try:   to measure it:\n       `tdtool report -- ./a`,\n       or not at all\n       second\n";
        assert_eq!(wrapped("try:   ", text, 30), shown);
        assert_eq!(wrapped("note:  ", "a  b", usize::MAX), "note:  a  b\n", "blanks stay");
    }
}
