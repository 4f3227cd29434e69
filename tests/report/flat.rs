//! Estimates of programs whose time is in many functions of few samples each.

use super::{compiled, report};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use serde_json::Value;

/// Their row covers them, and saved evidence has the same parts.
#[test]
fn functions_with_few_samples_each_are_one_row() {
    let _busy = busy();
    let folder = Folder::new();
    let source = include_str!("../figures/programs/flat.c");
    let options = ["-Dflat_alu", "-DCOUNT=\"700\""];
    let Some(program) = compiled(&folder, source, &options) else { return };
    let file = folder.file("evidence.json");
    let options = ["--estimate", "--evidence", &file, "--format", "json", "--"];
    let ran = report(&[&options[..], &[&program, "flat_alu", "normal", "20"]].concat());
    need!(ran.code() == Some(0), ran.stderr);
    let live = &ran.json()["estimate"];
    let rows = |of: &Value| of["functions"].as_array().expect("rows").clone();
    let retired = |row: &Value| row["parts"]["retiring"]["value"].as_f64();
    // Neither a function nor the kernel.
    let is_other =
        |row: &Value| row["module"].as_str().is_none_or(str::is_empty) && retired(row) > Some(0.0);
    let other = rows(live).into_iter().find(is_other);
    need!(other.is_some(), format!("few functions have most samples: {live:#}"));
    assert!(live["covered"].as_f64() > Some(0.8), "{live:#}");
    let again = tdtool(["report", &file, "--format", "json"]);
    assert_eq!(again.code(), Some(0), "{}", again.stderr);
    let again = &again.json()["estimate"];
    assert_eq!(rows(again), rows(live));
    assert_eq!(again["program"], live["program"]);
}
