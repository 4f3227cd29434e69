//! `tdtool count`: exact counts of chosen functions of a command or a live process, by probes.

use super::output::print;
use crate::message;
use clap::{Args, ValueEnum};
use engine::count::{CountAsk, counted};
use engine::render::{count, json};
use pmu::Command;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tma::{Error, Result};

#[derive(Args)]
pub struct CountArgs {
    /// Functions to count, separated by commas; all of the file by default
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    functions: Vec<String>,
    /// ELF file with the functions, repeatable [default: the program's own]
    #[arg(long, value_name = "FILE")]
    module: Vec<PathBuf>,
    /// Run the command once more without probes, for the cost
    #[arg(long)]
    plain: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write to FILE instead
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Count a running process for a while instead of a command
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["command", "plain"])]
    pid: Option<i32>,
    /// With -p: for how many seconds
    #[arg(long, value_name = "N", default_value = "1", requires = "pid", value_parser = seconds)]
    seconds: Duration,
    /// The command
    #[arg(last = true, required_unless_present = "pid", value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Callgrind,
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|s| *s > 0.0 && *s <= 86400.0);
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "seconds are above 0 and at most 86400".to_owned())
}

pub fn run(args: CountArgs) -> Result<ExitCode> {
    let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    // As with `tdtool report`: a text leaves standard output to the command, a document takes it.
    let beside = args.output.is_none() && args.format == Format::Text;
    let stdout_to_stderr = file.is_none() && !beside;
    let ask = CountAsk {
        command: Command { argv: args.command, stdout_to_stderr },
        process: args.pid.map(|pid| (pid, args.seconds)),
        modules: args.module,
        functions: args.functions,
        plain: args.plain,
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
