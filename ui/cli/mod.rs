//! The command line: one file or folder per command, each arguments → engine calls → output. This file parses the
//! command line and carries it out; without a command it opens the drill-down.
//!
//! | file | concern |
//! |---|---|
//! | `arguments` | every command; mistyped commands and misplaced options |
//! | `options` | the options that all take; what is wrong with a value of one |
//! | `measure` | what `report` and `record` share |
//! | `code` | blocks and initial values named on the command line |
//! | `recordings` | recordings that commands read, and where their programs are looked for |
//! | `files` | files and standard streams, read and written |
//! | `progress` | progress of something long |
//! | `redirected` | standard output, which goes elsewhere for a while |
//! | `apply` | `prefetch --apply` |
//! | `serve` | metrics over HTTP |

mod apply;
mod arguments;
mod bench;
mod block;
mod branches;
mod code;
mod count;
mod deps;
mod diff;
mod doctor;
mod export;
mod files;
mod loads;
mod measure;
mod microbench;
mod options;
mod pgo;
mod pgo_try;
mod prefetch;
mod progress;
mod record;
mod recordings;
mod redirected;
mod report;
mod serve;
mod tables;
mod workload;

use crate::settings::{Next, Samples, Subject};
use crate::{config, keymap, terminal};
use ::report::documents::count::Count;
use arguments::{Arguments, Command};
use clap::{CommandFactory as _, Parser as _};
use clap_complete::Shell;
use files::print;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use tma::shell::quoted;
use tma::{Error, Result};

/// Set by tests of printed commands, which a debug build has: the command line is parsed and checked, and not carried out.
const CHECK_ONLY: &str = "TDTOOL_CHECK_ONLY";

/// Parses the command line and carries it out; exits on `--help`, `--version` and wrong usage.
pub fn run() -> Result<Next> {
    let mut arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => arguments::exit_as_wrong(error),
    };
    if cfg!(debug_assertions) && std::env::var_os(CHECK_ONLY).is_some() {
        let checked = arguments.command.as_ref().map_or(Ok(()), check);
        return checked.map(|()| Next::Exit(ExitCode::SUCCESS));
    }
    arguments.global.ascii |= terminal::is_ascii_locale();
    match arguments.command {
        Some(_) => command(arguments),
        None => without_command(arguments),
    }
}

/// `tdtool`, `tdtool FILE`, `tdtool -- CMD`: the drill-down on a terminal; elsewhere `tdtool report`, or
/// of two files `tdtool diff`.
fn without_command(arguments: Arguments) -> Result<Next> {
    if let Some(file) = &arguments.file
        && let Some(command) = arguments::command_like(file)
    {
        let more = quoted(&arguments.run);
        let whole = if more.is_empty() { command } else { command.replace("COMMAND", &more) };
        return Err(Error::usage(format!("`{}` is not a tdtool command", file.display()))
            .hint(format!("did you mean `tdtool {whole}`?")));
    }
    if let (Some(file), false) = (&arguments.file, arguments.run.is_empty())
        && !file.exists()
    {
        return Err(Error::usage(format!("`{}` is not a tdtool command", file.display()))
            .because("there is no recording of that name either")
            .hint(
                "to measure a program: `tdtool report -- COMMAND`; `tdtool --help` lists commands",
            ));
    }
    if let (Some(file), Some(other)) = (&arguments.file, &arguments.against)
        && let Some(absent) = [file, other].into_iter().find(|one| !one.exists())
    {
        let words = quoted(&[file, other]);
        return Err(Error::usage(format!("there is no recording `{}`", absent.display()))
            .because("two words are two recordings to compare")
            .hint(format!("to measure a program: `tdtool report -- {words}`")));
    }
    if terminal::is_interactive() {
        return drill_down(arguments);
    }
    if arguments.file.is_none() && arguments.run.is_empty() && arguments.pid.is_none() {
        return Err(Error::usage("there is no terminal to draw on, and nothing to report on")
            .because("without a terminal `tdtool` is `tdtool report`, which needs a recording or a command")
            .hint("`tdtool report FILE`, `tdtool report -- COMMAND` or `tdtool report -a --duration 5`"));
    }
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let name = if arguments.against.is_some() { "diff" } else { "report" };
    words.insert(1.min(words.len()), name.into());
    let mut again = Arguments::parse_from(words);
    again.global.ascii = arguments.global.ascii;
    command(again)
}

/// Refuses options that contradict one another, before anything is done.
fn check(command: &Command) -> Result<()> {
    match command {
        Command::Report(args) => report::check(args),
        Command::Record(args) => args.check(),
        Command::Bench(args) => args.check(),
        Command::Diff(args) => args.check(),
        Command::Count(args) => args.check(),
        Command::Serve(args) => args.check(),
        _ => Ok(()),
    }
}

fn command(arguments: Arguments) -> Result<Next> {
    let samples = &arguments.samples;
    let given = !samples.thread.is_empty() || samples.search.is_given() || arguments.pid.is_some();
    if arguments.file.is_some() || !arguments.run.is_empty() || given {
        return Err(Error::usage("the tdtool command must come first").hint(
            "`tdtool report FILE`, `tdtool FILE` or `tdtool -- COMMAND`; see `tdtool --help`",
        ));
    }
    let global = &arguments.global;
    if global.config.is_some() {
        // Also where nothing is drilled into: a wrong name is not to go unseen.
        config::load(global.config.as_deref())?;
    }
    let Some(command) = arguments.command else { return Ok(Next::Exit(ExitCode::SUCCESS)) };
    check(&command)?;
    let code = match command {
        Command::Block(args) => return block::run(global, *args),
        Command::Report(args) => report::run(global, *args),
        Command::Record(args) => record::run(global, args),
        Command::Bench(args) => bench::run(global, &args),
        Command::Diff(args) => diff::run(global, args),
        Command::Count(args) => count::run(global, args),
        Command::Branches(args) => branches::run(&args),
        Command::Loads(args) => loads::run(&args),
        Command::Prefetch(args) => prefetch::run(global, &args),
        Command::Pgo(args) => pgo::run(global, &args),
        Command::Export(args) => export::run(global, &args),
        Command::Serve(args) => serve::run(global, args),
        Command::Tables(args) => tables::run(global, args),
        Command::Workload(args) => workload::run(args),
        Command::Microbench(args) => microbench::run(global, args),
        Command::Deps(args) => deps::run(global, args),
        Command::Doctor(args) => doctor::run(global, args),
        Command::Completions { shell } => completions(Arguments::command(), shell),
        Command::Man => man(Arguments::command()),
        Command::Keys { toml } => {
            let text = if toml { keymap::template() } else { keymap::markdown() };
            print(&text).map(|()| ExitCode::SUCCESS)
        }
    };
    code.map(Next::Exit)
}

/// Subject that the drill-down opens on.
pub fn drill_down(arguments: Arguments) -> Result<Next> {
    let search = arguments.samples.search.paths()?;
    let counts = arguments.counts.as_deref().map(Count::read).transpose()?.map(Box::new);
    let samples = Samples { threads: arguments.samples.thread, search, counts };
    let subject = match (arguments.file, arguments.run.is_empty()) {
        (Some(_), false) => {
            return Err(Error::usage("a recording and a command exclude each other")
                .hint("leave out the file or the command"));
        }
        (Some(_), _) | (_, false) if arguments.pid.is_some() => {
            return Err(Error::usage("-p excludes a recording and a command")
                .hint("leave out -p, or what is to be opened or run"));
        }
        (Some(file), true) => {
            readable(&file)?;
            if let Some(other) = arguments.against {
                readable(&other)?;
                let settings = Box::new(arguments.global.settings()?);
                return Ok(Next::DrillDown(settings, Subject::Pair(file, other, samples)));
            }
            Subject::File(file, samples)
        }
        (None, false) => Subject::Command(arguments.run, samples),
        (None, true) => match arguments.pid {
            Some(pid) => Subject::Process(pid, samples),
            None => Subject::System,
        },
    };
    Ok(Next::DrillDown(Box::new(arguments.global.settings()?), subject))
}

/// Whether there is a file to open, checked before the screen changes.
fn readable(file: &Path) -> Result<()> {
    let error = match std::fs::metadata(file) {
        Ok(meta) if meta.is_dir() && !file.join("data").is_file() => {
            Error::failed(format!("{} is a directory", file.display()))
                .hint("give a session, a perf.data file, or recorded counts")
        }
        Ok(_) => return Ok(()),
        Err(e) => Error::failed(format!("cannot open {}", file.display()))
            .because(e)
            .hint("`tdtool --help` lists the commands"),
    };
    Err(error)
}

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
