//! `tdtool report`

use crate::cli::Global;
use clap::Args;
use std::process::ExitCode;
use tdtool::{Error, Result};

#[derive(Args)]
pub struct ReportArgs {}

pub fn run(global: &Global, _args: ReportArgs) -> Result<ExitCode> {
    global.library()?;
    Err(Error::failed("not written yet"))
}
