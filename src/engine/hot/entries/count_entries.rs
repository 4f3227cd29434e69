//! Counts the entries of the hottest blocks in further runs, and enters them into the report.

use super::clock::Clock;
use super::count_ask::CountAsk;
use super::estimate::{Entries, Plan, TOO_HOT, WINDOW, gains, plans, rate, whole};
use super::plausible::contradiction;
use super::probed::probed;
use super::same_end::{INTERRUPTED, cut_short};
use crate::documents::Report;
use pmu::breakpoints::{Ask, Limits, Outcome, Site, Unusable, cost, of_command, of_process};
use pmu::perf::{MOST_BREAKPOINTS, Signals};
use pmu::{Command, Target};
use profile::hot::{HotBlock, Profile};
use std::time::{Duration, Instant};
use tma::error::{Error, Result};

/// Most further runs of the command.
const MAX_RUNS: usize = 10;
/// No further run is begun after this many times the time of the first one, and a minute.
const MOST_TIMES: f64 = 10.0;
const MOST_TIME: f64 = 60.0;
/// A number that is known no better than this is worth another run, planned from the first.
const GOOD: f64 = 0.03;
/// What the windows of such a run may take, in times of the first run's time; and at least and at
/// most, in seconds.
const PLANNED: (f64, f64, f64) = (1.0, 2.0, 30.0);
/// What hits of a place without an enclosing reference point may take, in times of the first run's time,
/// and at most, in seconds. Generous: others are scaled by it.
const ALONE: (f64, f64) = (10.0, 60.0);
/// Windows that a run as long as the first one has of a place that cannot be counted throughout.
const WINDOWS: f64 = 60.0;

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

/// Enters how often the report's blocks run. The signal that interrupted the counting, if one did.
///
/// # Errors
/// Breakpoints are refused; the command cannot be run again.
pub fn enter(
    report: &mut Report,
    profile: &mut Profile,
    blocks: &[HotBlock],
    ask: &CountAsk,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Option<i32>> {
    // To the end: what was found is not lost by a signal that comes between two runs.
    let signals = Signals::catch()?;
    let mut done: Vec<Option<Entries>> = vec![None; blocks.len()];
    progress(0, blocks.len());
    let probed = probed(report, profile, blocks, ask, &signals)?;
    report.notes.extend(probed.notes);
    let mut interrupted = probed.interrupted;
    for (row, found) in probed.blocks.into_iter().enumerate() {
        match found {
            Ok(entries) => done[row] = Some(entries),
            Err(why) => report.blocks[row].entries_how = Some(why),
        }
    }
    let mut wanted = Vec::new();
    for (row, done) in done.into_iter().enumerate() {
        wanted.push(Wanted { row, sites: Vec::new(), done });
    }
    let left = |want: &Wanted| want.done.is_none();
    if interrupted.is_none() && wanted.iter().any(left) {
        let found = by_breakpoints(report, profile, blocks, ask, (&mut wanted, &signals), progress);
        // What probes have counted stands without them.
        match found {
            Err(error) if wanted.iter().all(left) => return Err(error),
            Err(error) => report.notes.push(error.to_string()),
            Ok(signal) => interrupted = signal,
        }
    }
    let clock = Clock::of(report, profile)?;
    interrupted = interrupted.or(signals.next().map(|(signal, _)| signal));
    if let (Some(note), true) = (clock.note(), wanted.iter().any(|w| w.done.is_some())) {
        report.notes.push(note);
    }
    for want in wanted {
        let row = &mut report.blocks[want.row];
        let Some(entries) = want.done else {
            let why =
                if interrupted.is_some() { INTERRUPTED } else { "not counted: the time was up" };
            row.entries_how.get_or_insert_with(|| why.to_owned());
            continue;
        };
        let cycles =
            clock.cycles().filter(|_| entries.count > 0.0).map(|c| c * row.share / entries.count);
        let sampling = 2.0 / (row.samples.max(1) as f64).sqrt();
        let error = sampling.hypot(entries.error.unwrap_or(0.0));
        let bytes = profile.code(&blocks[want.row]).unwrap_or_default();
        if let Some(why) = cycles.and_then(|cycles| contradiction(&bytes, cycles, error)) {
            row.entries_how = Some(format!("not known: {why}"));
            continue;
        }
        if entries.count > 0.0 {
            row.ns_per_entry = clock.seconds.map(|s| s * row.share / entries.count * 1e9);
            row.per_entry_error = entries.error.map(|_| error);
            row.cycles_per_entry = cycles;
        }
        (row.entries, row.entries_error) = (Some(entries.count), entries.error);
        row.entries_how = Some(entries.how);
    }
    Ok(interrupted)
}

/// Counts by breakpoints what has no entries yet. The signal that interrupted it.
fn by_breakpoints(
    report: &mut Report,
    profile: &mut Profile,
    blocks: &[HotBlock],
    ask: &CountAsk,
    (wanted, signals): (&mut Vec<Wanted>, &Signals),
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Option<i32>> {
    let cost = cost().map_err(|errno| {
        Error::not_possible("blocks cannot be counted here")
            .because(format!("execute breakpoints do not work ({})", errno.desc()))
            .hint("leave --counts out; --measure needs no breakpoints")
    })?;
    let (mut counted, others): (Vec<Wanted>, Vec<Wanted>) =
        std::mem::take(wanted).into_iter().partition(|want| want.done.is_none());
    let mut without = Vec::new();
    for mut want in std::mem::take(&mut counted) {
        let row = &mut report.blocks[want.row];
        let probe = row.entries_how.take();
        match sites(profile, &blocks[want.row]) {
            Ok(sites) => {
                want.sites = sites;
                without.push((want.row, probe));
                counted.push(want);
            }
            Err(why) => row.entries_how = Some(format!("not counted: {why}")),
        }
    }
    let runs = count(report, &mut counted, (ask, cost), signals, progress);
    for (row, why) in without {
        let Some(why) = why else { continue };
        let text = report.blocks[row].entries_how.take();
        let done = counted.iter_mut().find(|want| want.row == row).and_then(|w| w.done.as_mut());
        match (done, text) {
            (Some(entries), _) => entries.how += &format!("; no probe: {why}"),
            (None, text) => {
                let text = text.unwrap_or_else(|| "not counted".to_owned());
                report.blocks[row].entries_how = Some(format!("{text}; no probe: {why}"));
            }
        }
    }
    wanted.extend(others);
    wanted.append(&mut counted);
    let (runs, interrupted) = runs?;
    report.notes.push(overhead(report, ask, &runs, cost));
    Ok(interrupted)
}

/// The block's first instruction, then places around it.
fn sites(profile: &mut Profile, block: &HotBlock) -> std::result::Result<Vec<Site>, String> {
    let mut addresses = vec![block.start];
    addresses.extend(profile.around(block));
    addresses.truncate(MOST_BREAKPOINTS);
    let site = |address| profile.offset(block, address).map(|(path, offset)| Site { path, offset });
    addresses.into_iter().map(site).collect()
}

/// Counts until all is known, the time is up, or a signal comes. Wall times of the runs.
fn count(
    report: &mut Report,
    wanted: &mut [Wanted],
    (ask, cost): (&CountAsk, Duration),
    signals: &Signals,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<(Vec<Duration>, Option<i32>)> {
    let mut limits = Limits::default();
    if let (CountAsk::Command(_), Some(duration)) = (ask, report.duration) {
        limits.pause = limits.pause.min(Duration::from_secs_f64(duration.max(0.0) / WINDOWS));
    }
    let alone = (ALONE.0 * report.duration.unwrap_or(0.0)).min(ALONE.1);
    limits.alone = limits.alone.max((alone / cost.as_secs_f64().max(1e-7)) as u64);
    let begin = Instant::now();
    let enough = MOST_TIMES * report.duration.unwrap_or(0.0) + MOST_TIME;
    let all = wanted.len();
    let mut pending: Vec<usize> = (0..all).collect();
    let (mut walls, mut interrupted) = (Vec::new(), None);
    let mut planned: Option<Vec<(Site, u64)>> = None;
    let mut too_hot = Vec::new();
    let planned_time = PLANNED.0 * report.duration.unwrap_or(0.0);
    limits.planned = Duration::from_secs_f64(planned_time.clamp(PLANNED.1, PLANNED.2));
    for _ in 0..MAX_RUNS {
        if pending.is_empty() || begin.elapsed().as_secs_f64() > enough {
            break;
        }
        progress(all - pending.len(), all);
        let (taken, sites) = choose(wanted, &pending);
        let around = around(wanted, &taken, &sites);
        let again = planned.take();
        let stride = |site: &Site| {
            let strides = again.as_ref()?;
            strides.iter().find(|(of, _)| of == site).map(|(_, stride)| *stride)
        };
        let strides_now: Vec<Option<u64>> = sites.iter().map(stride).collect();
        let ask_now =
            Ask { sites: &sites, enclosing: &around, strides: &strides_now, limits, cost };
        let outcome = match ask {
            CountAsk::Command(command) => of_command(command, ask_now, signals)?,
            CountAsk::Process(pid) => of_process(*pid, &sites, (limits, cost), WINDOW, signals)?,
        };
        walls.push(outcome.wall);
        interrupted = outcome.interrupted;
        let short = cut_short(report, outcome.exit, outcome.interrupted);
        let next = plans(&outcome, limits.planned.as_secs_f64(), cost.as_secs_f64());
        let mut worth_another = false;
        for &at in &taken {
            let want = &mut wanted[at];
            let place = |site: &Site| sites.iter().position(|s| s == site);
            let places: Vec<usize> = want.sites.iter().filter_map(place).collect();
            let found = match ask {
                _ if short.is_some() => Err(short.clone().unwrap_or_default()),
                CountAsk::Command(_) => whole(&outcome, &places),
                CountAsk::Process(_) => rate(&outcome, &places),
            };
            let error = |e: &Entries| e.error.unwrap_or(0.0);
            let is_sampled = |at: &&usize| outcome.sampled.get(**at).is_some_and(Option::is_some);
            let is_good = found.as_ref().is_ok_and(|e| error(e) <= GOOD);
            if let Some(block) = places.first().filter(is_sampled) {
                worth_another |= !is_good && gains(&outcome, *block, &next);
            }
            match found {
                Ok(entries) => {
                    let better = want.done.as_ref().is_none_or(|d| error(&entries) < error(d));
                    if better {
                        want.done = Some(entries);
                    }
                }
                Err(why) => report.blocks[want.row].entries_how = Some(why),
            }
        }
        if interrupted.is_some() {
            break;
        }
        if !worth_another || short.is_some() || again.is_some() {
            pending.retain(|at| !taken.contains(at));
        } else {
            let of_site =
                |(site, plan): (&Site, &Option<Plan>)| Some((site.clone(), (*plan)?.stride));
            planned = Some(sites.iter().zip(&next).filter_map(of_site).collect());
        }
        too_hot.extend(lost(&outcome, &sites));
        pending.retain(|&at| {
            let helps = leave_out(&mut wanted[at].sites, &too_hot);
            if !helps && wanted[at].done.is_none() {
                report.blocks[wanted[at].row].entries_how = Some(TOO_HOT.to_owned());
            }
            helps
        });
    }
    progress(all, all);
    Ok((walls, interrupted))
}

/// Places that were entered too often to be counted, and so are of no use to any block.
fn lost(outcome: &Outcome, sites: &[Site]) -> Vec<Site> {
    let spoiled = |at: usize| outcome.sampled.get(at)?.as_ref()?.unusable;
    let is_lost = |at: usize| {
        matches!(spoiled(at), Some(Unusable::NoReference | Unusable::ReferenceUnusable))
    };
    (0..sites.len()).filter(|at| is_lost(*at)).map(|at| sites[at].clone()).collect()
}

/// Leaves those places out of a block's. Whether it can still be counted.
fn leave_out(sites: &mut Vec<Site>, lost: &[Site]) -> bool {
    let before = sites.len();
    let block = sites.first().cloned();
    sites.retain(|site| Some(site) == block.as_ref() || !lost.contains(site));
    let was_left_alone = sites.len() == 1 && before > 1;
    let is_lost = sites.len() == 1 && block.is_some_and(|b| lost.contains(&b));
    !was_left_alone && !is_lost
}

/// The first of the pending blocks with all that is around it, and what else finds room.
fn choose(wanted: &[Wanted], pending: &[usize]) -> (Vec<usize>, Vec<Site>) {
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

/// For each place, those that enclose it.
fn around(wanted: &[Wanted], taken: &[usize], sites: &[Site]) -> Vec<Vec<usize>> {
    let mut around = vec![Vec::new(); sites.len()];
    for &at in taken {
        let place = |site: &Site| sites.iter().position(|s| s == site);
        let places: Vec<usize> = wanted[at].sites.iter().filter_map(place).collect();
        for (number, &place) in places.iter().enumerate() {
            if around[place].len() < places.len() - number - 1 {
                around[place] = places[number + 1..].to_vec();
            }
        }
    }
    around
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
