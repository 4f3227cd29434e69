//! `tdtool bench A -- B`: two commands run alternately and compared.

use super::diff::FormArgs;
use super::measure::{MEASUREMENT, exit_code, usage};
use super::options::Global;
use super::progress::left;
use super::redirected::Redirected;
use crate::settings::Settings;
use crate::{message, terminal};
use clap::Args;
use engine::compared::{self, InterleavedAsk, Runs, Turn};
use engine::topdown::{Ask, LiveAsk};
use pmu::Command;
use report::documents::diff::diff;
use report::documents::diff::judge::control;
use report::documents::diff::runs::mean;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use tma::text::several;
use tma::{Error, Result};

#[derive(Args)]
#[command(
    override_usage = "tdtool bench [OPTIONS] COMMAND-A... -- COMMAND-B...",
    after_help = "\
Examples:
  tdtool bench ./old input -- ./new input
  tdtool bench -n 20 --fail-if 'time > +3%' ./old -- ./new"
)]
pub struct BenchArgs {
    /// Runs of each command that count
    #[arg(short = 'n', long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(2..=10_000), help_heading = MEASUREMENT)]
    runs: u32,
    /// Runs of each command before those
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(0..=1000), help_heading = MEASUREMENT)]
    warm_up: u32,
    /// Deepest level of the tree
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=9), help_heading = MEASUREMENT)]
    level: u32,
    /// Go on when a command fails
    #[arg(long, help_heading = MEASUREMENT)]
    ignore_failure: bool,
    /// Show what the commands write to standard output
    #[arg(long, help_heading = MEASUREMENT)]
    show_output: bool,
    #[command(flatten)]
    form: FormArgs,
    /// Commands A and B, separated by --
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    commands: Vec<OsString>,
}

impl BenchArgs {
    /// Refuses what is not two commands.
    pub fn check(&self) -> Result<()> {
        sides(&self.commands).map(drop)
    }
}

pub fn run(global: &Global, args: &BenchArgs) -> Result<ExitCode> {
    let settings = global.settings()?;
    let (a, b) = sides(&args.commands)?;
    let conditions = args.form.check(&[])?;
    let ask = InterleavedAsk {
        commands: [live(args, &settings, a)?, live(args, &settings, b)?],
        warm_up: args.warm_up,
        runs: args.runs,
        may_fail: args.ignore_failure,
    };
    let runs = measured(args, &settings, &ask)?;
    let [of_a, of_b] = &runs.reports;
    if of_a.len() < 2 || of_b.len() < 2 {
        return match runs.interrupted {
            Some(signal) => {
                let [a, b] = runs.seconds.each_ref().map(|times| complete(times));
                message::note(&format!(
                    "interrupted before two runs of each that count: nothing to compare; A: {a}; B: {b}"
                ));
                Ok(exit_code(128 + signal))
            }
            None => Err(Error::failed("too few runs to compare")),
        };
    }
    let names = ask.commands.each_ref().map(|one| one.typed.join(" "));
    let (mut a, mut b) = (mean(of_a)?.into_owned(), mean(of_b)?.into_owned());
    // They are named by their commands.
    a.subject.clear();
    b.subject.clear();
    let mut compared = diff(&names[0], &a, &names[1], &b);
    control(&mut compared, [a.repeats as usize, b.repeats as usize]);
    let judged = args.form.show(compared, &conditions, global.ascii, false)?;
    Ok(match runs.interrupted {
        Some(signal) => exit_code(128 + signal),
        None => judged,
    })
}

/// The complete runs of a command: how many, and their times.
fn complete(seconds: &[f64]) -> String {
    match seconds {
        [] => "no complete run".to_owned(),
        times => {
            let all: Vec<String> = times.iter().map(|time| format!("{time:.3} s")).collect();
            format!("{} ({})", several(times.len(), "complete run"), all.join(", "))
        }
    }
}

/// The words of A and of B.
fn sides(words: &[OsString]) -> Result<(&[OsString], &[OsString])> {
    let at = words.iter().position(|word| word == "--");
    match at.map(|at| (&words[..at], &words[at + 1..])) {
        Some((a, b)) if !a.is_empty() && !b.is_empty() => Ok((a, b)),
        _ => Err(usage(
            "bench compares two commands",
            "`tdtool bench ./old ARGUMENTS -- ./new ARGUMENTS`",
        )),
    }
}

fn live(args: &BenchArgs, settings: &Settings, words: &[OsString]) -> Result<LiveAsk> {
    Ok(LiveAsk {
        ask: Ask { level: Some(args.level), ..Ask::default() },
        uarch: settings.uarch.clone(),
        command: Some(Command { argv: workload::resolve(words), ..Command::default() }.run_again()),
        typed: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        ..LiveAsk::of(settings.core()?)
    })
}

fn measured(args: &BenchArgs, settings: &Settings, ask: &InterleavedAsk) -> Result<Runs> {
    let nowhere = || Redirected::to(Path::new("/dev/null"));
    let _silent = (!args.show_output).then(nowhere).transpose()?;
    let is_terminal = terminal::shows_progress();
    let begun = Instant::now();
    let mut progress = |Turn { number, of, .. }: Turn| {
        if is_terminal {
            let left = left(begun.elapsed(), number.saturating_sub(1) as usize, of as usize);
            message::plain(&format!("\rrun {number} of {of}{left}\x1b[K"));
        }
        Ok(())
    };
    let runs = compared::run(settings.machine(), settings.library, ask, &mut progress);
    if is_terminal {
        message::plain("\r\x1b[K");
    }
    runs
}
