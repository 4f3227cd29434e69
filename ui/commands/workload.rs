//! `tdtool workload list|run`

use crate::cli::Global;
use clap::Args;
use std::process::ExitCode;
use tdtool::{Error, Result};

#[derive(Args)]
pub struct WorkloadArgs {}

pub fn run(_global: &Global, _args: WorkloadArgs) -> Result<ExitCode> {
    Err(Error::failed("not written yet"))
}
