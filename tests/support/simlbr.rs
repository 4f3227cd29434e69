//! Recordings of programs by `../shared/simlbr`, made from their real runs without a PMU.

use super::child::Limited as _;
use super::files::{shared, text};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program; `false`, with a message, where it is absent or fails.
pub fn ran(command: &mut Command) -> bool {
    match command.run_limited() {
        Ok(done) if done.status.success() => true,
        Ok(done) => {
            eprintln!("skipped: {command:?}: {}", String::from_utf8_lossy(&done.stderr));
            false
        }
        Err(e) => {
            eprintln!("skipped: {command:?}: {e}");
            false
        }
    }
}

/// Records a program with simlbr.py; `None`, with a message, where that is absent.
pub fn recorded(place: &Path, program: &Path, options: &[&str]) -> Option<PathBuf> {
    let script = shared("simlbr")?.join("simlbr.py");
    let out = place.join("out");
    let mut command = Command::new("python3");
    command.args([text(&script), "-o", text(&out)]).args(options);
    command.args(["--", text(program)]).current_dir(place);
    ran(&mut command).then(|| place.join("out.perf.data"))
}
