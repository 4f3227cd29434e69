//! `tdtool diff A B`

use crate::cli::Global;
use clap::Args;
use std::process::ExitCode;
use tdtool::{Error, Result};

#[derive(Args)]
pub struct DiffArgs {}

pub fn run(_global: &Global, _args: DiffArgs) -> Result<ExitCode> {
    Err(Error::failed("not written yet"))
}
