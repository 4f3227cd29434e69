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
mod tree;

use crate::patch::{Patcher, Wanted, targets};
use marking::Marking;
use pmu::Command;
use pmu::perf::Signals;
use std::collections::BTreeMap;
use tma::{Error, Result};

pub use functions::function_sites;
pub use libraries::libraries;
pub use request::{Edge, Label, Marked, Site};
pub use tree::{Node, Stats, Thread, Tree};

/// `HWCAP2_FSGSBASE` (Linux, arch/x86/include/uapi/asm/hwcap2.h) in the entry with tag `AT_HWCAP2` (elf.h).
const FSGSBASE: u64 = 2;
const AT_HWCAP2: u64 = 26;

/// Runs the command once and follows the regions of these sites, in it and in all that it starts.
///
/// # Errors
/// The command cannot be started or traced; a program cannot see which thread it is.
pub fn mark(command: &Command, sites: &[Site], signals: &Signals) -> Result<Marked> {
    if !can_read_base() {
        return Err(Error::not_possible("regions cannot be told apart by thread here")
            .because("the kernel does not permit the instruction rdfsbase")
            .hint("Linux 5.9 or later does, without the option nofsgsbase"));
    }
    // Several may be of one function.
    let (mut code, mut known): (Vec<Wanted>, _) = (Vec::new(), BTreeMap::new());
    let of = sites.iter().map(|site| {
        let Wanted { path, range } = &site.code;
        *known.entry((path, range.start, range.end)).or_insert_with(|| {
            code.push(site.code.clone());
            code.len() - 1
        })
    });
    let of: Vec<usize> = of.collect();
    let targets = targets(&code, &[], signals);
    let mut patcher = Patcher::new(Marking::new(sites, of), targets);
    let followed = patcher.follow(command, signals)?;
    Ok(marking::marked(patcher, &followed))
}

/// Whether programs may execute `rdfsbase`.
fn can_read_base() -> bool {
    let auxiliary = std::fs::read("/proc/self/auxv").unwrap_or_default();
    let mut entries = auxiliary.as_chunks::<8>().0.chunks_exact(2);
    entries.any(|entry| {
        let [tag, value] = [entry[0], entry[1]].map(u64::from_le_bytes);
        tag == AT_HWCAP2 && value & FSGSBASE != 0
    })
}
