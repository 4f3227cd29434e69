//! Keys of JSON documents: docs/reference/documents.md has them all.

use super::files::root;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Fails for a document of tdtool with a key that the reference does not name.
pub fn check(document: &Value) {
    let name = document["schema"].as_str().unwrap_or_default();
    // Evidence is for tdtool itself.
    if name.starts_with("tdtool.") && !name.starts_with("tdtool.evidence/") {
        check_keys(document, name);
    }
}

fn check_keys(value: &Value, path: &str) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| check_keys(one, path)),
        Value::Object(all) => {
            for (key, one) in all {
                // Addresses, and names of nodes and of software events, are data.
                if path.contains(".software") {
                    continue;
                }
                let is_name =
                    key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
                assert!(
                    !is_name || words().contains(key),
                    "{path} has the key `{key}`, which docs/reference/documents.md does not name"
                );
                check_keys(one, &format!("{path}.{key}"));
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
