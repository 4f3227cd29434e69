//! `tdtool tables list|show|check|plan|eval`

use crate::cli::Global;
use clap::Args;
use std::process::ExitCode;
use tdtool::{Error, Result};

#[derive(Args)]
pub struct TablesArgs {}

pub fn run(_global: &Global, _args: TablesArgs) -> Result<ExitCode> {
    Err(Error::failed("not written yet"))
}
