//! The program: arguments → engine calls → text, or the interactive drill-down.
//!
//! `cli/` has every command and its options, `tui/` the drill-down; neither knows the other. What both
//! need lies beside them: settings, config file and keys, messages and exit statuses, the terminal.
//! Nothing here measures or computes.

mod cli;
mod config;
mod keymap;
mod message;
mod settings;
mod terminal;
mod tui;

use nix::sys::signal::{SigSet, Signal};
use settings::Next;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A file at its size limit (ulimit -f) is an error like a full disk, not the end of this process.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    let ended = cli::run().and_then(|next| match next {
        Next::Exit(code) => Ok(code),
        Next::DrillDown(settings, subject) => tui::run(*settings, &subject),
    });
    ended.unwrap_or_else(|error| message::error(&error))
}
