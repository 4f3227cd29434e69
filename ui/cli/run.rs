//! One file a command: arguments → engine calls → output.

pub mod block;
pub mod deps;
pub mod diff;
pub mod doctor;
pub mod drill;
pub mod kernel;
pub mod measure;
pub mod record;
pub mod report;
pub mod seeds;
pub mod shell;
pub mod tables;
pub mod workload;

use crate::cli::{Cli, Command};
use crate::tui::keymap;
use std::io::Write as _;
use std::process::ExitCode;
use tma::{Error, Result};

/// Runs the command that was asked for.
pub fn run(cli: Cli) -> Result<ExitCode> {
    let Some(command) = cli.command else {
        if let (Some(file), false) = (&cli.file, cli.run.is_empty())
            && let Some(command) = crate::slip::command_like(file)
        {
            return Err(Error::usage(format!("`{}` is no command of tdtool", file.display()))
                .hint(format!("did you mean `tdtool {command} -- …`?")));
        }
        return drill::run(cli);
    };
    let samples = &cli.samples;
    let given = !samples.thread.is_empty() || !samples.symfs.is_empty();
    if cli.file.is_some() || !cli.run.is_empty() || given {
        return Err(Error::usage("a command of tdtool comes first")
            .hint("tdtool report FILE, tdtool FILE, tdtool -- COMMAND; `tdtool --help` has more"));
    }
    match command {
        Command::Report(args) => report::run(&cli.global, args),
        Command::Record(args) => record::run(&cli.global, args),
        Command::Diff(args) => diff::run(&cli.global, args),
        Command::Tables(args) => tables::run(&cli.global, args),
        Command::Workload(args) => workload::run(&cli.global, args),
        Command::Block(args) => block::run(&cli.global, args),
        Command::Kernel(args) => kernel::run(&cli.global, args),
        Command::Deps(args) => deps::run(&cli.global, args),
        Command::Doctor(args) => doctor::run(&cli.global, args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man => shell::man(),
        Command::Keys { toml } => {
            let text = if toml { keymap::template() } else { keymap::markdown() };
            print(&text).map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Writes `text` to standard output; a reader that went away (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::failed("cannot write to standard output").because(e))
        }
        _ => Ok(()),
    }
}

/// A document as indented JSON with a line break at its end.
pub fn to_json(document: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(document);
    text.map(|t| t + "\n").map_err(|e| Error::failed("cannot write JSON").because(e))
}

/// The user's cache directory: `$XDG_CACHE_HOME`, else `~/.cache`.
pub fn cache_folder() -> Option<std::path::PathBuf> {
    let folder = |name: &str| {
        let path = std::path::PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))
}
