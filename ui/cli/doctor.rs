//! `tdtool doctor`: what this machine can measure, what blocks the rest, and the remedy.

use super::files::{page, print};
use super::options::{Global, TextOrJson};
use super::progress::Progress;
use crate::settings::Settings;
use clap::Args;
use engine::doctor::examine;
use report::render::{doctor, json};
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
pub struct DoctorArgs {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    /// Make the self-test again; of former results the best are kept
    #[arg(long)]
    self_test: bool,
    /// Measure facts of the core, beside its table's, for some seconds
    #[arg(long)]
    measure: bool,
    /// Measure, and print the start of a table called NAME
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "mine")]
    toml: Option<String>,
    /// Show all facts of the machine, causes, and each answer of the self-test
    #[arg(short, long)]
    verbose: bool,
}

pub fn run(global: &Global, args: DoctorArgs) -> Result<ExitCode> {
    args.toml.as_deref().map_or(Ok(()), engine::measured::check_name)?;
    let settings = Settings { again: args.self_test, ..global.settings()? };
    let core = settings.core()?;
    if args.measure || args.toml.is_some() {
        let mut progress = Progress::new("measuring the core");
        let mut step = |done: usize, all: usize| progress.show(done, all);
        let facts = engine::measured::measure(&core, settings.cache.as_deref(), &mut step)?;
        progress.end();
        if let Some(name) = &args.toml {
            print(&engine::measured::table(&core, &facts, name)?)?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    engine::measured::load(&core, settings.cache.as_deref());
    let document = examine(settings.machine(), settings.library, settings.uarch.as_deref(), &core)?;
    print(&match args.format {
        TextOrJson::Text => page(None).fitted(doctor::text(&document, args.verbose)),
        TextOrJson::Json => json::pretty(&document)?,
    })?;
    Ok(ExitCode::SUCCESS)
}
