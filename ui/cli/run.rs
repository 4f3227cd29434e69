//! From the command line to its command.

use super::arguments::{Arguments, Command};
use super::output::print;
use super::quoted::quoted;
use super::{
    bench, block, branches, count, deps, diff, doctor, drill, loads, microbench, prefetch, record,
    report, shell, suggest, tables, workload,
};
use crate::settings::Next;
use crate::{config, keymap, terminal};
use clap::{CommandFactory as _, Parser as _};
use std::ffi::OsString;
use std::process::ExitCode;
use tma::{Error, Result};

/// Set by tests of printed commands, which a debug build has: the command line is parsed and checked, and not carried out.
const CHECK_ONLY: &str = "TDTOOL_CHECK_ONLY";

/// Parses the command line and carries it out; exits on `--help`, `--version` and wrong usage.
///
/// # Errors
/// The command failed.
pub fn run() -> Result<Next> {
    let mut arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => suggest::exit(error),
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
        && let Some(command) = suggest::command_like(file)
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
        return drill::open(arguments);
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
        Command::Tables(args) => tables::run(global, args),
        Command::Workload(args) => workload::run(args),
        Command::Microbench(args) => microbench::run(global, args),
        Command::Deps(args) => deps::run(global, args),
        Command::Doctor(args) => doctor::run(global, args),
        Command::Completions { shell } => shell::completions(Arguments::command(), shell),
        Command::Man => shell::man(Arguments::command()),
        Command::Keys { toml } => {
            let text = if toml { keymap::template() } else { keymap::markdown() };
            print(&text).map(|()| ExitCode::SUCCESS)
        }
    };
    code.map(Next::Exit)
}
