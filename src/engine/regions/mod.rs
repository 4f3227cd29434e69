//! The regions of a command or process: its markers found, probed in one run or window, and what they logged as a document.
//!
//! | file | concern |
//! |---|---|
//! | `ask` | which regions |
//! | `find` | the markers of files, and what is asked for by name |
//! | `lines` | from one source line to another |
//! | `rows` | entries and times as rows |
//! | `trees` | where the time of each region goes, by samples of the run |

mod ask;
mod find;
mod lines;
mod rows;
mod trees;

use crate::count::program;
use pmu::perf::{Signals, ticks_and_monotonic, tsc_hz_here};
use probe::regions::{Marked, Progress, Site, Window, mark, mark_process};
use report::documents::Exit;
use report::documents::regions::{NotProbed, Regions, SCHEMA};
use std::path::PathBuf;
use tma::{Error, Result};
use trees::Sampling;

pub use ask::{Followed, RegionsAsk};
pub use trees::{Trees, TreesAsk, counted_trees};

/// Runs the command once, or watches the process; with `trees` it is sampled, too. With the document, the exit status that a shell would give; it is 1
/// where probes remain in a process.
///
/// # Errors
/// It has no markers, or cannot be started or traced.
pub fn regions(
    ask: &RegionsAsk,
    trees: Option<&TreesAsk<'_>>,
    progress: Progress<'_>,
) -> Result<(Regions, i32)> {
    let program = match &ask.of {
        Followed::Command(command) => program::program(command)?,
        Followed::Process(pid, _) => running(*pid)?,
    };
    let sites = find::sites(&program, ask)?;
    let hz = tsc_hz_here().ok_or_else(|| {
        Error::not_possible("regions cannot be timed here")
            .because("the frequency of the time stamp counter is not known")
    })?;
    let signals = Signals::catch()?;
    let mut sampling = trees.map(Sampling::new).transpose()?;
    let before = ticks_and_monotonic();
    let mut attach = |pid| sampling.as_mut().map_or(Ok(()), |sampling| sampling.attach(pid));
    let marked = match &ask.of {
        Followed::Command(command) => mark(command, &sites, &signals, &mut attach)?,
        Followed::Process(pid, length) => {
            attach(*pid)?;
            let window = Window { pid: *pid, length: *length, signals: &signals };
            mark_process(&window, &sites, progress)?
        }
    };
    let after = ticks_and_monotonic();
    // Further runs catch them themselves.
    drop(signals);
    let mut document = document(ask, &sites, &marked, hz);
    let mut found = Trees::new();
    if let Some(sampling) = sampling {
        let further;
        (found, further) = sampling.trees(&marked.tree, before.zip(after), &mut document)?;
        document.interrupted = document.interrupted.or(further);
    }
    document.regions = rows::regions(&marked.tree, hz, found);
    let notes = rows::notes(&document, &marked.tree);
    document.notes.extend(notes);
    let code = match (document.interrupted, marked.exit) {
        _ if marked.remains => 1,
        (Some(signal), _) => 128 + signal,
        (None, exit) => exit.map_or(0, |exit| Exit::from(exit).code()),
    };
    Ok((document, code))
}

/// The program of a process, by a path that leads to it also where the file was replaced since.
fn running(pid: i32) -> Result<PathBuf> {
    let path = program::executable(pid)?;
    Ok(if path.is_file() { path } else { PathBuf::from(format!("/proc/{pid}/exe")) })
}

/// The words of what is followed.
fn words(ask: &RegionsAsk) -> Vec<String> {
    match &ask.of {
        Followed::Command(command) => {
            command.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect()
        }
        Followed::Process(pid, _) => {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
            words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
        }
    }
}

fn document(ask: &RegionsAsk, sites: &[Site], marked: &Marked, hz: f64) -> Regions {
    let refused = sites.iter().zip(&marked.refused);
    let refused = refused.filter_map(|(site, why)| {
        Some(NotProbed {
            module: site.code.path.display().to_string(),
            address: site.at.into(),
            reason: why.as_ref()?.to_string(),
        })
    });
    let tree = &marked.tree;
    let pair = 2.0 * tree.ticks as f64 / tree.events.max(1) as f64 / hz;
    Regions {
        schema: SCHEMA.to_owned(),
        command: words(ask),
        process: match ask.of {
            Followed::Command(_) => None,
            Followed::Process(pid, _) => Some(pid),
        },
        exit: marked.exit.map(Exit::from),
        interrupted: marked.interrupted,
        duration: marked.wall.as_secs_f64(),
        markers: tree.events + marked.lost,
        lost: marked.lost,
        pair_cost: (tree.events > 0).then_some(pair),
        regions: Vec::new(),
        not_probed: refused.collect(),
        sampled: None,
        notes: match &ask.of {
            Followed::Command(command) => program::notes(command),
            Followed::Process(..) => marked.notes.clone(),
        },
    }
}
