//! Entries of hot blocks counted by probes: all of them in one further run of the command, or in a window of a live
//! process; or why a block has none.

use pmu::Command;
use pmu::perf::Signals;
use probe::count::{Counts, FunctionCounts, Uncounted, Wanted, count, count_process};
use profile::hot::{HotBlock, Profile, Unavailable};
use report::documents::{Exit, Report};
use std::fmt;
use std::ops::Range;
use std::time::Duration;
use tma::text::several;
use tma::{Error, ErrorKind, Result as Outcome};

/// The command or process to count in.
#[derive(Debug, Clone)]
pub enum CountAsk {
    /// Further runs of this command.
    Command(Command),
    /// A window of this process.
    Process(i32),
}

/// So long a live process is counted.
const WINDOW: Duration = Duration::from_secs(1);

/// How often a block is entered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entries {
    /// Executions of the run, or in a second.
    pub count: f64,
    /// Half width, as a ratio; `None` where there may have been any number more.
    pub error: Option<f64>,
    /// For people.
    pub how: String,
}

/// Counts by probes.
#[derive(Default)]
pub(super) struct Probed {
    /// By block: its entries, or that they were not counted, and why.
    pub blocks: Vec<Result<Entries, NotCounted>>,
    /// By block: how often the innermost loop around it was entered, and its iterations each time.
    pub loops: Vec<Option<(u64, f64)>>,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
    /// Limits of the counts.
    pub notes: Vec<String>,
}

/// Counts `blocks` in a run of the command, or a window of the process.
///
/// # Errors
/// The command cannot be started.
pub(super) fn probed(
    report: &Report,
    profile: &mut Profile,
    blocks: &[HotBlock],
    ask: &CountAsk,
    signals: &Signals,
) -> Outcome<Probed> {
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut of: Vec<Result<usize, NotCounted>> = Vec::new();
    for block in blocks {
        let number = function(profile, block).map(|one| {
            let known = wanted.iter().position(|w| *w == one);
            known.unwrap_or_else(|| {
                wanted.push(one);
                wanted.len() - 1
            })
        });
        of.push(number);
    }
    if wanted.is_empty() {
        let blocks = of.into_iter().filter_map(|of| of.err().map(Err)).collect();
        return Ok(Probed { blocks, ..Probed::default() });
    }
    let is_process = matches!(ask, CountAsk::Process(_));
    let counted = match ask {
        CountAsk::Command(command) => count(command, &wanted, signals),
        CountAsk::Process(pid) => count_process(*pid, &wanted, WINDOW, signals, &mut |_, _| {}),
    };
    let counts = match counted {
        // The measurement stands.
        Err(error) if error.kind() == ErrorKind::NotPossible || is_process => {
            let blocks = blocks.iter().map(|_| Err(NotCounted::Run(error.clone()))).collect();
            return Ok(Probed { blocks, ..Probed::default() });
        }
        other => other?,
    };
    let window = is_process.then_some(counts.wall.as_secs_f64());
    let short = cut_short(report, counts.exit, counts.interrupted);
    let entries = |(block, number): (&HotBlock, &Result<usize, NotCounted>)| {
        let function = match &counts.functions[*number.as_ref().map_err(Clone::clone)?] {
            Ok(function) => function,
            Err(why) if counts.unplanned => return Err(NotCounted::Unplanned(why.clone())),
            Err(why) => return Err(NotCounted::Probes(why.clone())),
        };
        if let Some(why) = short {
            return Err(NotCounted::OtherEnd(why));
        }
        entries(function, block.start..block.end, window)
    };
    let found = blocks.iter().zip(&of).map(entries).collect();
    let mut trips = |(block, number): (&HotBlock, &Result<usize, NotCounted>)| {
        let function =
            counts.functions[*number.as_ref().ok()?].as_ref().ok().filter(|_| short.is_none())?;
        let head = profile.loop_head(block)?;
        let found = function.loops.iter().find(|l| l.head == head)?;
        let entries = found.entries.filter(|n| *n > 0)?;
        Some((entries, found.iterations? as f64 / entries as f64))
    };
    let loops = blocks.iter().zip(&of).map(&mut trips).collect();
    Ok(Probed {
        blocks: found,
        loops,
        interrupted: counts.interrupted,
        notes: notes(report, &counts, &wanted, window.is_some()),
    })
}

/// The function of a block, in its file.
fn function(profile: &mut Profile, block: &HotBlock) -> Result<Wanted, NotCounted> {
    let (path, _) = profile.offset(block, block.start).map_err(NotCounted::NoFile)?;
    let function = profile.functions.get(block.function).ok_or(NotCounted::NoFunction)?;
    Ok(Wanted { path: path.into(), range: function.start..function.end })
}

/// The entries of a block: of the run, or a second of a window of this many seconds.
fn entries(
    function: &FunctionCounts,
    block: Range<u64>,
    window: Option<f64>,
) -> Result<Entries, NotCounted> {
    let found = function.blocks.iter().find(|b| b.start == block.start);
    let found = found.ok_or(NotCounted::NoBlock)?;
    let count = *found.count.as_ref().map_err(|why| NotCounted::Probes(why.clone()))? as f64;
    let by = match found.kind {
        Some(_) => "by a probe",
        None => "from probes around it",
    };
    // Threads may have ended between a block and the probes that its count is derived from.
    let slack = match found.kind {
        None if function.slack > 0 && count > 0.0 => function.slack as f64 / count,
        _ => 0.0,
    };
    let Some(seconds) = window else {
        let how = format!("every entry of a further run, {by}");
        return Ok(Entries { count, error: Some(slack), how });
    };
    if count == 0.0 {
        return Err(NotCounted::NotEntered);
    }
    // Another second has other entries.
    let error = slack.hypot(1.0 / count.sqrt());
    let how = format!("a second, from a window of {seconds:.1} s, {by}");
    Ok(Entries { count: count / seconds, error: Some(error), how })
}

/// Notes on the run, and whether its counts are consistent.
fn notes(report: &Report, counts: &Counts, wanted: &[Wanted], is_window: bool) -> Vec<String> {
    let functions: Vec<&FunctionCounts> = counts.functions.iter().flatten().collect();
    let checked: usize = functions.iter().map(|f| f.checked).sum();
    let wrong: Vec<&String> = functions.iter().flat_map(|f| &f.contradictions).collect();
    let first = report.duration.map_or(String::new(), |s| format!(" (first run: {s:.2} s)"));
    let run = if is_window { "a window of the process" } else { "a further run of the command" };
    let first = if is_window { String::new() } else { first };
    let mut text = format!(
        "entries are of {run} with {} in {}: {:.2} s{first}",
        several(counts.probes, "probe"),
        several(wanted.len(), "function"),
        counts.wall.as_secs_f64(),
    );
    if checked > 0 && wrong.is_empty() {
        let agree = if checked == 1 { "agrees" } else { "agree" };
        text += &format!("; {} of flow conservation {agree}", several(checked, "sum"));
    }
    let mut notes = vec![text];
    notes.extend(counts.notes.iter().cloned());
    if let Some(first) = wrong.first() {
        let number = wrong.len();
        notes.push(match is_window {
            true => format!("{number} sums of flow conservation differ: {first}"),
            false => format!(
                "{number} sums of flow conservation do not agree: {first}; control left or entered a \
                 block where its code does not show it"
            ),
        });
    }
    notes
}

/// Why a block has no entries.
#[derive(Debug, Clone)]
pub(super) enum NotCounted {
    /// Its code is in no file that can be read.
    NoFile(Unavailable),
    /// It is in no function.
    NoFunction,
    /// The run or the window failed.
    Run(Error),
    /// The run was over before any probe was set.
    Unplanned(Uncounted),
    /// It has no probe, and none around it tell.
    Probes(Uncounted),
    /// The run ended otherwise than the sampled one.
    OtherEnd(&'static str),
    /// Its file has no block there.
    NoBlock,
    /// Nothing came to it in the window.
    NotEntered,
}

impl fmt::Display for NotCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Unplanned(why) = self {
            return why.fmt(f);
        }
        f.write_str("not counted: ")?;
        f.write_str(match self {
            Self::NoFile(why) => return why.fmt(f),
            Self::Run(error) => return error.fmt(f),
            Self::Unplanned(why) | Self::Probes(why) => return why.fmt(f),
            Self::OtherEnd(why) => why,
            Self::NoFunction => "it has no function",
            Self::NoBlock => "no block begins at its address in the file",
            Self::NotEntered => "it was not entered in the window",
        })
    }
}

/// Why a run is not like the one that was sampled, so that its counts say nothing of that.
fn cut_short(
    report: &Report,
    ended: Option<pmu::Exit>,
    interrupted: Option<i32>,
) -> Option<&'static str> {
    if interrupted.is_some() {
        return Some("interrupted");
    }
    let same = report.exit? == Exit::from(ended?);
    (!same).then_some("a further run of the command ended otherwise than the first")
}
