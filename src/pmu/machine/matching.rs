//! The table that describes this processor; the description of the measured core: table, facts, caches.

use super::description::Machine;
use super::pmu::Pmu;
use std::sync::Arc;
use tma::cpuid::Cpuid;
use tma::error::Result;
use tma::tables::{CoreKind, Head, Library};
use tma::{Core, Cpu};

/// A table that describes (one kind of core of) this processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMatch {
    /// The table's name.
    pub table: String,
    /// Kind of core on hybrids.
    pub core: Option<CoreKind>,
    /// The PMU that counts for it; `None`: the kernel has none for it.
    pub pmu: Option<String>,
}

/// The tables for `machine`, by all that it shows ([`tma::identity`]): one, or one per kind of core on
/// a hybrid; none when the processor is unknown. `forced` names one instead (the user's `--uarch`).
///
/// # Errors
/// The forced table does not exist, or a table's head cannot be read.
pub fn choose(
    machine: &Machine,
    library: &Library,
    forced: Option<&str>,
) -> Result<Vec<TableMatch>> {
    if let Some(name) = forced {
        let head = library.head(name, &machine.cpu)?;
        let pmu = pmu_for(machine, &head.pmu);
        return Ok(vec![TableMatch { table: name.to_lowercase(), core: head.core, pmu }]);
    }
    let named = |table: String, head: Head| {
        let pmu = machine.pmu(&head.pmu).map(|p| p.name.clone());
        TableMatch { table, core: head.core, pmu }
    };
    if !machine.kinds.iter().any(|kind| shows_more(&kind.cpuid)) {
        let found = describing(&machine.cpu, library)?.into_iter();
        return Ok(narrow(machine, found.map(|(table, head)| named(table, head)).collect()));
    }
    let mut all: Vec<TableMatch> = Vec::new();
    for table in machine.identities(library)?.into_iter().filter_map(|identity| identity.table) {
        if !all.iter().any(|known| known.table == table) {
            let head = library.head(&table, &machine.cpu)?;
            all.push(named(table, head));
        }
    }
    Ok(narrow(machine, all))
}

/// Whether more is known of a core than what it claims to be.
fn shows_more(cpuid: &Cpuid) -> bool {
    cpuid.leaves().any(|((leaf, _), _)| leaf > 1 && leaf < 0x8000_0002)
}

/// The tables to count with: as [`choose`]; for an unknown processor that has a core PMU, the table of
/// its vendor's architectural events.
///
/// # Errors
/// As [`choose`].
pub fn countable(
    machine: &Machine,
    library: &Library,
    forced: Option<&str>,
) -> Result<Vec<TableMatch>> {
    let found = choose(machine, library, forced)?;
    let table = match machine.cpu.vendor.as_str() {
        "GenuineIntel" => "arch-intel",
        "AuthenticAMD" | "HygonGenuine" => "arch-amd",
        _ => return Ok(found),
    };
    let pmu = machine.pmu("cpu").or_else(|| machine.core_pmus().next());
    match pmu.filter(|_| found.is_empty() && library.names().any(|name| name == table)) {
        Some(pmu) => {
            Ok(vec![TableMatch { table: table.into(), core: None, pmu: Some(pmu.name.clone()) }])
        }
        None => Ok(found),
    }
}

/// Whether this is a table of architectural events.
pub fn is_architectural(table: &str) -> bool {
    table.starts_with("arch-")
}

/// Remedy for a processor that no table describes: the nearest table, if there is one.
///
/// # Errors
/// A table cannot be read.
pub fn unknown_model(cpu: &Cpu, library: &Library) -> Result<String> {
    Ok(match library.nearest(&cpu.vendor, cpu.family, cpu.model)? {
        Some(near) => {
            format!("--uarch {near} has the nearest model; --tables DIR adds a table of your own")
        }
        None => "--tables DIR adds a table of your own; --uarch NAME forces one".into(),
    })
}

/// Drops the kinds of core this machine does not have. Without any PMU a hybrid shows its P core.
fn narrow(machine: &Machine, mut all: Vec<TableMatch>) -> Vec<TableMatch> {
    if all.len() > 1 {
        if all.iter().any(|t| t.pmu.is_some()) {
            all.retain(|t| t.pmu.is_some());
        } else if all.iter().any(|t| t.core != Some(CoreKind::E)) {
            all.retain(|t| t.core != Some(CoreKind::E));
        }
    }
    // A processor with one kind of core calls its PMU `cpu` whatever the kind.
    if let [only] = all.as_mut_slice()
        && only.pmu.is_none()
    {
        only.pmu = machine.pmu("cpu").map(|p| p.name.clone());
    }
    // P before E.
    all.sort_by_key(|t| (t.core == Some(CoreKind::E), t.table.clone()));
    all
}

fn pmu_for(machine: &Machine, name: &str) -> Option<String> {
    let named: Option<&Pmu> = machine.pmu(name).or_else(|| {
        let mut core = machine.core_pmus();
        core.next().filter(|_| core.next().is_none())
    });
    named.map(|p| p.name.clone())
}

/// The tables that describe `cpu` best, with their heads: several for a hybrid processor.
///
/// # Errors
/// A table's head cannot be read.
pub fn describing(cpu: &Cpu, library: &Library) -> Result<Vec<(String, Head)>> {
    let mut found: Vec<(u8, String, Head)> = Vec::new();
    for name in library.names() {
        let head = library.head(name, cpu)?;
        if let Some(rank) = head.rank.filter(|_| head.vendor == cpu.vendor) {
            found.push((rank, name.to_owned(), head));
        }
    }
    let best = found.iter().map(|(rank, ..)| *rank).max();
    found.retain(|(rank, ..)| Some(*rank) == best);
    Ok(found.into_iter().map(|(_, name, head)| (name, head)).collect())
}

impl Machine {
    /// The core of this machine, described by its table or by the one that the user `forced`; on a
    /// hybrid the performance core. Where the identity leaves several tables, it has what they all state;
    /// where none, only the caches are known.
    ///
    /// # Errors
    /// There is no table of the forced name; a table or its latencies cannot be read.
    pub fn core(&self, library: &Library, forced: Option<&str>) -> Result<Core> {
        let chosen = choose(self, library, forced)?;
        let own = match forced {
            Some(_) => choose(self, library, None)?,
            None => chosen.clone(),
        };
        let identity = self.identities(library)?.into_iter().next();
        let mut core = match (chosen.first(), &identity) {
            (Some(found), _) => Core::modelled(library, &found.table)?,
            (None, Some(identity)) => Core::in_common(library, &identity.candidates)?,
            (None, None) => Core::default(),
        };
        let is_own = |name: &str| {
            own.iter().any(|o| o.table == name)
                || identity.iter().any(|i| i.candidates.iter().any(|c| c == name))
        };
        core.foreign = forced.is_some() && !core.uarch().is_some_and(is_own);
        core.identity = identity.map(Arc::new);
        core.fingerprint = self.fingerprint().map(Arc::new);
        core.cpu = self.cpu.clone();
        (core.l1_data, core.l1_code) = self.l1;
        Ok(core)
    }
}
