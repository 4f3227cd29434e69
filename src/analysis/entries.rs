//! How often the hot blocks of a report are entered, and so what an entry costs in the program.
//!
//! Entries are counted by execute breakpoints in further runs of the command, or in a window of a
//! live process. A block that is entered too often to be counted throughout follows from a colder
//! one that was: the head of a loop around its own, or the start of its function.

use crate::block::{Options, Profiler};
use crate::collect::breakpoints::{
    Counted, Known, Limits, Outcome, Site, cost, of_command, of_process,
};
use crate::collect::perf::{MOST_BREAKPOINTS, tsc_hz_here};
use crate::collect::{Command, Target};
use crate::error::{Error, Result};
use crate::profile::hot::{HotBlock, Profile};
use crate::report::Report;
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
/// Entries of the colder place that a ratio needs.
const LEAST: u64 = 8;

/// What is to be counted of one block.
struct Wanted {
    row: usize,
    /// The block, then what is around it.
    sites: Vec<Site>,
    done: Option<Entries>,
}

/// How often a block is entered.
#[derive(Debug, Clone, PartialEq)]
struct Entries {
    count: f64,
    /// Half width, as a ratio; `None` where there may have been any number more.
    error: Option<f64>,
    how: String,
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

/// Entries of a whole run. `places`: the block's, then those around it.
fn whole(outcome: &Outcome, places: &[usize]) -> std::result::Result<Entries, String> {
    let (&block, around) = places.split_first().ok_or("not counted")?;
    let known = |at: usize| {
        let counted = outcome.counted[at];
        (counted.known == Known::Whole).then_some((counted.hits as f64, 0.0))
    };
    if let Some((count, error)) = known(block) {
        let how = "every entry of a further run".to_owned();
        return Ok(Entries { count, error: Some(error), how });
    }
    let counted = outcome.counted[block];
    match counted.known {
        Known::Never => return Err("not counted: its file was not mapped again".to_owned()),
        Known::Late => {
            let how = "at least: every entry from when a child of the command was found to run";
            return Ok(Entries { count: counted.hits as f64, error: None, how: how.to_owned() });
        }
        Known::Whole | Known::Windows => {}
    }
    chain(outcome, block, around, &known)
        .map(|(count, error)| Entries {
            count,
            error: Some(error),
            how: format!(
                "{} in windows of a further run, scaled by a colder place around it",
                counted.hits
            ),
        })
        .ok_or_else(|| too_often(counted))
}

fn too_often(counted: Counted) -> String {
    format!(
        "not known: {} entries were counted in {:.2} s, too many to count them all, and no colder \
         place around it ran often enough beside them",
        counted.hits,
        counted.on.as_secs_f64()
    )
}

/// What is known of colder places, and how well, carried up to hotter ones: each time the ratio of
/// two that were counted together.
fn chain(
    outcome: &Outcome,
    block: usize,
    around: &[usize],
    known: &dyn Fn(usize) -> Option<(f64, f64)>,
) -> Option<(f64, f64)> {
    let mut found: Vec<(usize, f64, f64)> = Vec::new();
    // From the coldest inwards, the block last.
    for &at in around.iter().rev().chain([&block]) {
        let direct = known(at);
        let through = |&(colder, count, error): &(usize, f64, f64)| {
            let (hits, base, windows) = outcome.together[at][colder];
            // A window begins and ends anywhere between two entries of the colder place: up to one
            // entry more or less, in each window by chance (the difference of two evenly spread
            // ends has a standard deviation of 0.41; twice that, rounded up, is 1).
            let edge = (windows as f64).sqrt() / base as f64;
            let ratio = hits as f64 / base as f64;
            (base >= LEAST && hits > 0).then(|| (count * ratio, error.hypot(edge)))
        };
        let best = found.iter().filter_map(through).min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((count, error)) = direct.or(best) {
            found.push((at, count, error));
        }
    }
    found.into_iter().find(|f| f.0 == block).map(|(_, count, error)| (count, error))
}

/// Entries a second of a live process.
fn rate(outcome: &Outcome, places: &[usize]) -> std::result::Result<Entries, String> {
    let (&block, around) = places.split_first().ok_or("not counted")?;
    let known = |at: usize| {
        let Counted { hits, on, slowed, .. } = outcome.counted[at];
        // What hits take keeps a program from running if they are all of one thread, and not at all
        // if they are of others: half of it, give or take as much.
        let half = 0.5 * slowed.as_secs_f64();
        let time = on.as_secs_f64() - half;
        let error = (1.0 / (hits.max(1) as f64).sqrt()).hypot(half / (time - half));
        (on >= WINDOW / 10 && hits > 0 && slowed < on / 2).then(|| (hits as f64 / time, error))
    };
    let counted = outcome.counted[block];
    if counted.known == Known::Never {
        return Err("not counted: its file is not mapped there".to_owned());
    }
    let seconds = WINDOW.as_secs();
    if counted.known != Known::Windows
        && let Some((count, error)) = known(block)
    {
        let how = format!("a second, from a window of {seconds} s");
        return Ok(Entries { count, error: Some(error), how });
    }
    let around: Vec<usize> =
        around.iter().copied().filter(|a| outcome.counted[*a].known != Known::Windows).collect();
    let known = |at: usize| if at == block { None } else { known(at) };
    chain(outcome, block, &around, &known)
        .map(|(count, error)| Entries {
            count,
            error: Some(error),
            how: format!(
                "a second, from {} in parts of {seconds} s, scaled by a colder place around it",
                counted.hits
            ),
        })
        .ok_or_else(|| too_often(counted))
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

/// What share of time means in seconds and cycles.
struct Clock {
    /// CPU time of the samples, in a run or a second.
    seconds: Option<f64>,
    /// Cycles, where samples are of them.
    counted: Option<f64>,
    /// Hertz, estimated.
    hertz: Option<f64>,
}

impl Clock {
    fn of(report: &Report, profile: &Profile) -> Result<Self> {
        let per = if report.command.is_some() || report.exit.is_some() {
            1.0
        } else {
            report.duration.unwrap_or(1.0)
        };
        let base = profile.event.split(':').next().unwrap_or_default();
        if base.contains("cycles") {
            return Ok(Self { seconds: None, counted: Some(profile.weight() / per), hertz: None });
        }
        if !matches!(base, "cpu-clock" | "task-clock") {
            return Ok(Self { seconds: None, counted: None, hertz: None });
        }
        let clock = report.software.get("task_clock_ms").copied().flatten();
        let ratio = Profiler::new(Options::default()).cycles_per_tick()?;
        let hertz = ratio.zip(tsc_hz_here()).map(|(ratio, hertz)| ratio * hertz);
        Ok(Self { seconds: clock.map(|ms| ms / 1e3 / per), counted: None, hertz })
    }

    fn cycles(&self) -> Option<f64> {
        self.counted.or(self.seconds.zip(self.hertz).map(|(s, h)| s * h))
    }

    fn note(&self) -> Option<String> {
        self.hertz.map(|hertz| {
            format!(
                "cycles per entry are an estimate: time by samples at {:.2} GHz, the core clock that \
                 the block profiler's add chain showed afterwards",
                hertz / 1e9
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3,000 hits in 2 s, which took 0.4 s: 1,500 to 1,875 a second, whether they delayed the
    /// program or other threads alone.
    #[test]
    fn a_rate_covers_what_counting_itself_took() {
        let seconds = Duration::from_secs_f64;
        let counted =
            Counted { hits: 3_000, known: Known::Late, on: seconds(2.0), slowed: seconds(0.4) };
        let outcome = Outcome { counted: vec![counted], ..Outcome::default() };
        let rate = rate(&outcome, &[0]).expect("known");
        let error = rate.error.expect("known") * rate.count;
        assert!(rate.count - error <= 1_500.0 && rate.count + error >= 1_875.0, "{rate:?}");
        assert!(rate.count > 1_500.0 && rate.count < 1_875.0, "{rate:?}");
    }

    /// Three loops, 1,000 times each within the other: the innermost in windows alone.
    #[test]
    fn what_is_too_hot_to_count_follows_from_what_is_around_it() {
        let counted = |hits, known| Counted { hits, known, ..Counted::default() };
        let mut outcome = Outcome {
            counted: vec![
                counted(60_000, Known::Windows),
                counted(90_000, Known::Windows),
                counted(1_000, Known::Whole),
                counted(1, Known::Whole),
            ],
            together: vec![vec![(0, 0, 0); 4]; 4],
            ..Outcome::default()
        };
        outcome.together[0][1] = (60_000, 60, 3);
        outcome.together[1][2] = (90_000, 90, 1);
        outcome.together[0][3] = (60_000, 1, 1);
        let entries = whole(&outcome, &[0, 1, 2, 3]).expect("known");
        let found = entries.error.expect("known");
        assert!((entries.count - 1e9).abs() < 1.0, "{entries:?}");
        // 3 windows of 60 entries, then 1 of 90, independent of one another.
        let error = (3.0f64 / 3600.0 + 1.0 / 8100.0).sqrt();
        assert!((found - error).abs() < 1e-9, "{entries:?}");
        assert!(whole(&outcome, &[0, 3]).unwrap_err().starts_with("not known"));
        assert_eq!(whole(&outcome, &[2]).map(|e| (e.count, e.error)), Ok((1_000.0, Some(0.0))));
        // What a child did before it was found is unknown: no error can be told.
        outcome.counted[2].known = Known::Late;
        let late = whole(&outcome, &[2]).expect("a lower bound");
        assert!(late.error.is_none() && late.how.starts_with("at least"), "{late:?}");
    }
}
