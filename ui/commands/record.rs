//! `tdtool record`: measure, and keep the counts in a session file.

use crate::cli::Global;
use crate::commands::measure::{MeasureArgs, status, tell_blocked, usage};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tdtool::Result;
use tdtool::analysis::{LiveAsk, Update, record};
use tdtool::machine::Machine;
use tdtool::report::text::{Style, render};

#[derive(Args)]
pub struct RecordArgs {
    /// The command to run and measure
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// The session file
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Write what was counted every MS milliseconds: a crash loses no more than that
    #[arg(short = 'I', long, value_name = "MS", default_value = "1000", value_parser = clap::value_parser!(u64).range(10..), help_heading = "How to measure")]
    pub interval: u64,
}

#[allow(clippy::print_stderr)]
pub fn run(global: &Global, args: RecordArgs) -> Result<ExitCode> {
    args.measure.check()?;
    if args.measure.targets() == 0 && args.command.is_empty() {
        return Err(usage("nothing to record", "tdtool record -o FILE -- COMMAND, or -p PID, -a"));
    }
    let library = global.library()?;
    let machine = Machine::detect();
    let ask = LiveAsk {
        interval: Some(Duration::from_millis(args.interval)),
        ..args.measure.live(global, &args.command, false)?
    };
    let recorded = record(&machine, &library, &ask, &args.output, &mut |update| {
        if let Update::Interrupted(_) = update {
            eprintln!("note:  interrupted; what was measured is kept");
        }
    })?;
    let outcome = recorded.outcome;
    tell_blocked(&outcome);
    let file = args.output.display();
    match recorded.failed {
        None => {
            eprintln!("note:  the session is in {file}; `tdtool report {file}` shows it");
            Ok(ExitCode::from(status(&outcome)))
        }
        Some(error) => {
            // The session lacks it, so it is shown here.
            let style = Style { ascii: global.ascii, ..Style::default() };
            super::print(&render(&outcome.report, &style))?;
            Err(error)
        }
    }
}
