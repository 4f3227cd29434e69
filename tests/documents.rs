//! Keys of JSON documents: docs/reference/documents.md has them all.

use crate::support::files::{Folder, fixture, root, text};
use crate::support::run::tdtool;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Commands whose documents are the same on every machine.
#[test]
fn every_key_is_in_the_reference() {
    let folder = Folder::new();
    let counts = |name: &str| text(&fixture(&format!("import/{name}"))).to_owned();
    let plain = text(&fixture("field/i02-de-comma.csv")).to_owned();
    let report = folder.file("report.json");
    tdtool(["report", &plain, "--uarch", "spr", "--format", "json", "--output", &report])
        .succeeded();
    let commands: [&[&str]; 6] = [
        &["report", &plain, "--uarch", "spr"],
        &["report", &counts("perf-core.csv"), "-l", "6"],
        &["report", &counts("perf-cgroup.csv"), "--uarch", "zen4"],
        &["diff", &report, &report],
        &["deps", "--uarch", "zen4", "--asm", "mov [rsi],rax; mov rax,[rsi]; add rax,rbx"],
        &["microbench", "list", "vpaddd"],
    ];
    let mut unknown = BTreeSet::new();
    for command in commands {
        let ran = tdtool([command, &["--format", "json"]].concat());
        let document: Value = ran.json();
        unknown.extend(unknown_keys(&document));
    }
    assert!(unknown.is_empty(), "not in docs/reference/documents.md: {unknown:?}");
}

/// The keys of a document that are not in the reference.
pub fn unknown_keys(document: &Value) -> BTreeSet<String> {
    let mut unknown = BTreeSet::new();
    let name = document["schema"].as_str().expect("a schema");
    find_unknown(document, name, &mut unknown);
    unknown
}

fn find_unknown(value: &Value, path: &str, unknown: &mut BTreeSet<String>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| find_unknown(one, path, unknown)),
        Value::Object(all) => {
            // Names of software events are data, as are addresses and names of nodes and events.
            for (key, one) in all.iter().filter(|_| !path.contains(".software")) {
                let path = format!("{path}.{key}");
                let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
                if key.bytes().all(is_name) && !words().contains(key) {
                    unknown.insert(path.clone());
                }
                find_unknown(one, &path, unknown);
            }
        }
        _ => {}
    }
}

/// The words in code of the references.
fn words() -> &'static BTreeSet<String> {
    static WORDS: OnceLock<BTreeSet<String>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut words = BTreeSet::new();
        for file in ["documents.md", "tables.md"] {
            let text = std::fs::read_to_string(root().join("docs/reference").join(file));
            let text = text.expect("the reference");
            for code in text.split('`').skip(1).step_by(2) {
                let all = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                words.extend(all.map(str::to_owned));
            }
        }
        words
    })
}
