//! The run that is counted, and further runs that add to its document.

use super::ask::{self, CountAsk};
use super::choice::{self, Chosen, chosen};
use super::rows::{Steps, enter, refused};
use crate::left::Left;
use crate::loads::{Loads, loads};
use crate::processes::processor_time;
use crate::steps::Subject;
use crate::{mispredicted, values};
use pmu::Command;
use pmu::perf::{Child, Signals};
use probe::count::{Blocks, Counts, Progress, Wanted, count_blocks, count_process, count_windows};
use profile::files::hexadecimal;
use report::documents::count::{Cost, Count, ModuleRow, SCHEMA};
use report::documents::{Exit, Purpose};
use std::path::Path;
use std::time::Instant;
use tma::{Error, Result};

/// Processor time in seconds that stopping and patching a process takes, in steps of the kernel's clock.
const LITTLE: f64 = 0.02;

/// Counts of a first run; further ones add to its document.
pub(crate) struct First {
    /// The counts.
    pub document: Count,
    pub(super) counts: Counts,
    pub(super) chosen: Vec<Chosen>,
    /// By function that is hot: first addresses of blocks, with their samples.
    pub(super) samples: Vec<Vec<(u64, u64)>>,
    pub(super) plain: Option<f64>,
    steps: Steps,
    /// The code of the process could not be put back after a window.
    pub(super) remains: bool,
    /// Processor time in seconds that a live process used in the window that was counted.
    pub spent: Option<f64>,
    /// The first status other than 0 of the runs before, or of the counted one.
    pub(super) status: i32,
}

impl First {
    /// Counts as asked, in these functions if they are not those of samples.
    ///
    /// # Errors
    /// As [`counted`](super::counted).
    pub fn of(
        ask: &CountAsk,
        functions: Option<Vec<Chosen>>,
        signals: &Signals,
        progress: Progress<'_>,
    ) -> Result<Self> {
        let mut samples = Vec::new();
        let (chosen, hot_functions) = match &ask.hot {
            Some(found) => {
                let (all, rows) = choice::hot(found)?;
                let mut one = |of: choice::Counted| {
                    samples.push(of.samples);
                    Chosen { name: of.name, aliases: Vec::new(), wanted: of.wanted }
                };
                (all.into_iter().map(&mut one).collect(), Some(rows))
            }
            None => (functions.map_or_else(|| chosen(ask), Ok)?, None),
        };
        super::choice::check(ask.values.as_deref().unwrap_or_default(), &chosen)?;
        let mut steps = Steps::new(ask);
        let mut before = ask.hot.as_ref().and_then(|found| found.exit).filter(is_failure);
        let plain = match (&ask.hot, ask.process) {
            (_, Some(_)) => None,
            _ if ask.plain => {
                steps.begin(ask, "without probes", ask.runs());
                let (seconds, exit) = plain(&ask.command)?;
                before = before.or(exit);
                Some(seconds)
            }
            (hot, None) => hot.as_ref().map(|found| found.seconds),
        };
        let wanted: Vec<Wanted> = chosen.iter().map(|c| c.wanted.clone()).collect();
        let used = || ask.process.and_then(|(pid, _)| processor_time(pid));
        let used_before = used();
        steps.plain = plain.or(steps.plain);
        steps.begin(ask, "counts", Left { plain: false, ..ask.runs() });
        let counts = match ask.process {
            Some((pid, window)) => count_process(pid, &wanted, window, signals, progress)?,
            None if ask.windows => count_windows(&ask.command, &wanted, signals)?,
            None => {
                let only = ask.only.as_deref().map(Blocks::Only);
                let blocks = only.unwrap_or(Blocks::Sampled(&samples));
                count_blocks(&ask.command, &wanted, blocks, signals)?
            }
        };
        steps.plain = steps.plain.or(Some(Left::plain_of(counts.wall.as_secs_f64())));
        let mut document = Count {
            schema: SCHEMA.to_owned(),
            command: ask.command.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            process: ask.process.map(|(pid, _)| pid),
            is_sample: ask.windows,
            exit: counts.exit.map(Exit::from),
            hot: hot_functions,
            modules: modules(&wanted),
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
        let spent = used().zip(used_before).map(|(after, before)| after - before);
        let notes = notes(ask, &document, &counts, spent);
        document.notes.extend(notes);
        let status = before.or(counts.exit).map_or(0, pmu::Exit::code);
        let remains = counts.remains;
        Ok(Self { document, counts, chosen, samples, plain, steps, remains, spent, status })
    }

    /// Records branches, values and loads, as far as asked for, each in runs or windows of their own. The signal that
    /// interrupted one, or the run that was counted.
    ///
    /// # Errors
    /// The command cannot be started or traced.
    pub fn further(
        &mut self,
        ask: &CountAsk,
        signals: &Signals,
        progress: Progress<'_>,
    ) -> Result<Option<i32>> {
        let Self { document, counts, chosen, plain, steps, .. } = self;
        let (command, process, plain) = (&ask.command, ask.process, *plain);
        let mut subject = Subject { command, process, signals, progress, plain, remains: false };
        let subject = &mut subject;
        let mut interrupted = counts.interrupted;
        let functions: Vec<_> = chosen.iter().map(|c| (c.name.as_str(), &c.wanted)).collect();
        for kind in [Kind::Branches, Kind::Values, Kind::Loads] {
            if interrupted.is_some() {
                break;
            }
            let left = kind.with_later(ask.runs());
            if kind.is_in(left) {
                steps.begin(ask, kind.name(), left);
            }
            let found = match (kind, &ask.branches, &ask.values) {
                (Kind::Branches, Some(core), _) => {
                    let own = functions.iter().copied().filter(|(_, of)| ask.has_branches_of(of));
                    let own: Vec<_> = own.collect();
                    mispredicted::enter(document, subject, &own, core, ask.rarest)
                }
                (Kind::Values, _, Some(at)) => {
                    values::enter(document, subject, &functions, counts, at)
                }
                (Kind::Loads, ..) if ask.loads => {
                    loads(subject, &functions, counts, ask.loads_of.as_ref())
                        .map(|found| enter_loads(document, found))
                }
                _ => Ok(None),
            };
            interrupted = match found {
                // Counts of a process stand, even if it has ended meanwhile.
                Err(error) if process.is_some() => {
                    document.notes.push(format!(
                        "{} were not recorded: {}",
                        kind.title(),
                        whole(&error)
                    ));
                    None
                }
                found => found?,
            };
        }
        steps.end(ask);
        self.remains |= subject.remains;
        Ok(interrupted)
    }
}

/// The files of these functions.
fn modules(wanted: &[Wanted]) -> Vec<ModuleRow> {
    let mut paths: Vec<&Path> = wanted.iter().map(|of| of.path.as_path()).collect();
    paths.sort_unstable();
    paths.dedup();
    let row = |path: &&Path| ModuleRow {
        path: path.display().to_string(),
        build_id: pmu::build_id::of_file(path).map(|id| hexadecimal(&id)),
    };
    paths.iter().map(row).collect()
}

/// Recordings of further runs.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Branches,
    Values,
    Loads,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Branches => "branches",
            Self::Values => "values",
            Self::Loads => "loads",
        }
    }

    /// [`Self::name`] at the beginning of a sentence.
    fn title(self) -> &'static str {
        match self {
            Self::Branches => "Branches",
            Self::Values => "Values",
            Self::Loads => "Loads",
        }
    }

    /// The runs of `all` that are left when this one begins.
    fn with_later(self, all: Left) -> Left {
        let left = Left { plain: false, counts: 0, ..all };
        match self {
            Self::Branches => left,
            Self::Values => Left { branches: false, ..left },
            Self::Loads => Left { branches: false, values: false, ..left },
        }
    }

    fn is_in(self, left: Left) -> bool {
        match self {
            Self::Branches => left.branches,
            Self::Values => left.values,
            Self::Loads => left.loads,
        }
    }
}

/// An error in one sentence.
fn whole(error: &Error) -> String {
    match error.cause() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Adds loads to a document; the signal that interrupted their runs.
pub(super) fn enter_loads(document: &mut Count, found: Loads) -> Option<i32> {
    (document.loads, document.stores) = (found.rows, found.stores);
    document.allocation_sites = found.allocation_sites;
    document.contended_lines = found.contended;
    document.timer = found.timer;
    document.cost.extend(found.cost);
    document.notes.extend(found.notes);
    found.interrupted
}

/// Limits of the counts; `spent` is the processor time of a live process, in seconds.
fn notes(ask: &CountAsk, document: &Count, counts: &Counts, spent: Option<f64>) -> Vec<String> {
    let mut notes: Vec<String> = nothing_ran(document, spent).into_iter().collect();
    if ask.process.is_none() {
        notes.extend(ask::notes(&ask.command));
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

fn is_failure(exit: &pmu::Exit) -> bool {
    exit.code() != 0
}

/// Wall time of a run without probes, and how it ended, if not well.
fn plain(command: &Command) -> Result<(f64, Option<pmu::Exit>)> {
    let begin = Instant::now();
    let mut child = Child::prepare(command)?;
    child.start()?;
    let exit = child.reap().map(|(exit, _)| exit).filter(is_failure);
    Ok((begin.elapsed().as_secs_f64(), exit))
}

/// Each run's time, beside that of a run without probes.
fn costs(ask: &CountAsk, counts: &Counts, plain: Option<f64>) -> Vec<Cost> {
    let sampled = ask.hot.as_ref().map(|found| found.seconds);
    let cost = |run, seconds, plain, probes, exit: Option<pmu::Exit>| Cost {
        run,
        seconds,
        plain,
        probes,
        exit: exit.map(Exit::from),
    };
    let exit = ask.hot.as_ref().and_then(|found| found.exit);
    let without = plain.filter(|_| ask.plain);
    let mut all: Vec<Cost> =
        sampled.map(|s| cost(Purpose::Samples, s, without, 0, exit)).into_iter().collect();
    all.push(cost(Purpose::Counts, counts.wall.as_secs_f64(), plain, counts.probes, counts.exit));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_fixed_names() {
        let all = [Kind::Branches, Kind::Values, Kind::Loads];
        assert_eq!(all.map(Kind::name), ["branches", "values", "loads"]);
        assert_eq!(all.map(Kind::title), ["Branches", "Values", "Loads"]);
    }
}
