//! `tdtool loads`: what the load samples of recordings tell.

use super::output::print;
use clap::{Args, ValueEnum};
use engine::files::write_whole;
use engine::render::{json, recorded_loads};
use profile::files::SearchPaths;
use std::path::PathBuf;
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
pub struct LoadsArgs {
    /// Recordings: perf.data of `perf mem record` or sessions; also of branches
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Look for the recorded binaries under DIR first; repeatable
    #[arg(long, value_name = "DIR")]
    symfs: Vec<PathBuf>,
    /// A recorded program, known by its build-id or file name; repeatable
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Show N rows of each table as text
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

pub fn run(args: &LoadsArgs) -> Result<ExitCode> {
    let search = SearchPaths {
        roots: args.symfs.clone(),
        programs: args.binary.clone(),
        ..SearchPaths::default()
    };
    let document = engine::recorded_loads::loads(&args.files, &search)?;
    let text = match args.format {
        Format::Text => recorded_loads::text(&document, args.n),
        Format::Json => json::pretty(&document)?,
        Format::Csv => recorded_loads::csv(&document),
    };
    match args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        Some(path) => write_whole(path, text.as_bytes(), &args.files, "--output")?,
        None => print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}
