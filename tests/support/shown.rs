//! What a user reads, kept whole in `tests/snapshots` and compared there: wording changes in one place, and a change is
//! reviewed as text. Only what is the same on every processor is kept.
//!
//! After an intended change: `INSTA_UPDATE=always cargo test`, then read `git diff tests/snapshots`.

use super::files::{Folder, root};
use super::run::{Ran, tdtool};
use std::ffi::OsStr;
use std::fmt::Write as _;

/// What a command shows: its words, its exit status and both outputs, with paths of `folder` and of the project as
/// `FOLDER` and `ROOT`.
pub fn of(arguments: &[impl AsRef<OsStr>], folder: &Folder) -> String {
    let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
    without_paths(&format!("$ tdtool {}\n{}", words.join(" "), outputs(&tdtool(arguments))), folder)
}

/// The exit status and both outputs of a program that has ended.
pub fn outputs(ran: &Ran) -> String {
    let mut text = String::new();
    for (name, output) in [("", &ran.stdout), ("stderr:\n", &ran.stderr)] {
        if !output.is_empty() {
            let _ = writeln!(text, "{name}{}", output.trim_end());
        }
    }
    let _ = match ran.code() {
        Some(code) => writeln!(text, "exit status {code}"),
        None => writeln!(text, "ended by a signal"),
    };
    text
}

/// The same text with paths that differ from run to run named.
pub fn without_paths(text: &str, folder: &Folder) -> String {
    let path = super::files::text(folder.path());
    text.replace(path, "FOLDER").replace(super::files::text(&root()), "ROOT")
}

/// Compares a text with `tests/snapshots/NAME.snap`.
macro_rules! assert_shown {
    ($name:expr, $text:expr) => {
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, $text);
        })
    };
}
