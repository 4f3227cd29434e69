//! `tdtool report`

use crate::cli::Global;
use clap::Args;
use std::process::ExitCode;
use tdtool::{Error, Result};

#[derive(Args)]
pub struct ReportArgs {}

pub fn run(_global: &Global, _args: ReportArgs) -> Result<ExitCode> {
    Err(Error::failed("not written yet"))
}
