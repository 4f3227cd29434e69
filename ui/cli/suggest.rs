//! Mistakes on the command line: a mistyped command, an option that belongs to `tdtool report`.

use super::arguments::Arguments;
use crate::{message, terminal};
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use report::format;
use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::path::Path;

/// The tdtool command that `word` nearly is, if no file has that name, as it is to be written.
pub fn command_like(word: &Path) -> Option<String> {
    let word = word.to_str().filter(|_| !word.exists())?;
    let command = Arguments::command();
    let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
    let names: Vec<&str> = visible.map(clap::Command::get_name).collect();
    let begun: Vec<&str> = names.iter().copied().filter(|name| name.starts_with(word)).collect();
    let near = match begun.as_slice() {
        [only] if word.len() > 1 => only,
        _ => tma::error::nearest(word, names)?,
    };
    let measures = |c: &clap::Command| c.get_arguments().any(is_command);
    let program =
        if command.find_subcommand(near).is_some_and(measures) { " -- COMMAND" } else { "" };
    Some(format!("{near}{program}"))
}

/// Whether an argument is a command to measure, not the arguments of a block's program.
fn is_command(argument: &clap::Arg) -> bool {
    let names = argument.get_value_names().unwrap_or_default();
    argument.is_last_set() && names.iter().any(|name| name == "CMD")
}

/// Exits as clap does; for arguments that no command or another command has, with a remedy instead.
pub fn exit(mut error: clap::Error) -> ! {
    if let Some((what, remedy)) = unknown(&error) {
        message::print("error", &what, None, Some(&remedy));
        std::process::exit(2);
    }
    if !error.use_stderr() {
        error.exit();
    }
    // clap repeats what was typed as it is, line ends, too.
    let typed: Vec<_> =
        error.context().filter_map(|(kind, value)| Some((kind, plain(value)?))).collect();
    for (kind, value) in typed {
        error.insert(kind, value);
    }
    let text = error.render();
    match std::io::stderr().is_terminal() && terminal::allows_color() {
        true => message::plain(&tma::text::coloured(&text.ansi().to_string())),
        false => message::plain(&tma::text::lines(&text.to_string())),
    }
    std::process::exit(error.exit_code());
}

/// A text without control characters, if it has any.
fn plain(value: &ContextValue) -> Option<ContextValue> {
    match value {
        ContextValue::String(typed) => match tma::text::name(typed) {
            Cow::Owned(shown) => Some(ContextValue::String(shown)),
            Cow::Borrowed(_) => None,
        },
        _ => None,
    }
}

/// Cause and remedy of an argument that clap does not know; `None` where clap says it as well.
fn unknown(error: &clap::Error) -> Option<(String, String)> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|w| w.to_string_lossy().into_owned()).collect();
    let first = words.first()?;
    let program = Arguments::command();
    let command = program.find_subcommand(first).filter(|c| !c.has_subcommands());
    match (command, unknown.starts_with('-')) {
        (Some(command), true) => {
            let what = format!("`tdtool {}` has no option `{unknown}`", command.get_name());
            Some((what, other_command(&program, command, unknown)))
        }
        (Some(command), false) => {
            command.get_arguments().any(is_command).then_some(())?;
            let mut at = words.iter().rposition(|w| w == unknown)?;
            // `tdtool report ./program 1`: the word before is the program, not a recording.
            let takes_file = command.get_positionals().any(|p| !p.is_last_set());
            at -= usize::from(takes_file && at > 1 && !words[at - 1].starts_with('-'));
            let (before, after) = (format::command(&words[..at]), format::command(&words[at..]));
            let what = format!("`tdtool {}` does not expect `{unknown}`", command.get_name());
            let remedy =
                format!("put `--` before the program to measure: `tdtool {before} -- {after}`");
            Some((what, remedy))
        }
        (None, true) if first.starts_with('-') && first.starts_with(unknown.as_str()) => {
            has(program.find_subcommand("report")?, unknown).then_some(())?;
            let what = format!("`{unknown}` is an option of a command, and no command is given");
            Some((what, format!("tdtool report {}", format::command(&words))))
        }
        (None, false) if !first.starts_with('-') && program.find_subcommand(first).is_none() => {
            let remedy =
                format!("to measure a program: `tdtool report -- {}`", format::command(&words));
            Some((format!("`{first}` is not a tdtool command"), remedy))
        }
        _ => None,
    }
}

/// The commands that have `option`, or where to read on.
fn other_command(program: &clap::Command, command: &clap::Command, option: &str) -> String {
    let others = program.get_subcommands().filter(|other| has(other, option));
    let others: Vec<String> = others.map(|o| format!("`tdtool {}`", o.get_name())).collect();
    let long = command.get_arguments().filter_map(clap::Arg::get_long);
    match (others.as_slice(), tma::error::nearest(option.trim_start_matches('-'), long)) {
        ([], Some(near)) => format!("did you mean `--{near}`?"),
        ([], None) => format!("`tdtool {} --help` lists its options", command.get_name()),
        (others, _) => format!("`{option}` is an option of {}", others.join(" and ")),
    }
}

/// Whether `command` has `option`.
fn has(command: &clap::Command, option: &str) -> bool {
    command.get_arguments().any(|argument| {
        argument.get_short().is_some_and(|short| option == format!("-{short}"))
            || argument.get_long().is_some_and(|long| option == format!("--{long}"))
    })
}
