//! Counts the entries of the hottest blocks, and enters them into the report.

use super::clock::Clock;
use super::count_ask::CountAsk;
use super::plausible::contradiction;
use super::probed::probed;
use pmu::perf::Signals;
use pmu::{Command, Target};
use profile::hot::{HotBlock, Profile};
use report::documents::Report;
use tma::{Error, Result};

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
            .hint("`tdtool report --counts -- COMMAND` or `tdtool report --counts -p PID`")),
    }
}

/// Enters how often the report's blocks run. The signal that interrupted the counting, if one did.
///
/// # Errors
/// The command cannot be run again.
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
    let found = probed.blocks;
    let mut interrupted = probed.interrupted;
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
                row.entries_how = Some(why.to_string());
                continue;
            }
        };
        if is_live {
            (row.entries, row.entries_error) = (Some(entries.count), entries.error);
            row.entries_how = Some(entries.how);
            continue;
        }
        let cycles = clock
            .cycles()
            .filter(|_| entries.count > 0.0)
            .map(|c| c * row.code.share / entries.count);
        let sampling = 2.0 / (row.code.samples.max(1) as f64).sqrt();
        let error = sampling.hypot(entries.error.unwrap_or(0.0));
        let bytes = profile.code(&blocks[number]).unwrap_or_default();
        if let Some(why) = cycles.and_then(|cycles| contradiction(&bytes, cycles, error)) {
            row.entries_how = Some(format!("not known: {why}"));
            continue;
        }
        if entries.count > 0.0 {
            row.ns_per_entry = clock.seconds.map(|s| s * row.code.share / entries.count * 1e9);
            row.per_entry_error = entries.error.map(|_| error);
            row.cycles_per_entry = cycles;
        }
        (row.entries, row.entries_error) = (Some(entries.count), entries.error);
        row.entries_how = Some(entries.how);
    }
    Ok(interrupted)
}
