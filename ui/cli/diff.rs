//! `tdtool diff A B`: two JSON reports side by side.

use crate::cli::Global;
use clap::{Args, ValueEnum};
use engine::documents::{Report, SCHEMA, diff};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tma::{Error, Result};

/// Largest report read, in bytes.
const MAX_REPORT: u64 = 256 << 20;

#[derive(Args)]
pub struct DiffArgs {
    /// Report A, written by `tdtool report --format json --output A`
    pub a: PathBuf,
    /// Report B
    pub b: PathBuf,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    pub format: DiffFormat,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum DiffFormat {
    Text,
    Json,
}

pub fn run(global: &Global, args: DiffArgs) -> Result<ExitCode> {
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let (name_a, name_b) = (args.a.display().to_string(), args.b.display().to_string());
    let compared = diff::diff((&name_a, &a), (&name_b, &b));
    let text = match args.format {
        DiffFormat::Text => diff::render(&compared, global.ascii),
        DiffFormat::Json => super::to_json(&compared)?,
    };
    super::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a report document; of several (one a line, from `--interval`), the last.
fn read(path: &Path) -> Result<Report> {
    let cannot = |e: &dyn std::fmt::Display| {
        Error::failed(format!("cannot read the report {}", path.display()))
            .because(e)
            .hint("write one with `tdtool report --format json --output FILE -- CMD`")
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|e| cannot(&e))?;
    file.take(MAX_REPORT).read_to_end(&mut bytes).map_err(|e| cannot(&e))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        let name = path.display();
        Error::usage(format!("{name} is no report in JSON"))
            .because("diff compares the documents of `tdtool report --format json`")
            .hint(format!(
                "of a session or perf.data: tdtool report {name} --format json --output {name}.json"
            ))
    })?;
    let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
    let mut last = None;
    for document in &mut documents {
        last = Some(document.map_err(|e| cannot(&e))?);
    }
    let value = last.ok_or_else(|| cannot(&"the file is empty"))?;
    let schema = value.get("schema").and_then(|s| s.as_str()).unwrap_or("none").to_owned();
    if schema != SCHEMA {
        return Err(cannot(&format!("its schema is `{schema}`, not `{SCHEMA}`")));
    }
    serde_json::from_value(value).map_err(|e| cannot(&e))
}
