//! Chosen functions of a command → exact counts of their blocks.
//!
//! | file | concern |
//! |---|---|
//! | `ask` | what to count |
//! | `choice` | the functions that are asked for, by name |
//! | `first` | the run that is counted, and further ones |
//! | `hot` | those that hold most samples of an earlier run |
//! | `program` | the program of the command or process |
//! | `at` | addresses of blocks that are given by hand |
//! | `rows` | counts as rows of the document |

mod ask;
mod at;
mod choice;
mod first;
mod hot;
mod program;
mod rows;

use crate::documents::count::Count;
use pmu::perf::Signals;
use probe::count::Progress;
use tma::{Error, Result};

pub use ask::CountAsk;
pub(crate) use first::First;

/// Runs the command and counts, or counts in a live process, whose analysis is reported to `progress`.
/// With the document, the exit status that a shell would give: that of the command, or 128 + the signal
/// that interrupted the run; 1 if probes remain in a live process.
///
/// # Errors
/// No such function or file; the command cannot be started or traced.
pub fn counted(ask: &CountAsk, progress: Progress<'_>) -> Result<(Count, i32)> {
    if ask.process.is_some() {
        progress(0, 1);
    }
    if let Some(signal) = ask.hot.as_ref().and_then(|found| found.interrupted) {
        return Err(Error::failed("nothing was counted")
            .because(format!("signal {signal} interrupted the run that was sampled")));
    }
    let signals = Signals::catch()?;
    let mut first = First::of(ask, &signals, progress)?;
    let interrupted = first.further(ask, &signals)?;
    let First { mut document, counts, .. } = first;
    if interrupted.is_some() {
        document.notes.push("interrupted: counts are of the run until then".to_owned());
    }
    let own = counts.exit.map_or(i32::from(counts.remains), pmu::Exit::code);
    Ok((document, interrupted.map_or(own, |signal| 128 + signal)))
}
