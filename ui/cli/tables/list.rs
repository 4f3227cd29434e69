//! `tdtool tables list`

use crate::cli::global::Global;
use crate::cli::output::print_text;
use pmu::machine::choose;
use report::render::tables;
use std::process::ExitCode;
use tma::Result;

pub fn run(global: &Global) -> Result<ExitCode> {
    let settings = global.settings()?;
    let library = settings.library;
    // A table that cannot be read has its error in its own line.
    let here = choose(settings.machine(), library, None).unwrap_or_default();
    print_text(tables::list(library, &here))?;
    Ok(ExitCode::SUCCESS)
}
