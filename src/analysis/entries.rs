//! How often the hot blocks of a report are entered, and so what an entry costs in the program.
//!
//! Entries are counted by execute breakpoints in further runs of the command, or in a window of a
//! live process. A block that is entered too often to be counted throughout follows from a colder
//! one that was: the head of a loop around its own, or the start of its function.

mod clock;
mod estimate;

use crate::collect::breakpoints::{Limits, Site, cost, of_command, of_process};
use crate::collect::perf::MOST_BREAKPOINTS;
use crate::collect::{Command, Target};
use crate::error::{Error, Result};
use crate::profile::hot::{HotBlock, Profile};
use crate::report::Report;
use clock::Clock;
use estimate::{Entries, rate, whole};
use std::time::{Duration, Instant};

/// Whom to count.
#[derive(Debug, Clone)]
pub enum CountAsk {
    /// Further runs of this command.
    Command(Command),
    /// A window of this process.
    Process(i32),
}

/// Window of a live process, for each turn of at most four places.
const WINDOW: Duration = Duration::from_secs(2);
/// Most further runs of the command.
const MOST_RUNS: u32 = 6;
/// No further run is begun after this many times the time of the first one, and a minute.
const MOST_TIMES: f64 = 10.0;
const MOST_TIME: f64 = 60.0;

/// What is to be counted of one block.
struct Wanted {
    row: usize,
    /// The block, then what is around it.
    sites: Vec<Site>,
    done: Option<Entries>,
}

/// Whom a live measurement was of, if entries can be counted there.
///
/// # Errors
/// They cannot; with the remedy.
pub fn target(target: &Target, command: Option<&Command>) -> Result<CountAsk> {
    match (target, command) {
        (Target::Command, Some(command)) => Ok(CountAsk::Command(command.clone())),
        (Target::Process(pid), _) => Ok(CountAsk::Process(*pid)),
        _ => Err(Error::usage("--counts needs a command to run again, or one process")
            .because("breakpoints are set in one program")
            .hint("tdtool report --counts -- COMMAND, or -p PID")),
    }
}

/// Enters how often the report's blocks run.
///
/// # Errors
/// Breakpoints are refused; the command cannot be run again.
pub fn enter(
    report: &mut Report,
    profile: &mut Profile,
    blocks: &[HotBlock],
    ask: &CountAsk,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<()> {
    let cost = cost().map_err(|errno| {
        Error::not_possible("blocks cannot be counted here")
            .because(format!("execute breakpoints do not work ({})", errno.desc()))
            .hint("leave --counts out; --measure needs no breakpoints")
    })?;
    let mut wanted = Vec::new();
    for (row, block) in blocks.iter().enumerate() {
        match sites(profile, block) {
            Ok(sites) => wanted.push(Wanted { row, sites, done: None }),
            Err(why) => report.blocks[row].entries_how = Some(format!("not counted: {why}")),
        }
    }
    let runs = count(report, &mut wanted, ask, cost, progress)?;
    report.notes.push(overhead(report, ask, &runs, cost));
    let clock = Clock::of(report, profile)?;
    if let (Some(note), true) = (clock.note(), wanted.iter().any(|w| w.done.is_some())) {
        report.notes.push(note);
    }
    for want in wanted {
        let row = &mut report.blocks[want.row];
        let Some(entries) = want.done else {
            row.entries_how.get_or_insert_with(|| "not counted: the time was up".to_owned());
            continue;
        };
        if entries.count > 0.0 {
            row.ns_per_entry = clock.seconds.map(|s| s * row.share / entries.count * 1e9);
            let sampling = 2.0 / (row.samples.max(1) as f64).sqrt();
            row.per_entry_error = entries.error.map(|error| sampling.hypot(error));
            row.cycles_per_entry = clock.cycles().map(|c| c * row.share / entries.count);
        }
        (row.entries, row.entries_error) = (Some(entries.count), entries.error);
        row.entries_how = Some(entries.how);
    }
    Ok(())
}

/// The block's first instruction, then places around it.
fn sites(profile: &mut Profile, block: &HotBlock) -> std::result::Result<Vec<Site>, String> {
    let mut addresses = vec![block.start];
    addresses.extend(profile.around(block));
    addresses.truncate(MOST_BREAKPOINTS);
    let site = |address| profile.offset(block, address).map(|(path, offset)| Site { path, offset });
    addresses.into_iter().map(site).collect()
}

/// Counts until all is known or the time is up. Wall times of the runs.
fn count(
    report: &mut Report,
    wanted: &mut [Wanted],
    ask: &CountAsk,
    cost: Duration,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Duration>> {
    let begin = Instant::now();
    let enough = MOST_TIMES * report.duration.unwrap_or(0.0) + MOST_TIME;
    let all = wanted.len();
    let mut pending: Vec<usize> = (0..all).collect();
    let mut walls = Vec::new();
    for _ in 0..MOST_RUNS {
        if pending.is_empty() || begin.elapsed().as_secs_f64() > enough {
            break;
        }
        progress(all - pending.len(), all);
        let (taken, sites) = turn(wanted, &pending);
        let outcome = match ask {
            CountAsk::Command(command) => of_command(command, &sites, Limits::default(), cost)?,
            CountAsk::Process(pid) => of_process(*pid, &sites, (Limits::default(), cost), WINDOW)?,
        };
        walls.push(outcome.wall);
        for &at in &taken {
            let want = &mut wanted[at];
            let place = |site: &Site| sites.iter().position(|s| s == site);
            let places: Vec<usize> = want.sites.iter().filter_map(place).collect();
            let found = match ask {
                CountAsk::Command(_) => whole(&outcome, &places),
                CountAsk::Process(_) => rate(&outcome, &places),
            };
            match found {
                Ok(entries) => want.done = Some(entries),
                Err(why) => report.blocks[want.row].entries_how = Some(why),
            }
        }
        pending.retain(|at| !taken.contains(at));
        if outcome.interrupted.is_some() {
            break;
        }
    }
    progress(all, all);
    Ok(walls)
}

/// The first of the pending blocks with all that is around it, and what else finds room.
fn turn(wanted: &[Wanted], pending: &[usize]) -> (Vec<usize>, Vec<Site>) {
    let (mut taken, mut sites) = (Vec::new(), Vec::<Site>::new());
    for &at in pending {
        let new: Vec<&Site> = wanted[at].sites.iter().filter(|s| !sites.contains(s)).collect();
        if sites.len() + new.len() <= MOST_BREAKPOINTS {
            let new: Vec<Site> = new.into_iter().cloned().collect();
            sites.extend(new);
            taken.push(at);
        }
    }
    (taken, sites)
}

/// What counting has cost.
fn overhead(report: &Report, ask: &CountAsk, walls: &[Duration], cost: Duration) -> String {
    let each = format!("a counted entry costs {:.1} µs here", cost.as_secs_f64() * 1e6);
    let sum: f64 = walls.iter().map(Duration::as_secs_f64).sum();
    match ask {
        CountAsk::Command(_) => {
            let first = report.duration.map_or(String::new(), |d| format!(" ({d:.2} s without)"));
            let runs = walls.len();
            let times: Vec<String> =
                walls.iter().map(|w| format!("{:.2} s", w.as_secs_f64())).collect();
            format!(
                "entries are of {runs} further runs of the command: {}{first}; {each}",
                times.join(", ")
            )
        }
        CountAsk::Process(_) => {
            format!("entries are of {sum:.1} s after the samples; {each}")
        }
    }
}
