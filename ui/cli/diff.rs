//! `tdtool diff A B`: two JSON reports compared.

use super::global::Global;
use super::output::print;
use clap::{Args, ValueEnum};
use engine::documents::{diff, report_file};
use engine::render::{diff as render, json};
use std::path::PathBuf;
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
pub struct DiffArgs {
    /// Report A, from `tdtool report --format json --output A`
    a: PathBuf,
    /// Report B
    b: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub fn run(global: &Global, args: DiffArgs) -> Result<ExitCode> {
    let (a, b) = (report_file::read(&args.a)?, report_file::read(&args.b)?);
    let (name_a, name_b) = (args.a.display().to_string(), args.b.display().to_string());
    let compared = diff::diff((&name_a, &a), (&name_b, &b));
    print(&match args.format {
        Format::Text => render::render(&compared, global.ascii),
        Format::Json => json::pretty(&compared)?,
    })?;
    Ok(ExitCode::SUCCESS)
}
