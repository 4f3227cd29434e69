//! Compares what a user reads with `tests/snapshots`, whole: wording changes in one place, and a change is reviewed
//! as text. Only what is the same on every processor is kept.
//!
//! After an intended change: `INSTA_UPDATE=always cargo test`, then read `git diff tests/snapshots`.

use super::files::{Folder, root};
use super::run::{Ran, command, run};
use std::ffi::OsStr;
use std::fmt::Write as _;

/// What a command shows that runs in `folder`: its words, both outputs and its exit status, with paths of the folder and
/// of the project as `FOLDER` and `ROOT`. Texts that are wrapped have files by their names alone: how long the path of the
/// folder is differs.
pub fn of(arguments: &[impl AsRef<OsStr>], folder: &Folder) -> String {
    let shown = outputs(&run(command(arguments).current_dir(folder.path())), folder);
    without_paths(&format!("$ tdtool {}\n{shown}", tma::shell::quoted(arguments)), folder)
}

/// What each of several commands shows.
pub fn each(commands: &[&[&str]], folder: &Folder) -> String {
    let shown: Vec<_> = commands.iter().map(|words| of(words, folder)).collect();
    shown.join("\n")
}

/// The exit status and both outputs of a program that has ended, with paths named in the same way.
pub fn outputs(ran: &Ran, folder: &Folder) -> String {
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
    without_paths(&text, folder)
}

/// What an error of a library says, as the program prints it.
pub fn error(error: &tma::Error, folder: &Folder) -> String {
    let mut text = format!("error: {}\n", error.what());
    for (head, line) in [("cause:", error.cause()), ("try:  ", error.remedy())] {
        let _ = line.map_or(Ok(()), |line| writeln!(text, "{head} {line}"));
    }
    without_paths(&text, folder)
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
