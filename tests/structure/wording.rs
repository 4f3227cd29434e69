//! Tests ask for values; how something is said is compared whole, with `tests/snapshots`, so that it can improve.

use super::{files, messages};
use crate::support::files::root;
use std::collections::BTreeMap;

/// How many phrases tests still ask for: only lowered.
const PHRASES: usize = 178;

/// The files of the tests, by path.
fn tests() -> BTreeMap<String, String> {
    let read = |file: files::File| {
        let text = std::fs::read_to_string(root().join("tests").join(&file.path)).unwrap();
        (file.path, text)
    };
    files::read(&root().join("tests/main.rs")).into_values().map(read).collect()
}

#[test]
fn tests_ask_for_no_more_phrases() {
    let asked = messages::questions(&tests());
    let number = asked.len();
    assert!(number <= PHRASES, "{number} phrases: take snapshots (support/shown.rs): {asked:#?}");
}

#[test]
fn every_snapshot_has_its_test() {
    let all: String = tests().into_values().collect();
    for entry in std::fs::read_dir(root().join("tests/snapshots")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "snap") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(all.contains(&format!("\"{name}\"")), "{}: no test has it", path.display());
    }
}
