//! Mistakes on the command line: a mistyped command, an option that belongs to `tdtool report`.

use super::arguments::Arguments;
use crate::message;
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::Path;

/// The tdtool command that `word` nearly is, if no file has that name.
pub fn command_like(word: &Path) -> Option<String> {
    let word = word.to_str().filter(|_| !word.exists())?;
    let command = Arguments::command();
    let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
    let names: Vec<&str> = visible.map(clap::Command::get_name).collect();
    tma::error::nearest(word, names).map(str::to_owned)
}

/// Exits as clap does; for an option of `tdtool report` without a command, with that remedy instead.
pub fn exit(error: &clap::Error) -> ! {
    if let Some(option) = option_of_report(error) {
        let what = format!("`{option}` is an option of a command, and no command is given");
        message::print("error", &what, None, Some(&format!("tdtool report {option}")));
        std::process::exit(2);
    }
    error.exit()
}

/// The unknown option, if nothing but options came before it and `tdtool report` has it.
fn option_of_report(error: &clap::Error) -> Option<String> {
    let first = std::env::args().nth(1)?;
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let command = Arguments::command();
    let report = command.find_subcommand("report")?;
    let known = report.get_arguments().any(|argument| {
        argument.get_short().is_some_and(|short| *option == format!("-{short}"))
            || argument.get_long().is_some_and(|long| *option == format!("--{long}"))
    });
    (known && first == *option).then(|| option.clone())
}
