//! `tdtool completions SHELL` and `tdtool man`: for packagers, from the definition of the options.

use super::output::print;
use clap_complete::Shell;
use std::process::ExitCode;
use tma::{Error, Result};

/// Prints the completion script for `shell`.
pub fn completions(mut command: clap::Command, shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "tdtool", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page.
pub fn man(command: clap::Command) -> Result<ExitCode> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|e| Error::failed("cannot make the manual page").because(e))?;
    print(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}
