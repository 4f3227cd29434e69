//! Counts the entries of the hottest blocks, and enters them into the report.

use super::clock::Clock;
use super::count_ask::CountAsk;
use super::estimate::{Entries, WINDOW, rate};
use super::plausible::contradiction;
use super::probed::probed;
use crate::documents::Report;
use pmu::breakpoints::{Limits, Site, cost, of_process};
use pmu::perf::{MOST_BREAKPOINTS, Signals};
use pmu::{Command, Target};
use profile::hot::{HotBlock, Profile};
use std::path::Path;
use std::time::Duration;
use tma::error::{Error, Result};

/// What was counted of a block, or why nothing was.
type Found = std::result::Result<Entries, String>;

/// Called with the number of counted blocks and of all.
type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// Whom a live measurement was of, if entries can be counted there.
///
/// # Errors
/// They cannot; with the remedy.
pub fn target(target: &Target, command: Option<&Command>) -> Result<CountAsk> {
    match (target, command) {
        (Target::Command, Some(command)) => Ok(CountAsk::Command(command.clone())),
        (Target::Process(pid), _) => Ok(CountAsk::Process(*pid)),
        _ => Err(Error::usage("--counts needs a command to run again, or one process")
            .because("entries are counted in one program")
            .hint("tdtool report --counts -- COMMAND, or -p PID")),
    }
}

/// Enters how often the report's blocks run. The signal that interrupted the counting, if one did.
///
/// # Errors
/// The command cannot be run again; breakpoints are refused.
pub fn enter(
    report: &mut Report,
    profile: &mut Profile,
    blocks: &[HotBlock],
    ask: &CountAsk,
    progress: Progress<'_>,
) -> Result<Option<i32>> {
    // To the end: what was found is not lost by a signal that comes between two runs.
    let signals = Signals::catch()?;
    progress(0, blocks.len());
    let probed = probed(report, profile, blocks, ask, &signals)?;
    report.notes.extend(probed.notes);
    for (row, found) in report.blocks.iter_mut().zip(probed.loops) {
        (row.loop_entries, row.loop_trips) = found.unzip();
    }
    let not = |why: String| match why.starts_with("not ") {
        true => why,
        false => format!("not counted: {why}"),
    };
    let mut found: Vec<_> = probed.blocks.into_iter().map(|found| found.map_err(not)).collect();
    let mut interrupted = probed.interrupted;
    if let (CountAsk::Process(pid), None) = (ask, interrupted)
        && found.iter().any(std::result::Result::is_err)
        && Path::new(&format!("/proc/{pid}")).exists()
    {
        let of = (*pid, &signals);
        match by_breakpoints(report, profile, blocks, of, &mut found, progress) {
            Ok(signal) => interrupted = signal,
            Err(error) if found.iter().all(std::result::Result::is_err) => return Err(error),
            // What probes have counted stands without them.
            Err(error) => report.notes.push(error.to_string()),
        }
    }
    progress(blocks.len(), blocks.len());
    // Counting slows a process, sampling does not: a share of time divided by entries would be that of no run.
    let is_live = matches!(ask, CountAsk::Process(_));
    if is_live {
        report.notes.push(
            "counting slows the process: its entries a second are those of that time, and give no time per \
             entry; `tdtool report --counts -- COMMAND` does"
                .to_owned(),
        );
    }
    let clock = Clock::of(report, profile)?;
    interrupted = interrupted.or(signals.next().map(|(signal, _)| signal));
    let is_timed = !is_live && found.iter().any(std::result::Result::is_ok);
    if let (Some(note), true) = (clock.note(), is_timed) {
        report.notes.push(note);
    }
    for (number, found) in found.into_iter().enumerate() {
        let row = &mut report.blocks[number];
        let entries = match found {
            Ok(entries) => entries,
            Err(why) => {
                row.entries_how = Some(why);
                continue;
            }
        };
        if is_live {
            (row.entries, row.entries_error) = (Some(entries.count), entries.error);
            row.entries_how = Some(entries.how);
            continue;
        }
        let cycles =
            clock.cycles().filter(|_| entries.count > 0.0).map(|c| c * row.share / entries.count);
        let sampling = 2.0 / (row.samples.max(1) as f64).sqrt();
        let error = sampling.hypot(entries.error.unwrap_or(0.0));
        let bytes = profile.code(&blocks[number]).unwrap_or_default();
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

/// Counts the blocks of a live process that probes have not counted, by breakpoints, in a window for each
/// few of them. The signal that interrupted it.
fn by_breakpoints(
    report: &mut Report,
    profile: &mut Profile,
    blocks: &[HotBlock],
    (pid, signals): (i32, &Signals),
    found: &mut [Found],
    progress: Progress<'_>,
) -> Result<Option<i32>> {
    let cost = cost().map_err(|errno| {
        Error::not_possible("blocks cannot be counted here")
            .because(format!("execute breakpoints do not work ({})", errno.desc()))
            .hint("leave --counts out; --measure needs no breakpoints")
    })?;
    let of: Vec<_> = blocks.iter().map(|block| sites(profile, block)).collect();
    let mut pending: Vec<usize> =
        (0..of.len()).filter(|at| of[*at].is_ok() && found[*at].is_err()).collect();
    let (mut time, mut interrupted) = (Duration::ZERO, None);
    while !pending.is_empty() && interrupted.is_none() {
        progress(of.len() - pending.len(), of.len());
        let (taken, sites) = choose(&of, &pending);
        let outcome = of_process(pid, &sites, (Limits::default(), cost), WINDOW, signals)?;
        time += outcome.wall;
        interrupted = outcome.interrupted;
        for &at in taken.iter().filter(|_| interrupted.is_none()) {
            let place = |site: &Site| sites.iter().position(|s| s == site);
            let own = of[at].as_ref().map_or(&[][..], Vec::as_slice);
            let places: Vec<usize> = own.iter().filter_map(place).collect();
            // Else the reason why it has no probe stays.
            if let Ok(entries) = rate(&outcome, &places) {
                found[at] = Ok(entries);
            }
        }
        pending.retain(|at| !taken.contains(at));
    }
    report.notes.push(format!(
        "entries without a probe are of {:.1} s of breakpoints; a counted entry costs {:.1} µs here",
        time.as_secs_f64(),
        cost.as_secs_f64() * 1e6
    ));
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

/// The first of the pending blocks with all that is around it, and what else finds room.
fn choose(
    of: &[std::result::Result<Vec<Site>, String>],
    pending: &[usize],
) -> (Vec<usize>, Vec<Site>) {
    let (mut taken, mut sites) = (Vec::new(), Vec::<Site>::new());
    for &at in pending {
        let own = of[at].iter().flatten();
        let new: Vec<Site> = own.filter(|s| !sites.contains(s)).cloned().collect();
        if sites.len() + new.len() <= MOST_BREAKPOINTS {
            sites.extend(new);
            taken.push(at);
        }
    }
    (taken, sites)
}
