//! Regions that a program marks: entries, nesting and times.
//!
//! | file | concern |
//! |---|---|
//! | `request` | begins and ends of regions, and the result of a run |
//! | `marking` | probes, which log each execution |
//! | `functions` | begin and ends of a function |
//! | `libraries` | libraries of a program, which may have markers, too |
//! | `journal` | the log of an image, read while it runs |
//! | `names` | names in the memory of the program |
//! | `times` | begin and end of a marker's probe |
//! | `spans` | times of a thread in regions |
//! | `tree` | events, in order → regions inside one another |
//!
//! All events of an image are in one log, in order. A thread is identified by the base of its own
//! memory (fs), a forked process by a number written into its copy of the code.

mod functions;
mod journal;
mod libraries;
mod marking;
mod names;
mod request;
mod spans;
mod times;
mod tree;

use crate::patch::{Patcher, Target, Unprobed, Wanted, notes, targets, watched};
use crate::process::{Followed, Watched};
use marking::Marking;
use pmu::Command;
use pmu::perf::Signals;
use std::collections::BTreeMap;
use tma::{Error, Result};

pub use crate::patch::{Progress, Window};
pub use functions::{NoEnds, function_sites};
pub use libraries::libraries;
pub use request::{Edge, Label, Marked, Site};
pub use spans::Span;
pub use tree::{Node, Stats, Thread, Tree};

/// `HWCAP2_FSGSBASE` (Linux, arch/x86/include/uapi/asm/hwcap2.h) in the entry with tag `AT_HWCAP2` (elf.h).
const FSGSBASE: u64 = 2;
const AT_HWCAP2: u64 = 26;

/// Runs the command once and follows the regions of these sites, in it and in all that it starts.
/// `before` is called with the process before it starts.
///
/// # Errors
/// The command cannot be started or traced; programs cannot identify their threads; those of
/// `before`.
pub fn mark(
    command: &Command,
    sites: &[Site],
    signals: &Signals,
    before: &mut dyn FnMut(i32) -> Result<()>,
) -> Result<Marked> {
    can_read_base()?;
    let (code, functions) = code(sites);
    let targets = targets(&code, &[], signals);
    let mut patcher = Patcher::new(Marking::new(sites, functions, false), targets);
    let followed = patcher.follow_after(command, signals, before)?;
    let Followed { wall, exit, interrupted, .. } = followed;
    Ok(Marked { wall, exit, interrupted, ..marking::marked(patcher) })
}

/// Follows the regions of these sites in a window of a live process, and of those that it forks,
/// and restores its code.
///
/// # Errors
/// The process cannot be traced or stopped, has ended, or cannot identify its threads.
pub fn mark_process(window: &Window<'_>, sites: &[Site], progress: Progress<'_>) -> Result<Marked> {
    can_read_base()?;
    let (code, functions) = code(sites);
    let collect = |patcher: Patcher<Marking>, watched: &Watched| Marked {
        wall: watched.wall,
        interrupted: watched.interrupted,
        notes: notes(watched, patcher.restored),
        remains: watched.remains.is_some() && !watched.ended,
        ..marking::marked(patcher)
    };
    let make = |_: &[Target]| Marking::new(sites, functions, true);
    let found = watched(window, &code, make, &collect, progress)?;
    Ok(found.unwrap_or_else(|signal| Marked {
        interrupted: Some(signal),
        refused: vec![Some(Unprobed::Interrupted); sites.len()],
        ..Marked::default()
    }))
}

/// The functions of the sites, and for each site the index of its function.
fn code(sites: &[Site]) -> (Vec<Wanted>, Vec<usize>) {
    let (mut code, mut known): (Vec<Wanted>, _) = (Vec::new(), BTreeMap::new());
    let functions = sites.iter().map(|site| {
        let Wanted { path, range } = &site.code;
        *known.entry((path, range.start, range.end)).or_insert_with(|| {
            code.push(site.code.clone());
            code.len() - 1
        })
    });
    let functions = functions.collect();
    (code, functions)
}

/// An error if programs may not execute `rdfsbase`.
fn can_read_base() -> Result<()> {
    let auxiliary = std::fs::read("/proc/self/auxv").unwrap_or_default();
    let mut entries = auxiliary.as_chunks::<8>().0.chunks_exact(2);
    let can = entries.any(|entry| {
        let [tag, value] = [entry[0], entry[1]].map(u64::from_le_bytes);
        tag == AT_HWCAP2 && value & FSGSBASE != 0
    });
    if can {
        return Ok(());
    }
    Err(Error::not_possible("regions cannot be told apart by thread here")
        .because("the kernel does not permit the instruction rdfsbase")
        .hint("Linux 5.9 or later does, without the option nofsgsbase"))
}
