//! The run that is counted, and further ones that add to its document.

use super::ask::CountAsk;
use super::choice::{Chosen, chosen};
use super::rows::{LEAST_IN_WINDOW, enter, refused};
use super::{hot, program};
use crate::documents::Exit;
use crate::documents::count::{Cost, Count, LoopRow, SCHEMA};
use crate::loads::loads;
use crate::mispredicted;
use crate::values;
use pmu::Command;
use pmu::perf::{Child, Signals};
use probe::count::{Counts, Progress, Wanted, count_process, count_sampled};
use std::time::Instant;
use tma::Result;

/// Processor time in seconds that stopping and patching a process takes, in steps of the kernel's clock.
const LITTLE: f64 = 0.02;

/// Counts of a first run; further ones add to its document.
pub(crate) struct First {
    /// The counts.
    pub document: Count,
    pub(super) counts: Counts,
    chosen: Vec<Chosen>,
    plain: Option<f64>,
}

impl First {
    /// Counts as asked.
    ///
    /// # Errors
    /// As [`counted`](super::counted).
    pub fn of(ask: &CountAsk, signals: &Signals, progress: Progress<'_>) -> Result<Self> {
        let mut samples = Vec::new();
        let (chosen, hot_functions) = match &ask.hot {
            Some(found) => {
                let (all, rows) = hot::hot(found)?;
                let mut one = |of: hot::Counted| {
                    samples.push(of.samples);
                    Chosen { name: of.name, aliases: Vec::new(), wanted: of.wanted }
                };
                (all.into_iter().map(&mut one).collect(), Some(rows))
            }
            None => (chosen(ask)?, None),
        };
        super::at::check(ask.values.as_deref().unwrap_or_default(), &chosen)?;
        let plain = match (&ask.hot, ask.process) {
            (_, Some(_)) => None,
            _ if ask.plain => Some(plain(&ask.command)?),
            (hot, None) => hot.as_ref().map(|found| found.seconds),
        };
        let wanted: Vec<Wanted> = chosen.iter().map(|c| c.wanted.clone()).collect();
        let used = || ask.process.and_then(|(pid, _)| program::processor_time(pid));
        let before = used();
        let counts = match ask.process {
            Some((pid, window)) => count_process(pid, &wanted, window, signals, progress)?,
            None => count_sampled(&ask.command, &wanted, &samples, signals)?,
        };
        let mut document = Count {
            schema: SCHEMA.to_owned(),
            command: ask.command.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            process: ask.process.map(|(pid, _)| pid),
            exit: counts.exit.map(ended),
            hot: hot_functions,
            cost: costs(ask, &counts, plain),
            notes: counts.notes.clone(),
            ..Count::default()
        };
        for (number, (one, found)) in chosen.iter().zip(&counts.functions).enumerate() {
            match found {
                Ok(found) => enter(&mut document, one, found, samples.get(number)),
                Err(why) => document.refused.push(refused(one, one.wanted.range.start, why)),
            }
        }
        let spent = used().zip(before).map(|(after, before)| after - before);
        let notes = notes(ask, &document, &counts, spent);
        document.notes.extend(notes);
        Ok(Self { document, counts, chosen, plain })
    }

    /// Records branches, values and loads, as far as asked for, each in runs of its own. The signal that
    /// interrupted one, or the run that was counted.
    ///
    /// # Errors
    /// The command cannot be started or traced.
    pub fn further(&mut self, ask: &CountAsk, signals: &Signals) -> Result<Option<i32>> {
        let Self { document, counts, chosen, plain } = self;
        let plain = *plain;
        let mut interrupted = counts.interrupted;
        let functions: Vec<_> = chosen.iter().map(|c| (c.name.as_str(), &c.wanted)).collect();
        if let (Some(core), None) = (&ask.branches, interrupted) {
            interrupted =
                mispredicted::enter(document, &ask.command, (&functions, plain), core, signals)?;
        }
        if let (Some(at), None) = (&ask.values, interrupted) {
            let of = (&*counts, at.as_slice());
            interrupted = values::enter(document, &ask.command, &functions, of, (plain, signals))?;
        }
        if ask.loads && interrupted.is_none() {
            let found = loads(&ask.command, &functions, counts, signals)?;
            document.loads = found.rows;
            document.timer = found.timer;
            document.cost.extend(found.cost.into_iter().map(|of| Cost { plain, ..of }));
            document.notes.extend(found.notes);
            interrupted = found.interrupted;
        }
        Ok(interrupted)
    }
}

/// What a reader of the counts must know; `spent` is the processor time of a live process.
fn notes(ask: &CountAsk, document: &Count, counts: &Counts, spent: Option<f64>) -> Vec<String> {
    let mut notes: Vec<String> = nothing_ran(document, spent).into_iter().collect();
    if ask.process.is_none() {
        notes.extend(program::notes(&ask.command));
    }
    let few = |one: &LoopRow| {
        one.entries.is_some_and(|n| n < LEAST_IN_WINDOW) && one.iterations > Some(0)
    };
    if ask.process.is_some() && document.loops.iter().any(few) {
        notes.push(format!(
            "loops that were entered fewer than {LEAST_IN_WINDOW} times in the window have no mean trips: the window cuts \
             executions at its beginning and end"
        ));
    }
    let differs = |before: pmu::Exit| counts.exit.is_some_and(|now| now != before);
    if ask.hot.as_ref().and_then(|found| found.exit).is_some_and(differs) {
        notes.push("the counted run ended otherwise than the sampled one".to_owned());
    }
    notes
}

/// A note if none of the counted blocks was entered; `spent` is the processor time of a live process.
fn nothing_ran(document: &Count, spent: Option<f64>) -> Option<String> {
    if document.blocks.is_empty() || document.blocks.iter().any(|block| block.count > 0) {
        return None;
    }
    let text = match (document.process, spent) {
        (None, _) => "none of the counted functions ran",
        (Some(_), Some(spent)) if spent > LITTLE => {
            "none of the counted functions ran in the window; --hot finds those that do"
        }
        (Some(_), _) => "nothing ran in the window: the process waited",
    };
    Some(text.to_owned())
}

fn ended(exit: pmu::Exit) -> Exit {
    match exit {
        pmu::Exit::Status(status) => Exit::Status(status),
        pmu::Exit::Signal(signal) => Exit::Signal(signal),
    }
}

/// Wall time of a run without probes.
fn plain(command: &Command) -> Result<f64> {
    let begin = Instant::now();
    let mut child = Child::prepare(command)?;
    child.start()?;
    child.reap();
    Ok(begin.elapsed().as_secs_f64())
}

/// Each run's time, beside that of a run without probes.
fn costs(ask: &CountAsk, counts: &Counts, plain: Option<f64>) -> Vec<Cost> {
    let sampled = ask.hot.as_ref().map(|found| found.seconds);
    let cost =
        |run: &str, seconds, plain, probes| Cost { run: run.to_owned(), seconds, plain, probes };
    let mut all: Vec<Cost> =
        sampled.map(|s| cost("samples", s, plain.filter(|_| ask.plain), 0)).into_iter().collect();
    all.push(cost("counts", counts.wall.as_secs_f64(), plain, counts.probes));
    all
}
