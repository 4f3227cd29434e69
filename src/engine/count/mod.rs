//! Chosen functions of a command → exact counts of their blocks.
//!
//! | file | concern |
//! |---|---|
//! | `ask` | what to count |
//! | `choice` | the functions that are asked for, by name |
//! | `first` | the run that is counted, and further ones |
//! | `extents` | runs that did not end alike |
//! | `steps` | the runs as they begin, with the time that is left |
//! | `hot` | those that hold most samples of an earlier run |
//! | `program` | the program of the command or process |
//! | `at` | addresses of blocks that are given by hand |
//! | `rows` | counts as rows of the document |

mod ask;
mod at;
mod choice;
mod extents;
mod first;
mod hot;
pub(crate) mod program;
mod rows;
mod steps;

use pmu::perf::Signals;
use probe::count::Progress;
use report::documents::Exit;
use report::documents::count::{Count, SCHEMA};
use tma::Result;

pub use ask::CountAsk;
use choice::chosen;
pub(crate) use first::First;

/// Runs the command and counts, or counts in a live process, whose analysis is reported to `progress`.
/// With the document, the exit status that a shell would give: the first that is not 0 of all runs, or 128 + the
/// signal that interrupted one; 1 if probes remain in a live process.
///
/// # Errors
/// No such function or file; the command cannot be started or traced.
pub fn counted(ask: &CountAsk, progress: Progress<'_>) -> Result<(Count, i32)> {
    if ask.process.is_some() {
        progress(0, 1);
    }
    if let Some(signal) = ask.hot.as_ref().and_then(|found| found.interrupted) {
        return Ok((nothing(ask, signal, "while the command was sampled"), 128 + signal));
    }
    let signals = Signals::catch()?;
    let functions = match ask.hot {
        Some(_) => None,
        None => {
            // Names of a large program take seconds.
            let of = ask.clone();
            let Some(found) = signals.unless_one_comes(move || chosen(&of)) else {
                let signal = signals.next().map_or(0, |(signal, _)| signal);
                return Ok((nothing(ask, signal, "while functions were looked for"), 128 + signal));
            };
            Some(found?)
        }
    };
    let mut first = First::of(ask, functions, &signals, progress)?;
    if let (Some(signal), true, None) =
        (first.counts.interrupted, first.counts.wall.is_zero(), ask.process)
    {
        return Ok((nothing(ask, signal, "before the command ran with probes"), 128 + signal));
    }
    let interrupted = first.further(ask, &signals, progress)?;
    let First { mut document, remains, status, .. } = first;
    extents::mark(&mut document);
    if interrupted.is_some() {
        document.notes.push("interrupted: counts are of the run until then".to_owned());
    }
    document.interrupted = interrupted;
    let codes = document.cost.iter().filter_map(|cost| cost.exit).map(Exit::code);
    let own = std::iter::once(status).chain(codes).find(|code| *code != 0);
    let own = own.unwrap_or(i32::from(remains));
    Ok((document, interrupted.map_or(own, |signal| 128 + signal)))
}

/// The document of a command that was interrupted before anything was counted.
fn nothing(ask: &CountAsk, signal: i32, when: &str) -> Count {
    Count {
        schema: SCHEMA.to_owned(),
        command: ask.command.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        interrupted: Some(signal),
        notes: vec![format!("interrupted {when}: nothing was counted")],
        ..Count::default()
    }
}
