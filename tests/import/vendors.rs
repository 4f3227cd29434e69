//! The importer on the vendors' files: `cargo test --features import --test user import::vendors`.

use crate::support::files::{root, shared};
use crate::support::run::{program, run};

/// Runs the importer in the project's root; `None` where the vendors' files are not here.
fn import(option: &str) -> Option<(bool, String)> {
    let vendor = shared("perfmon")?;
    let folder = vendor.parent().expect("a folder");
    let mut importer = program(env!("CARGO_BIN_EXE_tdtool-import"));
    let ran = run(importer.arg(folder).arg(root().join("events")).arg(option));
    Some((ran.status.success(), ran.stdout + &ran.stderr))
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
