//! `tdtool count`: exact counts of chosen functions of a command, by probes.

use super::global::Global;
use super::output::print;
use crate::message;
use clap::{Args, ValueEnum};
use engine::count::{CountAsk, counted};
use engine::render::{count, json};
use pmu::Command;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use tma::{Error, Result};

#[derive(Args)]
pub struct CountArgs {
    /// Functions to count, separated by commas; all of the file by default
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    functions: Vec<String>,
    /// ELF file with the functions, repeatable [default: the command's program]
    #[arg(long, value_name = "FILE")]
    module: Vec<PathBuf>,
    /// Model which branches are mispredicted, from a second run
    #[arg(long)]
    branches: bool,
    /// Run the command once more without probes, for the cost
    #[arg(long)]
    plain: bool,
    /// Also run it twice for access patterns and cache levels of the hot loads
    #[arg(long)]
    loads: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write to FILE instead
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The command
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Callgrind,
}

pub fn run(global: &Global, args: CountArgs) -> Result<ExitCode> {
    let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    // As with `tdtool report`: a text leaves standard output to the command, a document takes it.
    let beside = args.output.is_none() && args.format == Format::Text;
    let stdout_to_stderr = file.is_none() && !beside;
    let ask = CountAsk {
        command: Command { argv: args.command, stdout_to_stderr },
        modules: args.module,
        functions: args.functions,
        plain: args.plain,
        loads: args.loads,
        branches: if args.branches { Some(global.settings()?.core()?) } else { None },
    };
    let (document, code) = counted(&ask)?;
    let text = match args.format {
        Format::Text => count::text(&document),
        Format::Json => json::pretty(&document)?,
        Format::Callgrind => count::callgrind(&document),
    };
    match file {
        Some(path) => std::fs::write(path, text).map_err(|e| {
            Error::failed(format!("cannot write {}", path.display()))
                .because(e)
                .hint("choose another place with --output")
        })?,
        None if beside => message::plain(&text),
        None => print(&text)?,
    }
    Ok(ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)))
}
