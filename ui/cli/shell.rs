//! `tdtool completions SHELL` and `tdtool man`: for packagers, from the options' own definition.

use crate::cli::Cli;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use std::process::ExitCode;
use tma::{Error, Result};

#[derive(Args)]
pub struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    pub shell: Shell,
}

/// Prints the completion script.
pub fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tdtool", &mut script);
    super::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page.
pub fn man() -> Result<ExitCode> {
    let mut page = Vec::new();
    let page_of = clap_mangen::Man::new(Cli::command());
    page_of
        .render(&mut page)
        .map_err(|e| Error::failed("cannot make the manual page").because(e))?;
    super::print(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}
