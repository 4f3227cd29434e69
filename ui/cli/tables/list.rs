//! `tdtool tables list`

use crate::cli::global::Global;
use crate::cli::output::print;
use engine::render::tables;
use pmu::machine::{Machine, choose};
use std::process::ExitCode;
use tma::Result;

pub fn run(global: &Global) -> Result<ExitCode> {
    let library = global.settings()?.library;
    // A table that cannot be read has its error in its own line.
    let here = choose(&Machine::detect(), &library, None).unwrap_or_default();
    print(&tables::list(&library, &here))?;
    Ok(ExitCode::SUCCESS)
}
