//! Report documents read back from the JSON they were written as.

use super::report::{Report, SCHEMA};
use std::fmt::Display;
use std::io::Read as _;
use std::path::Path;
use tma::{Error, Result};

/// Largest file read, in bytes.
const MAX_FILE: u64 = 256 << 20;

/// Reads a report document; of several (one per line, from `--interval`), the last.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn read(path: &Path) -> Result<Report> {
    let mut bytes = Vec::new();
    let file = tma::files::open(path).map_err(|e| unreadable(path, &e))?;
    file.take(MAX_FILE).read_to_end(&mut bytes).map_err(|e| unreadable(path, &e))?;
    let text = String::from_utf8(bytes).map_err(|_| not_json(path))?;
    let mut last = None;
    for document in serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>() {
        last = Some(document.map_err(|e| unreadable(path, &e))?);
    }
    let value = last.ok_or_else(|| unreadable(path, &"the file is empty"))?;
    let schema = value.get("schema").and_then(|s| s.as_str()).unwrap_or("none");
    if schema != SCHEMA {
        return Err(unreadable(path, &format!("its schema is `{schema}`, not `{SCHEMA}`")));
    }
    serde_json::from_value(value).map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, cause: &dyn Display) -> Error {
    Error::failed(format!("cannot read the report {}", path.display()))
        .because(cause)
        .hint("write one with `tdtool report --format json --output FILE -- CMD`")
}

fn not_json(path: &Path) -> Error {
    let name = path.display();
    Error::usage(format!("{name} is not a JSON report"))
        .because("diff compares documents written by `tdtool report --format json`")
        .hint(format!(
            "convert a session or perf.data first: tdtool report {name} --format json --output {name}.json"
        ))
}
