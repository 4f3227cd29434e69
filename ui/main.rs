//! The program: arguments → engine calls → text.
//!
//! `cli.rs` names every command and option, `commands/` calls the engine, `tui/` is the interactive
//! drill-down, `failure.rs` turns errors into `error:` / `cause:` / `try:` and an exit status.
//! Nothing here measures or computes.

mod cli;
mod commands;
mod config;
mod failure;
mod slip;
mod tui;
mod width;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => slip::exit(&error),
    };
    match commands::run(cli) {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}
