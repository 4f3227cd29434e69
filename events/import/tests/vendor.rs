//! The importer on the vendors' files.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

/// Children with a time limit, as in the program's own tests.
#[allow(dead_code)]
#[path = "../../../tests/support/child.rs"]
mod child;

use child::Limited as _;
use std::path::PathBuf;
use std::process::Command;

/// Runs the importer in the project's root; `None` where the vendors' files are not here.
fn import(option: &str) -> Option<(bool, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let vendor = root.join("../shared");
    if !vendor.join("perfmon").exists() {
        eprintln!("skipped: no vendor files in {}", vendor.display());
        return None;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_tdtool-import"));
    let output = command.arg(vendor).arg(root.join("events")).arg(option).run_limited().unwrap();
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

#[test]
fn importing_again_gives_the_committed_tables_byte_for_byte() {
    let Some((ok, text)) = import("--check") else { return };
    assert!(ok, "{text}");
    assert!(text.contains("intel/skl.toml"), "{text}");
}

#[test]
fn tables_agree_with_the_vendors_expanded_formulas() {
    let Some((ok, text)) = import("--verify") else { return };
    assert!(ok, "{text}");
}
