//! Keys of JSON documents: docs/reference/documents.md has them all.

use super::files::root;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Fails for a document of tdtool with keys that the reference does not name.
pub fn check(document: &Value) {
    let name = document["schema"].as_str().unwrap_or_default();
    // Evidence is for tdtool itself.
    if name.starts_with("tdtool.") && !name.starts_with("tdtool.evidence/") {
        let mut unknown = BTreeSet::new();
        find_unknown(document, name, &mut unknown);
        assert!(unknown.is_empty(), "not in docs/reference/documents.md: {unknown:?}");
    }
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
