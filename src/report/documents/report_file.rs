//! Report documents read back from JSON, or made of what an interactive screen shows, and what the tables explain
//! of their nodes.

use super::report::{Report, SCHEMA, Source};
use super::report_code::{BlockRow, FunctionRow, Sampled};
use profile::hot::{Annotated, Summary};
use std::collections::HashMap;
use std::fmt::Display;
use std::io::Read;
use std::path::Path;
use tma::shell::quoted;
use tma::tables::Library;
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
    let name = tma::files::name(path);
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
    Error::failed(format!("cannot read the report {}", tma::files::name(path)))
        .because(cause)
        .hint("write one with `tdtool report --format json --output FILE -- CMD`")
}

fn not_json(path: &Path) -> Error {
    let name = tma::files::name(path);
    Error::usage(format!("{name} is not a JSON report"))
        .because("diff compares documents written by `tdtool report --format json`")
        .hint(format!(
            "convert a session or perf.data first: `tdtool report {0} --format json --output {0}.json`",
            quoted(&[path])
        ))
}

/// Functions with samples, and the indices of those on the screen, in order.
#[derive(Debug, Clone, Copy)]
pub struct Functions<'a> {
    /// All of them.
    pub all: &'a Summary,
    /// Indices on the screen.
    pub shown: &'a [usize],
}

/// `report`, or an empty one, with the functions and the blocks of one of them.
pub fn document(
    report: Option<&Report>,
    functions: Option<Functions>,
    blocks: Option<&Annotated>,
) -> Report {
    let mut document = report.cloned().unwrap_or_else(|| Report::new(Source::Imported));
    if let Some(Functions { all, shown }) = functions {
        document.sampled = Some(Sampled {
            event: all.event.clone(),
            skid: all.skid.explain().to_owned(),
            samples: all.samples,
            lost: all.lost,
            notes: all.notes.clone(),
            functions: all.functions.len(),
            ..Sampled::default()
        });
        let rows = shown.iter().filter_map(|i| all.functions.get(*i));
        document.functions = rows.map(FunctionRow::from).collect();
    }
    if let Some(annotated) = blocks {
        let rows = annotated.blocks.iter();
        document.blocks = rows.map(|b| BlockRow::new(&b.block, &annotated.function)).collect();
    }
    document
}

/// Explanation of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Meaning of the node.
    pub meaning: Option<String>,
    /// Usual causes of a high value.
    pub causes: Option<String>,
    /// Next step.
    pub next: Option<String>,
    /// Its formula.
    pub formula: String,
    /// Its threshold.
    pub over: Option<String>,
}

/// Explanations by table and node.
pub type Explanations = HashMap<(String, String), Explanation>;

/// The explanations of all nodes of the tables that `report` uses. A table that `library` lacks has
/// none.
pub fn explain(library: &Library, report: &Report) -> Explanations {
    let mut all = Explanations::new();
    for name in report.uarch.split('+').filter(|n| !n.is_empty()) {
        let Ok(table) = library.load(name) else { continue };
        for (_, node) in table.tree() {
            let text = library.texts().node(&table, &node.id);
            let explanation = Explanation {
                meaning: text.map(|t| t.meaning.to_owned()).filter(|m| !m.is_empty()),
                causes: text.and_then(|t| t.causes).map(str::to_owned),
                next: text.and_then(|t| t.next).map(str::to_owned),
                formula: node.spec.formula.clone(),
                over: node.spec.over.clone(),
            };
            all.insert((name.to_owned(), node.id.to_string()), explanation);
        }
    }
    all
}
