//! `tdtool loads`: analyses the load samples of recordings.

use super::files::{page, write_or_print};
use super::options::Format;
use super::recordings::{SearchArgs, present, reading};
use crate::message;
use clap::Args;
use report::render::{json, recorded_loads};
use std::path::PathBuf;
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
pub struct LoadsArgs {
    /// Recordings: perf.data of `perf mem record` or sessions; also of branches
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
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

/// How what is read here is made.
const MAKE: &str = "to record loads: `tdtool record --loads -o FILE -- COMMAND`, or perf mem record; \
                    without a PMU: `tdtool count --loads -- COMMAND`";

pub fn run(args: &LoadsArgs) -> Result<ExitCode> {
    present(&args.files, MAKE)?;
    reading(&args.files, || report(args))
}

fn report(args: &LoadsArgs) -> Result<ExitCode> {
    let search = args.search.paths()?;
    let document = engine::recorded_loads::loads(&args.files, &search)?;
    if matches!(args.format, Format::Csv) {
        // They may say that the recording is damaged.
        document.notes.iter().for_each(|text| message::note(text));
    }
    let text = match args.format {
        Format::Text => recorded_loads::text(&document, args.n, page(args.output.as_deref())),
        Format::Json => json::pretty(&document)?,
        Format::Csv => recorded_loads::csv(&document),
    };
    write_or_print(args.output.as_deref(), &text, &args.files)?;
    Ok(ExitCode::SUCCESS)
}
