//! `tdtool report --regions`: the regions that a command or process marks.

use super::arguments::{Format, ReportArgs};
use super::estimate_ask::estimate_ask;
use crate::cli::measure::usage;
use crate::cli::output::print;
use crate::message;
use crate::settings::Settings;
use engine::regions::{Followed, RegionsAsk, TreesAsk, regions};
use pmu::Command;
use report::files::write_whole;
use report::render::{json, regions as text};
use std::process::ExitCode;
use std::time::Duration;
use tma::Result;

/// Refuses contradictory options.
pub fn check(args: &ReportArgs) -> Result<()> {
    if args.format == Format::Csv {
        return Err(usage("--regions has no CSV", "--format text or json"));
    }
    args.measure.check()?;
    followed(args, false).map(drop)
}

/// Runs the command, or watches the process, with its markers probed.
pub fn run(args: &ReportArgs, settings: &Settings) -> Result<ExitCode> {
    let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let of = followed(args, file.is_some())?;
    // As elsewhere: a text leaves standard output to the command, a document takes it.
    let beside =
        matches!(of, Followed::Command(_)) && args.output.is_none() && args.format == Format::Text;
    let ask = RegionsAsk { of, modules: args.module.clone(), named: args.region.clone() };
    let trees = if args.code.no_code { None } else { Some(trees(args, settings, &ask.of)?) };
    let (document, code) = regions(&ask, trees.as_ref(), &mut |_, _| {})?;
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

/// With what a tree per region is measured, or estimated.
fn trees<'a>(args: &ReportArgs, settings: &'a Settings, of: &Followed) -> Result<TreesAsk<'a>> {
    let estimate = args.code.estimate.then(|| match of {
        Followed::Process(..) => Err(usage(
            "--estimate of regions needs a command to run again",
            "`tdtool report --regions --estimate -- COMMAND`",
        )),
        Followed::Command(_) => estimate_ask(settings, of),
    });
    let estimate = estimate.transpose()?;
    Ok(TreesAsk {
        machine: settings.machine(),
        library: settings.library,
        live: args.live(settings)?,
        estimate,
        search: args.code.search.paths()?,
    })
}

/// The command or process; `to_file`: the document goes to a file.
fn followed(args: &ReportArgs, to_file: bool) -> Result<Followed> {
    let none = args.files().is_empty();
    match (args.measure.pid, args.measure.targets(), args.command.is_empty()) {
        (Some(pid), 1, true) if none => {
            let window = args.measure.duration.map_or(Duration::MAX, Duration::from_secs_f64);
            Ok(Followed::Process(pid, window))
        }
        (None, 0, false) if none && args.measure.duration.is_none() => {
            let beside = args.output.is_none() && args.format == Format::Text;
            let stdout_to_stderr = !to_file && !beside;
            Ok(Followed::Command(Command { argv: args.command.clone(), stdout_to_stderr }))
        }
        _ => Err(usage(
            "--regions follows the markers of a command from start to end, or of a process",
            "`tdtool report --regions -- COMMAND` or `tdtool report --regions -p PID --duration S`",
        )),
    }
}
