//! Two commands measured alternately, so that other work of the machine disturbs both equally.

use crate::topdown::{LiveAsk, Outcome, Update, live};
use pmu::machine::Machine;
use report::documents::Exit;
use report::documents::Report;
use tma::tables::Library;
use tma::{Error, Result};

/// The reports of the runs of A and of B.
#[derive(Default)]
pub struct Runs {
    /// The reports of each command, in order of time.
    pub reports: [Vec<Report>; 2],
    /// Seconds of all complete runs of each, those before the ones that count, too.
    pub seconds: [Vec<f64>; 2],
    /// The signal that ended it early.
    pub interrupted: Option<i32>,
}

/// Commands to run, how often, and how failures are handled.
pub struct InterleavedAsk {
    /// A and B.
    pub commands: [LiveAsk; 2],
    /// Runs of each before those that count.
    pub warm_up: u32,
    /// Runs of each.
    pub runs: u32,
    /// A command may end with a status other than 0.
    pub may_fail: bool,
}

/// Runs A B B A A B …: a drift of the machine adds the same to both. `progress` is called before each run with its
/// number and how many there are.
///
/// # Errors
/// A command cannot be started or measured, or ends with a failure.
pub fn run(
    machine: &Machine,
    library: &Library,
    ask: &InterleavedAsk,
    progress: &mut dyn FnMut(u32, u32),
) -> Result<Runs> {
    let mut all = Runs::default();
    let rounds = ask.warm_up + ask.runs;
    for round in 0..rounds {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for (place, side) in order.into_iter().enumerate() {
            progress(2 * round + place as u32 + 1, 2 * rounds);
            let mut ignore = |_: Update| {};
            let outcome = live(machine, library, &ask.commands[side], &mut ignore)?;
            if outcome.interrupted.is_some() {
                all.interrupted = outcome.interrupted;
                return Ok(all);
            }
            if !ask.may_fail {
                succeeded(&outcome, &ask.commands[side])?;
            }
            all.seconds[side].extend(outcome.report.duration);
            if round >= ask.warm_up {
                all.reports[side].push(outcome.report);
            }
        }
    }
    Ok(all)
}

fn succeeded(outcome: &Outcome, ask: &LiveAsk) -> Result<()> {
    let how = match outcome.report.exit {
        None | Some(Exit::Status(0)) => return Ok(()),
        Some(Exit::Status(status)) => format!("its exit status is {status}"),
        Some(Exit::Signal(signal)) => format!("signal {signal} killed it"),
    };
    Err(Error::failed(format!("a run of `{}` failed", ask.typed.join(" ")))
        .because(how)
        .hint("try it alone, or measure it all the same with --ignore-failure"))
}
