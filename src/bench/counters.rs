//! The PMU, the table and the groups of this machine, or why there are none.

use pmu::machine::{self, Encoding, Finding, Level, Machine, TableMatch, choose, findings};
use pmu::perf;
use std::sync::Arc;
use tma::schedule::{self, Budget};
use tma::tables::{EventId, Library, Table};

/// Levels of the tree that a block gets.
const LEVELS: u32 = 2;

/// This machine's PMU, or why it has none.
#[derive(Debug, Clone)]
pub enum Pmu {
    /// None, with the reason.
    Absent(String),
    /// One.
    Present(Arc<CorePmu>),
}

impl Default for Pmu {
    fn default() -> Self {
        Self::Absent("no PMU was looked for".to_owned())
    }
}

/// PMU, table and groups of one kind of core.
#[derive(Debug, Clone)]
pub struct CorePmu {
    /// The kernel's PMU.
    pub pmu: machine::Pmu,
    /// The processor's table, if there is one.
    pub table: Option<Arc<Table>>,
    /// Groups for level 1 and 2, leaders first.
    pub groups: Vec<Vec<EventId>>,
    /// Whether each core has several threads.
    pub smt: bool,
    /// Counters that groups have to fit.
    pub budget: Option<Budget>,
    /// Core cycles.
    pub cycles: Encoding,
    /// Constants of the tables' formulas.
    pub constants: [Option<f64>; 5],
    /// A processor of this kind of core, where there are several kinds.
    pub cpu: Option<usize>,
    /// Whether the kernel lets this process count others only if they can be inspected.
    pub inspect: bool,
}

impl Pmu {
    /// Looks for the PMU that counts on `cpu`, or on the first kind of core.
    ///
    /// # Errors
    /// A table's name or head is wrong.
    pub fn find(
        machine: &Machine,
        library: &Library,
        uarch: Option<&str>,
        cpu: Option<usize>,
    ) -> tma::Result<std::result::Result<Self, Finding>> {
        let matches = choose(machine, library, uarch)?;
        let all = findings(machine, &matches, &perf::probe(machine));
        let vital = |f: &&Finding| f.id == "core_pmu" && f.level == Level::Blocked;
        if let Some(finding) = all.iter().find(vital) {
            return Ok(Err(finding.clone()));
        }
        let Some((pmu, table)) = kind(machine, &matches, cpu) else {
            let none = |f: &&Finding| f.level == Level::Blocked;
            return Ok(all.iter().find(none).map_or_else(
                || Ok(Self::Absent("this core has no PMU".to_owned())),
                |f| Err(f.clone()),
            ));
        };
        let table = table.map(|name| library.load(name)).transpose()?;
        Ok(Ok(Self::Present(Arc::new(CorePmu::new(machine, pmu, table, cpu)))))
    }

    /// Why there is none.
    pub fn absent(&self) -> Option<&str> {
        match self {
            Self::Absent(why) => Some(why),
            Self::Present(_) => None,
        }
    }
}

/// The PMU on `cpu` (or the first) and the name of its table.
fn kind<'a>(
    machine: &'a Machine,
    matches: &'a [TableMatch],
    cpu: Option<usize>,
) -> Option<(&'a machine::Pmu, Option<&'a str>)> {
    let counts_on = |pmu: &machine::Pmu| match (cpu, &pmu.cpus) {
        (Some(cpu), Some(cpus)) => cpus.iter().any(|c| *c as usize == cpu),
        _ => true,
    };
    let named = matches.iter().filter_map(|m| {
        let pmu = machine.pmu(m.pmu.as_deref()?)?;
        Some((pmu, Some(m.table.as_str())))
    });
    named.chain(machine.core_pmus().map(|p| (p, None))).find(|(pmu, _)| counts_on(pmu))
}

impl CorePmu {
    /// Plans the groups of `table`.
    pub fn new(
        machine: &Machine,
        pmu: &machine::Pmu,
        table: Option<Arc<Table>>,
        cpu: Option<usize>,
    ) -> Self {
        let smt = machine.topology.smt;
        let watchdog = machine.kernel.nmi_watchdog == Some(true);
        let budget = table.as_ref().map(|t| Budget::of(t, smt, watchdog));
        let groups = table.as_ref().zip(budget.as_ref()).map(|(table, budget)| {
            let plan = schedule::plan(table, &schedule::to_level(table, LEVELS), smt, budget);
            plan.groups.into_iter().map(|g| with_clock(table, g.events)).collect()
        });
        let named = table.as_ref().and_then(|t| perf::code(t, t.clocks, pmu, smt).ok());
        let several = machine.core_pmus().nth(1).is_some();
        let first = pmu.cpus.as_ref().and_then(|c| c.first()).map(|c| *c as usize);
        Self {
            cycles: named.map_or_else(|| generic(pmu, 0, 0), |c| c.encoding),
            pmu: pmu.clone(),
            table,
            groups: groups.unwrap_or_default(),
            smt,
            budget,
            constants: machine.constants(1.0),
            cpu: cpu.or(first.filter(|_| several)),
            inspect: !machine.kernel.can_perfmon(),
        }
    }

    /// Nodes of level 1 and 2.
    pub fn nodes(&self) -> Vec<tma::tables::NodeId> {
        self.table.as_ref().map(|t| schedule::to_level(t, LEVELS)).unwrap_or_default()
    }
}

/// A group with the clock: groups are counted in runs of their own, and the clock is what brings
/// the terms of a split node to the same cycles.
fn with_clock(table: &Table, mut events: Vec<EventId>) -> Vec<EventId> {
    if !events.contains(&table.clocks) {
        events.push(table.clocks);
    }
    events
}

/// A generic event of linux/perf_event.h: type 0 (`PERF_TYPE_HARDWARE`) or 3
/// (`PERF_TYPE_HW_CACHE`). Where there are several core PMUs, the upper half says which.
pub fn generic(pmu: &machine::Pmu, kind: u32, config: u64) -> Encoding {
    let which = if pmu.name == "cpu" { 0 } else { u64::from(pmu.kind) << 32 };
    Encoding { kind, config: config | which, ..Encoding::default() }
}
