//! Samples → functions, by binary, control group and command.

use super::cgroups::Cgroups;
use super::names::Names;
use super::time::Time;
use fleet::window::{Binary, Function, Owner};
use profile::hot::{ByThread, Tally};
use profile::module::{Module, ModuleAddress, ModuleKind};
use smol_str::SmolStr;
use std::collections::HashMap;
use tma::Address;
use tma::text::several;

/// Most functions of a window: those with most samples.
const MOST: usize = 4000;
/// Longest name: C++ has some of many kilobytes.
const LONGEST: usize = 512;

/// What is known of the samples of a window besides them.
pub(super) struct Known<'a> {
    /// What they tell of time.
    pub time: &'a Time,
    /// Control groups of processes.
    pub cgroups: &'a mut Cgroups,
    /// Names of functions.
    pub names: &'a mut Names,
}

/// The functions with most samples, and what a reader must know of them.
pub(super) fn functions(by: &ByThread, known: &mut Known<'_>) -> (Vec<Function>, Vec<String>) {
    let mut sums: HashMap<(Owner, Address, Option<SmolStr>), Tally> = HashMap::new();
    let (mut all, mut gone) = (Tally::default(), 0);
    for (of, tally) in &by.sums {
        let cgroup = of.pid.and_then(|pid| known.cgroups.of(pid));
        gone += if cgroup.is_none() { tally.samples } else { 0 };
        let command = of.command.as_deref().map(command);
        let module = of.place.and_then(|place| Some((by.modules.get(place.module)?, place)));
        let binary = module.map(|(module, _)| binary(module));
        let (start, name) = module
            .map_or((Address(0), None), |(module, place)| function(known.names, module, place));
        let owner = Owner { binary, cgroup, command, socket: None };
        sums.entry((owner, start, name)).or_default().add(*tally);
        all.add(*tally);
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by(|(a, x), (b, y)| y.weight.total_cmp(&x.weight).then_with(|| a.cmp(b)));
    let left: u64 = rows.iter().skip(MOST).map(|(_, tally)| tally.samples).sum();
    rows.truncate(MOST);
    let row =
        |((owner, start, name), tally): ((Owner, Address, Option<SmolStr>), Tally)| Function {
            owner,
            start,
            name: name.map(String::from),
            event: known.time.event.as_str().into(),
            samples: tally.samples,
            cpu_seconds: known.time.seconds(tally, all),
        };
    let rows = rows.into_iter().map(row).collect();
    let notes = [
        (gone > 0).then(|| {
            format!("no control group of {}: their processes had ended", several(gone, "sample"))
        }),
        (left > 0).then(|| {
            format!("the functions of {} are left out: {MOST} have more", several(left, "sample"))
        }),
    ];
    (rows, notes.into_iter().flatten().collect())
}

/// The binary that a module is.
pub(super) fn binary(module: &Module) -> Binary {
    let digits = |id: &Vec<u8>| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let name = module.name();
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    Binary {
        build_id: module.build_id.as_ref().map(digits).map(SmolStr::from),
        module: shown(name),
    }
}

/// A thread's name without what tells it from others of its kind: `kworker/0:1-events` of the kernel.
fn command(name: &str) -> SmolStr {
    let kind = name.split_once('/').map(|(kind, _)| kind);
    let is_numbered = |kind: &&str| ["kworker", "ksoftirqd", "migration", "cpuhp"].contains(kind);
    shown(kind.filter(is_numbered).unwrap_or(name))
}

/// A name as it can be shown, and no longer than useful.
fn shown(name: &str) -> SmolStr {
    let name = tma::text::name(name);
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => name[..end].into(),
        None => name.as_ref().into(),
    }
}

/// Start and name of the function at a place, as any host can know them.
fn function(
    names: &mut Names,
    module: &Module,
    place: ModuleAddress,
) -> (Address, Option<SmolStr>) {
    let found = names.function(module, place);
    let is_named = found.is_some_and(|found| found.named);
    // Others are named by whoever has their symbols.
    let name = found.filter(|_| is_named).map(|found| shown(&found.name));
    let start = match module.kind {
        ModuleKind::File | ModuleKind::Vdso => found.map_or(place.address, |found| found.start),
        // The kernel and its modules lie elsewhere after each boot.
        ModuleKind::Kernel | ModuleKind::KernelModule => {
            let base = module.reference.as_ref().map(|(_, address)| *address);
            found.zip(base).map_or(0, |(found, base)| found.start.wrapping_sub(base))
        }
        // Code that was made while the program ran: nothing but a name tells what it is.
        ModuleKind::Anonymous | ModuleKind::Jitdump | ModuleKind::Unknown => 0,
    };
    (Address(start), name)
}

#[cfg(test)]
mod tests;
