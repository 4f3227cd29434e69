//! Measures the regions of a command or process: finds its markers, probes them in one run or window, and makes the
//! document with their entries and times from the log.
//!
//! | file | concern |
//! |---|---|
//! | `find` | what is asked for: markers of files, names, lines |
//! | `trees` | where the time of each region goes, by samples of the run |

mod find;
mod trees;

use crate::count::ask;
pub use find::{Followed, RegionsAsk};
use pmu::perf::{Signals, ticks_and_monotonic, tsc_hz_here};
use probe::regions::{Marked, Progress, Site, Stats, Tree, Window, mark, mark_process};
use report::documents::Exit;
use report::documents::regions::{NotProbed, Region, Regions, SCHEMA, ThreadRow, Times};
use report::format::seconds;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tma::{Error, Result};
use trees::Sampling;
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
        Followed::Command(command) => ask::program(command)?,
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
            let window = Window { pid: *pid, is_child: false, length: *length, signals: &signals };
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
    document.regions = rows(&marked.tree, hz, found);
    let notes = notes(&document, &marked.tree);
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
    let path = ask::executable(pid)?;
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
            Followed::Command(command) => ask::notes(command),
            Followed::Process(..) => marked.notes.clone(),
        },
    }
}

/// Shortest entry that has a time, as a multiple of the time of the probes of its markers.
const LEAST: u64 = 20;

/// Shortest entry also as a multiple of the probes inside it, as a part of what a probe costs the program (an eighth to
/// a half) is not in the time that it logs itself.
const LEAST_INSIDE: u64 = 10;

/// The regions, each after the one around it, in the order of their first entries, with trees by region and thread.
fn rows(tree: &Tree, hz: f64, mut trees: Trees) -> Vec<Region> {
    let mut inside: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (number, node) in tree.nodes.iter().enumerate() {
        inside.entry(node.parent).or_default().push(number);
    }
    let mut rows = Vec::new();
    let mut pending: Vec<usize> = inside.get(&None).into_iter().flatten().rev().copied().collect();
    while let Some(number) = pending.pop() {
        rows.push(region(tree, number, hz, &mut trees));
        pending.extend(inside.get(&Some(number)).into_iter().flatten().rev());
    }
    rows
}

fn region(tree: &Tree, number: usize, hz: f64, trees: &mut Trees) -> Region {
    let mut all = Stats::default();
    let mut threads = Vec::new();
    for (index, thread) in tree.threads.iter().enumerate() {
        let Some(own) = thread.stats.get(&number) else { continue };
        all.add(own);
        let (process, of) = (thread.process, times(own, hz));
        let tree = trees.remove(&(number as u32, Some(index as u32)));
        threads.push(ThreadRow { process, thread: thread.tid, number: index, of, tree });
    }
    if let [only] = threads.as_mut_slice() {
        only.tree = None;
    }
    let name = |number: usize| tree.names[tree.nodes[number].name].clone();
    let around = std::iter::successors(tree.nodes[number].parent, |n| tree.nodes[*n].parent);
    let mut inside: Vec<String> = around.map(name).collect();
    inside.reverse();
    Region {
        name: name(number),
        inside,
        all: times(&all, hz),
        tree: trees.remove(&(number as u32, None)),
        threads,
    }
}

fn times(of: &Stats, hz: f64) -> Times {
    let timed = of.timed();
    let too_short = timed > 0 && (of.time < LEAST * of.edges || of.time < LEAST_INSIDE * of.inside);
    let reason = if timed == 0 {
        Some("it never ended".to_owned())
    } else if too_short {
        let each = |ticks: u64| ticks as f64 / timed as f64;
        let (mean, cost) = (each(of.time), each(of.edges + of.inside));
        Some(format!(
            "too short to time: {} per entry, and the probes of its markers and those inside take {}",
            seconds(mean / hz),
            seconds(cost / hz)
        ))
    } else {
        None
    };
    let time = |ticks: u64| reason.is_none().then_some(ticks as f64 / hz);
    Times {
        entries: of.entries,
        recursive: of.recursive,
        unfinished: of.unfinished,
        time: time(of.time),
        mean: time(of.time).map(|time| time / timed.max(1) as f64),
        min: time(of.shortest),
        max: time(of.longest),
        probes_inside: of.inside as f64 / hz,
        reason,
        too_short,
    }
}

/// Limits of the document.
fn notes(document: &Regions, tree: &Tree) -> Vec<String> {
    let mut notes = Vec::new();
    if document.markers == 0 {
        notes.push("no marker was executed".to_owned());
    }
    if document.lost > 0 {
        notes.push(format!(
            "{} of {} markers were not logged, as there was no room for a second: entries and times are too low, \
             and what was open then counts as never ended",
            document.lost, document.markers
        ));
    }
    if tree.left_out > 0 {
        notes.push(format!("{} entries were left out: too many regions", tree.left_out));
    }
    let mut stray: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, number) in tree.threads.iter().flat_map(|thread| &thread.stray) {
        *stray.entry(&tree.names[*name]).or_default() += number;
    }
    if document.process.is_some() {
        // One of each thread may have begun before the window.
        let threads = tree.threads.len() as u64;
        stray.retain(|_, number| *number > threads);
    }
    notes.extend(stray.into_iter().take(10).map(|(name, number)| {
        format!("`{name}` ended {number} times without a begin in the same thread")
    }));
    if !document.not_probed.is_empty() {
        let first = &document.not_probed[0];
        notes.push(format!(
            "{} not probed, the first at {} of {}: {}",
            match document.not_probed.len() {
                1 => "1 marker was".to_owned(),
                number => format!("{number} markers were"),
            },
            first.address,
            first.module,
            first.reason
        ));
    }
    if document.regions.iter().any(|row| row.all.too_short) {
        notes.push(
            "a region has no time where its entries take less than 20 times what their probes take, or 10 \
             times what the probes inside take"
                .to_owned(),
        );
    }
    if document.process.is_some() {
        notes.push(
            "of a window: what had begun before it does not count, and what had not ended has no time"
                .to_owned(),
        );
    }
    if document.interrupted.is_some() && document.process.is_none() {
        notes.push("interrupted: regions are of the run until then".to_owned());
    }
    notes
}
