//! Chosen functions of a command → exact counts of their blocks. If two runs end differently, the rows made from
//! them cover different parts of the program's work.
//!
//! | file | concern |
//! |---|---|
//! | `ask` | what to count, and the file of its program |
//! | `choice` | the functions: by name, by samples |
//! | `first` | the run that is counted, and further ones |
//! | `windowed` | branches and loads in windows of one further run |
//! | `rows` | counts as rows of the document; runs as they begin |

pub(crate) mod ask;
mod choice;
mod first;
mod rows;
mod windowed;

pub use ask::CountAsk;
use choice::chosen;
pub(crate) use first::First;
use nix::sys::signal::Signal;
use pmu::perf::Signals;
use probe::count::Progress;
use probe::facts::{Named, NoCode};
use report::documents::count::{Cost, Count, SCHEMA};
use report::documents::{Exit, Purpose};
use std::path::Path;
use tma::Result;

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
    mark(&mut document);
    if interrupted.is_some() {
        document.notes.push("interrupted: counts are of the run until then".to_owned());
    }
    document.interrupted = interrupted;
    let codes = document.cost.iter().filter_map(|cost| cost.exit).map(Exit::code);
    let own = std::iter::once(status).chain(codes).find(|code| *code != 0);
    let own = own.unwrap_or(i32::from(remains));
    Ok((document, interrupted.map_or(own, |signal| 128 + signal)))
}

/// The functions of a file that are counted: also those that only its symbols without a length, or a debug file, name.
///
/// # Errors
/// The reason why it has none.
pub(crate) fn functions(path: &Path) -> std::result::Result<Vec<Named>, NoCode> {
    choice::all(path).map(|(found, _)| found)
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

/// Further runs with rows in the document beside the counts.
const RUNS: [Purpose; 4] =
    [Purpose::Branches, Purpose::Values, Purpose::Addresses, Purpose::Latencies];

/// Marks the rows that stem from a run that ended otherwise than the counted one, or of which one was killed, and
/// says so.
fn mark(document: &mut Count) {
    let Some(counted) = document.exit else { return };
    if let Exit::Signal(_) = counted {
        let text = format!("the counted run {}: counts are of the run until then", words(counted));
        document.notes.push(text);
    }
    let differs = |cost: &&Cost| {
        let is_killed = |exit: Exit| matches!(exit, Exit::Signal(_));
        let other = |exit: Exit| exit != counted || is_killed(exit) || is_killed(counted);
        RUNS.contains(&cost.run) && cost.exit.is_some_and(other)
    };
    let all: Vec<(Purpose, Exit, f64)> = document
        .cost
        .iter()
        .filter(differs)
        .filter_map(|cost| Some((cost.run, cost.exit?, cost.seconds)))
        .collect();
    for (run, exit, seconds) in all {
        let text = format!(
            "the run of {run} {} after {seconds:.2} s, the counted one {}: what is made of both (*) is of different \
             extents",
            words(exit),
            words(counted)
        );
        rows(document, run).for_each(|of| of.get_or_insert_with(String::new).push_str(&text));
        document.notes.push(format!("* {text}"));
    }
}

/// How a run ended.
pub(crate) fn words(exit: Exit) -> String {
    match exit {
        Exit::Status(0) => "ended as a whole".to_owned(),
        Exit::Status(status) => format!("ended with status {status}"),
        Exit::Signal(signal) => match Signal::try_from(signal) {
            Ok(name) => format!("was killed by signal {signal} ({name})"),
            Err(_) => format!("was killed by signal {signal}"),
        },
    }
}

/// The marks of all rows that are made of a run.
fn rows(document: &mut Count, run: Purpose) -> Box<dyn Iterator<Item = &mut Option<String>> + '_> {
    match run {
        Purpose::Branches => {
            let all = document.branches.iter_mut().filter(|row| row.mispredicted.is_some());
            Box::new(all.map(|row| &mut row.extents))
        }
        Purpose::Values => {
            let all = document.values.iter_mut().filter(|row| !row.registers.is_empty());
            Box::new(all.map(|row| &mut row.extents))
        }
        Purpose::Addresses => {
            let all = document.loads.iter_mut().filter(|row| row.class.is_some());
            Box::new(all.map(|row| &mut row.extents))
        }
        _ => {
            let all = document.loads.iter_mut().filter(|row| row.latency.is_some());
            Box::new(all.map(|row| &mut row.extents))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::count::{BranchRow, LoadRow, Modelled};

    #[test]
    fn a_killed_run_marks_what_is_made_of_it() {
        let cost = |run, exit| Cost { run, exit, ..Cost::default() };
        let branch = BranchRow { mispredicted: Some(Modelled::default()), ..BranchRow::default() };
        let mut document = Count {
            exit: Some(Exit::Status(0)),
            branches: vec![branch, BranchRow::default()],
            loads: vec![LoadRow::default()],
            cost: vec![
                cost(Purpose::Counts, Some(Exit::Status(0))),
                cost(Purpose::Branches, Some(Exit::Signal(9))),
                cost(Purpose::Latencies, Some(Exit::Status(0))),
            ],
            ..Count::default()
        };
        mark(&mut document);
        assert_eq!(document.notes.len(), 1);
        assert!(document.notes[0].contains("run of branches was killed by signal 9 (SIGKILL)"));
        let marks: Vec<bool> = document.branches.iter().map(|row| row.extents.is_some()).collect();
        assert_eq!((marks, document.loads[0].extents.is_some()), (vec![true, false], false));
    }

    #[test]
    fn a_killed_counted_run_is_not_combined_with_others_unsaid() {
        let exit = Some(Exit::Signal(11));
        let cost = Cost { run: Purpose::Values, exit, ..Cost::default() };
        let mut document = Count { exit, cost: vec![cost], ..Count::default() };
        mark(&mut document);
        assert!(document.notes[0].contains("the counted run was killed by signal 11 (SIGSEGV)"));
        assert!(document.notes[1].starts_with("* the run of values was killed"));
    }
}
