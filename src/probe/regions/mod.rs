//! Regions that a program marks: how often each is entered, inside which others, and for how long.
//!
//! | file | concern |
//! |---|---|
//! | `request` | where regions begin and end |
//! | `marking` | the probes: each logs when it is executed |
//! | `functions` | where a function begins and ends |
//! | `libraries` | the libraries of a program, which may have markers, too |
//! | `journal` | the log of an image, read while it runs |
//! | `names` | names in the memory of the program |
//! | `times` | when a marker was executed |
//! | `spans` | when a thread was in which region |
//! | `tree` | events, in order → regions inside one another |
//!
//! All events of an image are in one log, in order. A thread is known by the base of its own memory (fs), a
//! forked process by a number that is written into its copy of the code.

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

/// Runs the command once and follows the regions of these sites, in it and in all that it starts. `before` gets the
/// process while it waits for its start.
///
/// # Errors
/// The command cannot be started or traced; a program cannot see which thread it is; those of `before`.
pub fn mark(
    command: &Command,
    sites: &[Site],
    signals: &Signals,
    before: &mut dyn FnMut(i32) -> Result<()>,
) -> Result<Marked> {
    can_read_base()?;
    let (code, of) = code(sites);
    let targets = targets(&code, &[], signals);
    let mut patcher = Patcher::new(Marking::new(sites, of, false), targets);
    let followed = patcher.follow_after(command, signals, before)?;
    let Followed { wall, exit, interrupted, .. } = followed;
    Ok(Marked { wall, exit, interrupted, ..marking::marked(patcher) })
}

/// Follows the regions of these sites in a process that runs already, for a window of its life, and in the processes
/// that it forks meanwhile. Its code is as it was afterwards.
///
/// # Errors
/// The process cannot be traced or stopped, or has ended before; it cannot see which thread it is.
pub fn mark_process(window: &Window<'_>, sites: &[Site], progress: Progress<'_>) -> Result<Marked> {
    can_read_base()?;
    let (code, of) = code(sites);
    let collect = |patcher: Patcher<Marking>, watched: &Watched| Marked {
        wall: watched.wall,
        interrupted: watched.interrupted,
        notes: notes(watched, patcher.restored),
        remains: watched.remains.is_some() && !watched.ended,
        ..marking::marked(patcher)
    };
    let make = |_: &[Target]| Marking::new(sites, of, true);
    let found = watched(window, &code, make, &collect, progress)?;
    Ok(found.unwrap_or_else(|signal| Marked {
        interrupted: Some(signal),
        refused: vec![Some(Unprobed::Interrupted); sites.len()],
        ..Marked::default()
    }))
}

/// The code of the sites, and of each site its number there: several may be of one function.
fn code(sites: &[Site]) -> (Vec<Wanted>, Vec<usize>) {
    let (mut code, mut known): (Vec<Wanted>, _) = (Vec::new(), BTreeMap::new());
    let of = sites.iter().map(|site| {
        let Wanted { path, range } = &site.code;
        *known.entry((path, range.start, range.end)).or_insert_with(|| {
            code.push(site.code.clone());
            code.len() - 1
        })
    });
    let of = of.collect();
    (code, of)
}

/// Refuses where programs may not execute `rdfsbase`.
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
