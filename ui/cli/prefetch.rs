//! `tdtool prefetch`: where a software prefetch helps, and how far ahead.

use super::global::Global;
use super::output::print;
use clap::{Args, ValueEnum};
use engine::render::{json, prefetch};
use profile::files::SearchPaths;
use std::path::PathBuf;
use std::process::ExitCode;
use tma::{Error, Result};

#[derive(Args)]
pub struct PrefetchArgs {
    /// Recordings of branch stacks and of loads (`perf record -b`, `perf mem`)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Look for the recorded binaries under DIR first; repeatable
    #[arg(long, value_name = "DIR")]
    symfs: Vec<PathBuf>,
    /// A recorded program, known by its build-id or file name; repeatable
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Show N loads as text
    #[arg(short, value_name = "N", default_value = "10")]
    n: usize,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write to FILE instead
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
}

pub fn run(global: &Global, args: &PrefetchArgs) -> Result<ExitCode> {
    let search = SearchPaths {
        roots: args.symfs.clone(),
        programs: args.binary.clone(),
        ..SearchPaths::default()
    };
    let document = engine::prefetch::prefetch(&args.files, &search, None)?;
    let text = match args.format {
        Format::Text => prefetch::text(&document, args.n, global.settings()?.ascii),
        Format::Json => json::pretty(&document)?,
        Format::Csv => prefetch::csv(&document),
    };
    match args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        Some(path) => std::fs::write(path, text).map_err(|e| {
            Error::failed(format!("cannot write {}", path.display()))
                .because(e)
                .hint("choose another place with --output")
        })?,
        None => print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}
