//! `tdtool doctor`

use crate::cli::Global;
use clap::Args;
use std::process::ExitCode;
use tdtool::{Error, Result};

#[derive(Args)]
pub struct DoctorArgs {}

pub fn run(_global: &Global, _args: DoctorArgs) -> Result<ExitCode> {
    Err(Error::failed("not written yet"))
}
