//! Names of recorded events → a table's events, constants and software events.
//!
//! By spelling first (ignoring case, PMU prefix and the order of filters), else by encoding:
//! `cycles`, `r003c`, `cpu/event=0x3c/` and `CPU_CLK_UNHALTED.THREAD` are one event on Intel.

use super::encoding::{Encoding, Vendor};
use super::event_name::EventName;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use tma::tables::{Const, EventId, PmuKind, Ring, Table};

/// Meaning of a recorded name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// An event of the table.
    Event {
        /// Its id.
        id: EventId,
        /// The privilege ring it was counted in, if the table's event has no such restriction.
        only: Option<Ring>,
    },
    /// A constant of the run.
    Constant(Const),
    /// An event the kernel counts without hardware.
    Software(SoftwareKind),
    /// An event of the other kind of core of a hybrid processor.
    OtherCore,
    /// Unknown to the table.
    Unknown,
}

/// Events that need no PMU, as perf names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SoftwareKind {
    /// Time on a CPU in milliseconds.
    TaskClock,
    /// CPU clock in milliseconds.
    CpuClock,
    /// Wall time in nanoseconds.
    DurationTime,
    /// Time in user mode in nanoseconds.
    UserTime,
    /// Time in kernel mode in nanoseconds.
    SystemTime,
    /// Context switches.
    ContextSwitches,
    /// Migrations to another CPU.
    CpuMigrations,
    /// Page faults.
    PageFaults,
    /// Page faults without input or output.
    MinorFaults,
    /// Page faults with input or output.
    MajorFaults,
    /// Unaligned accesses that the kernel fixed up.
    AlignmentFaults,
    /// Instructions that the kernel emulated.
    EmulationFaults,
    /// Switches to another control group.
    CgroupSwitches,
}

impl SoftwareKind {
    /// All of them, with the names that perf accepts; it prints the first.
    const NAMES: [(SoftwareKind, &'static [&'static str]); 13] = [
        (SoftwareKind::TaskClock, &["task-clock"]),
        (SoftwareKind::CpuClock, &["cpu-clock"]),
        (SoftwareKind::DurationTime, &["duration_time"]),
        (SoftwareKind::UserTime, &["user_time"]),
        (SoftwareKind::SystemTime, &["system_time"]),
        (SoftwareKind::ContextSwitches, &["context-switches", "cs"]),
        (SoftwareKind::CpuMigrations, &["cpu-migrations", "migrations"]),
        (SoftwareKind::PageFaults, &["page-faults", "faults"]),
        (SoftwareKind::MinorFaults, &["minor-faults"]),
        (SoftwareKind::MajorFaults, &["major-faults"]),
        (SoftwareKind::AlignmentFaults, &["alignment-faults"]),
        (SoftwareKind::EmulationFaults, &["emulation-faults"]),
        (SoftwareKind::CgroupSwitches, &["cgroup-switches"]),
    ];

    /// The name perf prints.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(k, _)| *k == self).map_or("", |(_, names)| names[0])
    }

    /// The event called `name`, whatever its modifiers (`task-clock:u`).
    pub fn from_name(name: &str) -> Option<Self> {
        let bare = name.trim().split(':').next().unwrap_or_default();
        Self::NAMES
            .iter()
            .find(|(_, names)| names.iter().any(|n| n.eq_ignore_ascii_case(bare)))
            .map(|(kind, _)| *kind)
    }
}

/// A table's events, indexed for look-ups of names as tools write them.
pub struct Names<'t> {
    table: &'t Table,
    vendor: Vendor,
    /// Made for the first name that the table does not spell in the same way.
    index: OnceCell<Index>,
}

/// The events by parts of their names and by encoding.
#[derive(Default)]
struct Index {
    by_key: FxHashMap<(String, Option<Ring>), EventId>,
    by_encoding: FxHashMap<(Encoding, Option<Ring>), Vec<EventId>>,
    base_encodings: FxHashMap<String, Encoding>,
}

impl Index {
    fn new(table: &Table) -> Self {
        let mut index = Self::default();
        for (id, event) in (0u16..).zip(&table.events) {
            let ring = event.spec.ring;
            let parsed = EventName::parse(&event.name);
            let key = parsed.as_ref().map_or_else(|| event.name.to_lowercase(), EventName::key);
            index.by_key.insert((key, ring), id);
            if let Some(encoding) = Encoding::of_spec(&event.spec) {
                if let Some(parsed) = parsed.filter(|p| p.fields.is_empty()) {
                    index.base_encodings.insert(parsed.base, encoding.clone());
                }
                index.by_encoding.entry((encoding, ring)).or_default().push(id);
            }
        }
        index
    }
}

impl<'t> Names<'t> {
    /// The names of `table`.
    pub fn new(table: &'t Table) -> Self {
        Self { table, vendor: Vendor::of(table), index: OnceCell::new() }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(self.table))
    }

    /// The meaning of `name`.
    pub fn resolve(&self, name: &str) -> Match {
        let name = name.trim();
        if let Some(constant) = name.strip_prefix('#').and_then(Const::from_name) {
            return Match::Constant(constant);
        }
        if let Some(id) = self.table.event(name) {
            return Match::Event { id, only: None };
        }
        if let Some(kind) = SoftwareKind::from_name(name) {
            return Match::Software(kind);
        }
        let Some(parsed) = EventName::parse(name) else { return Match::Unknown };
        match parsed.pmu.as_deref() {
            None => {}
            Some(pmu) if is_core(pmu) => {
                let hybrid = |p: &str| p.starts_with("cpu_");
                if hybrid(pmu) && pmu != self.table.pmu {
                    return Match::OtherCore;
                }
            }
            Some(pmu) => return self.elsewhere(pmu, &parsed),
        }
        self.in_core(&parsed)
    }

    fn in_core(&self, name: &EventName) -> Match {
        let found = |ring| self.index().by_key.get(&(name.key(), ring)).copied();
        let by_encoding = || {
            let own = Encoding::of_name(name, self.vendor, self.table.core);
            own.or_else(|| {
                let base = self.index().base_encodings.get(&name.base)?;
                base.clone().with_fields(name, self.vendor)
            })
        };
        let encoded = |encoding: &Encoding, ring| {
            let exact = self.index().by_encoding.get(&(encoding.clone(), ring));
            let exact =
                exact.or_else(|| self.index().by_encoding.get(&(encoding.without_percore(), ring)));
            exact.and_then(|ids| ids.first()).copied()
        };
        let rings: &[Option<Ring>] = match name.ring {
            None => &[None],
            Some(_) => &[name.ring, None],
        };
        let encoding = by_encoding();
        for &ring in rings {
            let id = found(ring).or_else(|| encoded(encoding.as_ref()?, ring));
            if let Some(id) = id {
                let only = if ring.is_none() { name.ring } else { None };
                return Match::Event { id, only };
            }
        }
        Match::Unknown
    }

    /// An event of another PMU: by perf's name where that is fixed, else by spelling.
    fn elsewhere(&self, pmu: &str, name: &EventName) -> Match {
        let of_kind = |kind: PmuKind, part: &str| {
            let at = self
                .table
                .events
                .iter()
                .position(|e| e.spec.pmu == kind && e.name.to_lowercase().contains(part));
            at.and_then(|at| u16::try_from(at).ok())
        };
        let id = match (pmu, name.base.as_str()) {
            ("msr", "tsc") => of_kind(PmuKind::Tsc, ""),
            ("power", "energy-pkg") => {
                of_kind(PmuKind::Power, "pkg").or_else(|| of_kind(PmuKind::Power, "package"))
            }
            ("power", "energy-ram") => of_kind(PmuKind::Power, "dram"),
            (_, "") => None,
            _ => self.index().by_key.get(&(name.key(), None)).copied(),
        };
        id.map_or(Match::Unknown, |id| Match::Event { id, only: None })
    }

    /// Other events of the table with the same encoding.
    pub fn same_count(&self, id: EventId) -> impl Iterator<Item = EventId> + '_ {
        let spec = &self.table.events[usize::from(id)].spec;
        let ids =
            Encoding::of_spec(spec).and_then(|e| self.index().by_encoding.get(&(e, spec.ring)));
        ids.into_iter().flatten().copied().filter(move |other| *other != id)
    }
}

/// Whether `pmu` is the PMU of a core.
fn is_core(pmu: &str) -> bool {
    pmu == "cpu" || matches!(pmu, "cpu_core" | "cpu_atom" | "cpu_lowpower")
}

/// The meaning of `name` in `table`; for many names, make a [`Names`] once.
pub fn resolve(table: &Table, name: &str) -> Match {
    Names::new(table).resolve(name)
}
