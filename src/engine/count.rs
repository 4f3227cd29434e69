//! Chosen functions of a command → exact counts of their blocks.

use crate::count_chosen::{Chosen, chosen, program};
use crate::count_hot::{self, Counted};
use crate::documents::Exit;
use crate::documents::count::{
    BlockRow, BranchRow, Cost, Count, EdgeRow, LoopRow, Refused, SCHEMA, Trips,
};
use crate::hot::hottest::Hottest;
use crate::loads::loads;
use crate::mispredicted;
use crate::values;
use pmu::Command;
use pmu::perf::{Child, Signals};
use probe::count::{Counts, FunctionCounts, Progress, Wanted, count_process, count_sampled};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tma::{Core, Error, Result};

/// What to count.
#[derive(Debug, Clone)]
pub struct CountAsk {
    /// The command; not used with a process.
    pub command: Command,
    /// A live process instead, and for how long.
    pub process: Option<(i32, Duration)>,
    /// Files with the functions; the command's own program if none.
    pub modules: Vec<PathBuf>,
    /// Names of functions, or addresses in them (`0x4327`); all if none.
    pub functions: Vec<String>,
    /// Those that hold most of the samples of an earlier run, instead.
    pub hot: Option<Hottest>,
    /// Whether the command is also run without probes, for the cost.
    pub plain: bool,
    /// Whether it is run twice more, for access patterns and latencies of the hot loads.
    pub loads: bool,
    /// Whether registers at the entries of functions and loops are recorded, and at those of the blocks with
    /// these addresses: it is run once more.
    pub values: Option<Vec<u64>>,
    /// Whether mispredictions are modelled, on this core: the command is run once more.
    pub branches: Option<Arc<Core>>,
}

/// Fewest entries of a loop, in a window of a live process, for which the mean of its trips is given: an execution of
/// each thread is cut at the beginning and at the end, up to one in a hundred of these.
const LEAST_IN_WINDOW: u64 = 200;

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
        return Err(Error::failed("the command was not counted")
            .because(format!("signal {signal} interrupted the run that was sampled")));
    }
    let signals = Signals::catch()?;
    let mut first = First::of(ask, &signals, progress)?;
    let interrupted = first.further(ask, &signals)?;
    if interrupted.is_some() {
        let note = "interrupted: counts are of the run until then";
        first.document.notes.push(note.to_owned());
    }
    let own = first.counts.exit.map_or(i32::from(first.counts.remains), pmu::Exit::code);
    Ok((first.document, interrupted.map_or(own, |signal| 128 + signal)))
}

/// Counts of a first run; further ones add to its document.
pub(crate) struct First {
    /// The counts.
    pub document: Count,
    counts: Counts,
    chosen: Vec<Chosen>,
    plain: Option<f64>,
}

impl First {
    /// Counts as asked.
    ///
    /// # Errors
    /// As [`counted`].
    pub fn of(ask: &CountAsk, signals: &Signals, progress: Progress<'_>) -> Result<Self> {
        let mut samples = Vec::new();
        let (chosen, hot) = match &ask.hot {
            Some(found) => {
                let (all, hot) = count_hot::hot(found)?;
                let mut one = |of: Counted| {
                    samples.push(of.samples);
                    Chosen { name: of.name, aliases: Vec::new(), wanted: of.wanted }
                };
                (all.into_iter().map(&mut one).collect(), Some(hot))
            }
            None => (
                chosen((&ask.command, ask.process.map(|of| of.0)), &ask.modules, &ask.functions)?,
                None,
            ),
        };
        let plain =
            if ask.plain && ask.process.is_none() { Some(plain(&ask.command)?) } else { None };
        let wanted: Vec<Wanted> = chosen.iter().map(|c| c.wanted.clone()).collect();
        let counts = match ask.process {
            Some((pid, window)) => count_process(pid, &wanted, window, signals, progress)?,
            None => count_sampled(&ask.command, &wanted, &samples, signals)?,
        };
        let mut document = Count {
            schema: SCHEMA.to_owned(),
            command: ask.command.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            process: ask.process.map(|(pid, _)| pid),
            exit: counts.exit.map(ended),
            hot,
            cost: costs(ask, &counts, plain),
            notes: counts.notes.clone(),
            ..Count::default()
        };
        for (one, found) in chosen.iter().zip(&counts.functions) {
            match found {
                Ok(found) => enter(&mut document, one, found),
                Err(why) => document.refused.push(refused(one, one.wanted.range.start, why)),
            }
        }
        if ask.process.is_none() && is_setuid(&ask.command) {
            let note =
                "the program is setuid or setgid: traced, it has the privileges of its caller";
            document.notes.push(note.to_owned());
        }
        let few = |one: &LoopRow| {
            one.entries.is_some_and(|n| n < LEAST_IN_WINDOW) && one.iterations > Some(0)
        };
        if ask.process.is_some() && document.loops.iter().any(few) {
            document.notes.push(format!(
                "loops that were entered fewer than {LEAST_IN_WINDOW} times in the window have no mean trips: the window cuts \
                 executions at its beginning and end"
            ));
        }
        let differs = |before: pmu::Exit| counts.exit.is_some_and(|now| now != before);
        if ask.hot.as_ref().and_then(|found| found.exit).is_some_and(differs) {
            document.notes.push("the counted run ended otherwise than the sampled one".to_owned());
        }
        Ok(Self { document, counts, chosen, plain })
    }

    /// Records branches, values and loads, as far as asked for, each in runs of its own. The signal that
    /// interrupted one, or the run that was counted.
    ///
    /// # Errors
    /// The command cannot be started or traced.
    pub fn further(&mut self, ask: &CountAsk, signals: &Signals) -> Result<Option<i32>> {
        let Self { document, counts, chosen, plain } = self;
        let mut interrupted = counts.interrupted;
        let functions: Vec<_> = chosen.iter().map(|c| (c.name.as_str(), &c.wanted)).collect();
        if let (Some(core), None) = (&ask.branches, interrupted) {
            mispredicted::enter(document, &ask.command, (&functions, *plain), core, signals)?;
        }
        if let (Some(at), None) = (&ask.values, interrupted) {
            let of = (&*counts, at.as_slice());
            interrupted = values::enter(document, &ask.command, &functions, of, (*plain, signals))?;
        }
        if ask.loads && interrupted.is_none() {
            let found = loads(&ask.command, &functions, counts, signals)?;
            document.loads = found.rows;
            document.timer = found.timer;
            document.cost.extend(found.cost);
            document.notes.extend(found.notes);
            interrupted = found.interrupted;
        }
        Ok(interrupted)
    }
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
    let mut all: Vec<Cost> = sampled.map(|s| cost("samples", s, plain, 0)).into_iter().collect();
    all.push(cost("counts", counts.wall.as_secs_f64(), plain.or(sampled), counts.probes));
    all
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

fn refused(of: &Chosen, start: u64, why: &str) -> Refused {
    Refused {
        module: of.wanted.path.display().to_string(),
        function: of.name.clone(),
        start: hex(start),
        reason: why.to_owned(),
    }
}

/// Adds the counts of a function.
fn enter(document: &mut Count, of: &Chosen, found: &FunctionCounts) {
    let module = of.wanted.path.display().to_string();
    for block in &found.blocks {
        let count = match &block.count {
            Ok(count) => *count,
            Err(why) => {
                document.refused.push(refused(of, block.start, why));
                continue;
            }
        };
        let probe = block.kind.map(|kind| format!("{kind:?}").to_lowercase());
        document.blocks.push(BlockRow {
            module: module.clone(),
            function: of.name.clone(),
            start: hex(block.start),
            end: hex(block.end),
            instructions: block.instructions,
            count,
            how: if probe.is_some() { "placed" } else { "derived" }.to_owned(),
            probe,
        });
    }
    document.edges.extend(found.edges.iter().map(|edge| EdgeRow {
        module: module.clone(),
        from: hex(edge.from),
        to: hex(edge.to),
        count: edge.count,
    }));
    let executions = |at: u64| {
        let block = found.blocks.iter().find(|block| (block.start..block.end).contains(&at))?;
        block.count.as_ref().ok().copied()
    };
    document.branches.extend(found.branches.iter().map(|branch| BranchRow {
        module: module.clone(),
        function: of.name.clone(),
        address: hex(branch.address),
        executions: executions(branch.address),
        taken: branch.taken,
        not_taken: branch.not_taken,
        kind: "conditional".to_owned(),
        ..BranchRow::default()
    }));
    // A window cuts executions at both ends.
    let least = if document.process.is_some() { LEAST_IN_WINDOW } else { 1 };
    let mean = |entries: Option<u64>, iterations: Option<u64>| {
        entries.zip(iterations).filter(|(n, _)| *n >= least).map(|(n, all)| all as f64 / n as f64)
    };
    document.loops.extend(found.loops.iter().map(|one| LoopRow {
        module: module.clone(),
        function: of.name.clone(),
        head: hex(one.head),
        entries: one.entries,
        iterations: one.iterations,
        trips: Trips { mean: mean(one.entries, one.iterations), ..Trips::default() },
    }));
    document.checked += found.checked;
    let name = &of.name;
    document.contradictions.extend(found.contradictions.iter().map(|c| format!("{name} {c}")));
}

/// Whether it would have other privileges than its caller (execve(2)).
fn is_setuid(command: &Command) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = program(command).ok().and_then(|path| path.metadata().ok());
    metadata.is_some_and(|of| of.mode() & (libc::S_ISUID | libc::S_ISGID) != 0)
}
