//! `tdtool report --regions`: the regions that a command marks.

use super::arguments::{Format, ReportArgs};
use crate::cli::measure::usage;
use crate::cli::output::print;
use crate::message;
use engine::files::write_whole;
use engine::regions::{RegionsAsk, regions};
use engine::render::{json, regions as text};
use pmu::Command;
use std::process::ExitCode;
use tma::Result;

/// Runs the command with its markers probed.
pub fn run(args: &ReportArgs) -> Result<ExitCode> {
    if args.command.is_empty() || args.measure.targets() > 0 || !args.files().is_empty() {
        return Err(usage(
            "--regions follows the markers of a command from its start",
            "tdtool report --regions -- COMMAND",
        ));
    }
    if args.format == Format::Csv {
        return Err(usage("--regions has no CSV", "--format text or json"));
    }
    let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    // As elsewhere: a text leaves standard output to the command, a document takes it.
    let beside = args.output.is_none() && args.format == Format::Text;
    let stdout_to_stderr = file.is_none() && !beside;
    let command = Command { argv: args.command.clone(), stdout_to_stderr };
    let (document, code) =
        regions(&RegionsAsk { command, modules: args.module.clone(), named: args.region.clone() })?;
    let text = match args.format {
        Format::Json => json::pretty(&document)?,
        _ => text::text(&document),
    };
    match file {
        Some(path) => write_whole(path, text.as_bytes(), &[], "--output")?,
        None if beside => message::plain(&tma::text::lines(&text)),
        None => print(&text)?,
    }
    Ok(ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)))
}
