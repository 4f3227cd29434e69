//! A command's regions: its markers found, probed in one run, and what they logged as a document.
//!
//! | file | concern |
//! |---|---|
//! | `ask` | which regions |
//! | `find` | the markers of files, and what is asked for by name |
//! | `rows` | entries and times as rows |

mod ask;
mod find;
mod rows;

use crate::count::program;
use crate::documents::Exit;
use crate::documents::regions::{NotProbed, Regions, SCHEMA};
use pmu::perf::{Signals, tsc_hz_here};
use probe::regions::{Marked, Site, mark};
use tma::{Error, Result};

pub use ask::RegionsAsk;

/// Runs the command once. With the document, the exit status that a shell would give.
///
/// # Errors
/// It has no markers, or cannot be started or traced.
pub fn regions(ask: &RegionsAsk) -> Result<(Regions, i32)> {
    let program = program::program(&ask.command)?;
    let sites = find::sites(&program, ask)?;
    let hz = tsc_hz_here().ok_or_else(|| {
        Error::not_possible("regions cannot be timed here")
            .because("the frequency of the time stamp counter is not known")
    })?;
    let signals = Signals::catch()?;
    let marked = mark(&ask.command, &sites, &signals)?;
    let document = document(ask, &sites, &marked, hz);
    let code = match (marked.interrupted, marked.exit) {
        (Some(signal), _) => 128 + signal,
        (None, exit) => exit.map_or(0, |exit| Exit::from(exit).code()),
    };
    Ok((document, code))
}

fn document(ask: &RegionsAsk, sites: &[Site], marked: &Marked, hz: f64) -> Regions {
    let refused = sites.iter().zip(&marked.refused);
    let refused = refused.filter_map(|(site, why)| {
        Some(NotProbed {
            module: site.code.path.display().to_string(),
            address: format!("{:#x}", site.at),
            reason: why.clone()?,
        })
    });
    let tree = &marked.tree;
    let pair = 2.0 * tree.ticks as f64 / tree.events.max(1) as f64 / hz;
    let mut document = Regions {
        schema: SCHEMA.to_owned(),
        command: ask.command.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        exit: marked.exit.map(Exit::from),
        interrupted: marked.interrupted,
        duration: marked.wall.as_secs_f64(),
        markers: tree.events + marked.lost,
        lost: marked.lost,
        pair_cost: (tree.events > 0).then_some(pair),
        regions: rows::regions(tree, hz),
        not_probed: refused.collect(),
        notes: program::notes(&ask.command),
    };
    document.notes.extend(rows::notes(&document, tree));
    document
}
