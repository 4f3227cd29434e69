//! `tdtool`, `tdtool FILE`, `tdtool -- CMD`: the interactive drill-down. Where standard output is no
//! terminal, the same words mean `tdtool report`.

use crate::cli::Cli;
use crate::tui::{self, Samples, Source};
use clap::Parser;
use profile::symbols::Search;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use tma::{Error, Result};

/// Shows it, or reports.
pub fn run(cli: Cli) -> Result<ExitCode> {
    if !is_interactive() {
        if cli.file.is_none() && cli.run.is_empty() {
            return Err(Error::usage("there is no terminal to draw on, and nothing to report on")
                .because("without a terminal `tdtool` is `tdtool report`, which needs a recording or a command")
                .hint("tdtool FILE, tdtool -- COMMAND, or tdtool report -a --duration 5"));
        }
        let mut words: Vec<OsString> = std::env::args_os().collect();
        words.insert(1.min(words.len()), "report".into());
        return super::run(Cli::parse_from(words));
    }
    let search = Search { roots: cli.samples.symfs, ..Search::default() };
    let samples = Samples { threads: cli.samples.thread, search };
    let source = match (cli.file, cli.run.is_empty()) {
        (Some(_), false) => {
            return Err(Error::usage("recorded counts and a command exclude one another")
                .hint("leave out the file, or the command"));
        }
        (Some(file), true) => {
            readable(&file)?;
            Source::File(file, samples)
        }
        (None, false) => Source::Command(cli.run, samples),
        (None, true) => Source::System,
    };
    tui::run(&cli.global, &source)
}

/// A terminal that can be drawn on, and keys that can be read: from standard input, or else from the
/// terminal that the program belongs to.
pub fn is_interactive() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    let keys = || std::io::stdin().is_terminal() || std::fs::File::open("/dev/tty").is_ok();
    std::io::stdout().is_terminal() && !dumb && keys()
}

/// A name that is neither a file nor a command is told before the screen opens.
fn readable(file: &Path) -> Result<()> {
    let error = match std::fs::metadata(file) {
        Ok(meta) if meta.is_dir() => Error::failed(format!("{} is a folder", file.display()))
            .hint("give a session, a perf.data file, or recorded counts"),
        Ok(_) => return Ok(()),
        Err(e) => Error::failed(format!("cannot open {}", file.display()))
            .because(e)
            .hint("it is no command of tdtool either; `tdtool --help` names them"),
    };
    Err(error)
}
