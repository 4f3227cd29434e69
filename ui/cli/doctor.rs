//! `tdtool doctor`: what this machine can measure, what blocks the rest, and the remedy.

use super::global::Global;
use super::output::{page, print};
use clap::{Args, ValueEnum};
use engine::documents::doctor::examine;
use engine::render::{doctor, json};
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
pub struct DoctorArgs {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Make the self-test again; of former results the best are kept
    #[arg(long)]
    self_test: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub fn run(global: &Global, args: DoctorArgs) -> Result<ExitCode> {
    let settings = global.settings()?;
    if args.self_test {
        settings.core()?.self_test.make_again();
    }
    let document = examine(
        settings.machine(),
        settings.library,
        settings.uarch.as_deref(),
        &settings.core()?,
    )?;
    print(&match args.format {
        Format::Text => page(None).fitted(doctor::text(&document)),
        Format::Json => json::pretty(&document)?,
    })?;
    Ok(ExitCode::SUCCESS)
}
