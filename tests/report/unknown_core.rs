//! Estimates on a core of which little is known: no part is lost because another is not known.

use super::compiled;
use crate::support::files::{Folder, root, text};
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use serde_json::Value;

/// A loop of dependent divisions.
const DIVIDE: &str = r#"
#include <stdlib.h>
int main(int count, char **arguments) {
    long rounds = atol(arguments[1]);
    volatile unsigned long by = 3;
    unsigned long x = count, d = by;
    for (long i = 0; i < rounds; i++) x = x / d + (1ul << 62);
    return x == 1;
}
"#;

/// A kept self-test in which no attempt could time the width, as beside something that never rests; and no table.
#[test]
fn an_estimate_without_any_width_is_wide_and_not_refused() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, DIVIDE, &[]) else { return };
    let kept = std::fs::read_to_string(root().join("tests/processors/self-tests/zen4.json"));
    let mut kept: Value = serde_json::from_str(&kept.unwrap()).unwrap();
    let cycles = kept["cycles"].as_object_mut().unwrap();
    cycles.retain(|test, _| !test.starts_with("mix "));
    let file = folder.write("self-test.json", kept.to_string());
    let out = folder.path().join("report.json");
    let ran = tdtool([
        "--no-table",
        "--self-test-from",
        &file,
        "report",
        "--estimate",
        "--format",
        "json",
        "-o",
        text(&out),
        "--",
        &program,
        "60000000",
    ]);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&folder.read("report.json")).unwrap();
    let estimate = &report["estimate"];
    assert!(estimate["assumed"].to_string().contains("width"), "{estimate:#}");
    need!(estimate["covered"].as_f64().is_some_and(|share| share > 0.5), "too few samples");
    let part =
        |name: &str, key: &str| estimate["program"]["parts"][name][key].as_f64().expect("a number");
    // 2 to 8 a cycle.
    let (low, high) = (part("retiring", "low"), part("retiring", "high"));
    assert!(high > 2.5 * low, "{estimate:#}");
    // Few instructions retire in a division's time, at any width.
    assert!(part("retiring", "value") < 0.5, "{estimate:#}");
}
