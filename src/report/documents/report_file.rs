//! Report documents read back from the JSON they were written as.

use super::report::{Report, SCHEMA};
use std::fmt::Display;
use std::io::Read;
use std::path::Path;
use tma::shell::quoted;
use tma::{Error, Result};

/// Largest file read, in bytes.
const MAX_FILE: u64 = 256 << 20;

/// Reads a report document; of several (one per line, from `--interval`), the last.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn read(path: &Path) -> Result<Report> {
    let file = profile::kept::open(path).map_err(|e| unreadable(path, &e))?;
    let last = values(path, file)?.pop();
    report(path, last.ok_or_else(|| unreadable(path, &"the file is empty"))?)
}

/// Whether a file that begins in this way is a document of tdtool.
pub fn recognise(start: &[u8]) -> bool {
    let text: Vec<u8> = start.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    text.starts_with(b"{\"schema\":\"tdtool.")
}

/// Reads all report documents of `input`; `path` names it in messages.
///
/// # Errors
/// It cannot be read, or holds something else.
pub fn read_all(path: &Path, input: impl Read) -> Result<Vec<Report>> {
    values(path, input)?.into_iter().map(|value| report(path, value)).collect()
}

fn values(path: &Path, input: impl Read) -> Result<Vec<serde_json::Value>> {
    let mut bytes = Vec::new();
    input.take(MAX_FILE).read_to_end(&mut bytes).map_err(|e| unreadable(path, &e))?;
    let text = String::from_utf8(bytes).map_err(|_| not_json(path))?;
    let all = serde_json::Deserializer::from_str(&text).into_iter();
    all.map(|document| document.map_err(|e| unreadable(path, &e))).collect()
}

fn report(path: &Path, value: serde_json::Value) -> Result<Report> {
    match value.get("schema").and_then(|s| s.as_str()).unwrap_or("none") {
        SCHEMA => serde_json::from_value(value).map_err(|e| unreadable(path, &e)),
        schema => Err(other(path, schema)),
    }
}

/// Another document: which, and what takes it.
fn other(path: &Path, schema: &str) -> Error {
    let name = path.display();
    let command = schema.strip_prefix("tdtool.").and_then(|s| s.split('/').next());
    let error = Error::failed(format!("cannot read the report {name}"))
        .because(format!("its schema is `{schema}`, not `{SCHEMA}`"));
    error.hint(match command {
        Some("report") => "a newer tdtool wrote it: read it with that one, or update this one (`tdtool --version`)".to_owned(),
        Some("count") => format!(
            "counts go with a recording, `tdtool RECORDING --counts {name}`, or to `tdtool prefetch {name}`",
            name = quoted(&[path])
        ),
        Some("block") => {
            format!("`tdtool block --repeat {}` measures that block again", quoted(&[path]))
        }
        Some(command) if schema.contains('/') => {
            format!("`tdtool {command}` without --format json shows it as text")
        }
        _ => "write one with `tdtool report --format json --output FILE -- CMD`".to_owned(),
    })
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
            "convert a session or perf.data first: `tdtool report {0} --format json --output {0}.json`",
            quoted(&[path])
        ))
}
