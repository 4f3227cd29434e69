//! Names of recorded events → a table's events, constants and software events; tables ranked by how many they have.
//!
//! By spelling first (ignoring case, PMU prefix and the order of filters), else by encoding:
//! `cycles`, `r003c`, `cpu/event=0x3c/` and `CPU_CLK_UNHALTED.THREAD` are one event on Intel.

use super::event_name::{Encoding, EventName, Vendor};
use super::recording::{Recording, SoftwareKind};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::HashSet;
use tma::tables::{Const, EventId, Library, PmuKind, Ring, Table, plain_name};

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

/// A table's events, indexed for look-ups of names as tools write them.
pub struct Names<'t> {
    table: &'t Table,
    vendor: Vendor,
    /// A PMU of hybrids whose events are taken for the table's, which is of no hybrid.
    stands_for: Option<&'static str>,
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
        Self { table, vendor: Vendor::of(table), stands_for: None, index: OnceCell::new() }
    }

    /// The names of a table that the user chose: where it is of no hybrid, it has the events of one kind of core in
    /// `used`, the names of a recording.
    pub fn chosen<'a>(table: &'t Table, used: impl Iterator<Item = &'a str>) -> Self {
        let is_plain = table.pmu == "cpu";
        let mut found = Vec::new();
        for name in used.filter(|_| is_plain) {
            found.extend(["cpu_core", "cpu_atom"].into_iter().filter(|pmu| name.contains(pmu)));
        }
        // The big cores of a hybrid are those that other processors have alone.
        let stands_for = ["cpu_core", "cpu_atom"].into_iter().find(|pmu| found.contains(pmu));
        Self { stands_for, ..Self::new(table) }
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
                if hybrid(pmu) && pmu != self.table.pmu && Some(pmu) != self.stands_for {
                    return Match::OtherCore;
                }
            }
            Some(pmu) => return self.elsewhere(pmu, &parsed),
        }
        self.in_core(&parsed)
    }

    fn in_core(&self, name: &EventName) -> Match {
        let rings: &[Option<Ring>] = match name.ring {
            None => &[None],
            Some(_) => &[name.ring, None],
        };
        for &ring in rings {
            if let Some(id) = self.event(name, ring) {
                let only = if ring.is_none() { name.ring } else { None };
                return Match::Event { id, only };
            }
        }
        Match::Unknown
    }

    /// The core event that the table restricts to this ring, or to none.
    fn event(&self, name: &EventName, ring: Option<Ring>) -> Option<EventId> {
        if let Some(id) = self.index().by_key.get(&(name.key(), ring)) {
            return Some(*id);
        }
        let own = Encoding::of_name(name, self.vendor, self.table.core);
        let encoding = own.or_else(|| {
            let base = self.index().base_encodings.get(&name.base)?;
            base.clone().with_fields(name, self.vendor)
        })?;
        let ids = |encoding: Encoding| self.index().by_encoding.get(&(encoding, ring));
        let found = ids(encoding.clone()).or_else(|| ids(encoding.without_percore()));
        found.and_then(|ids| ids.first()).copied()
    }

    /// The event that `name` counts in one privilege ring, where it counts a core event in one only.
    pub fn in_ring(&self, name: &str) -> Option<(EventId, Ring)> {
        let parsed = EventName::parse(name)?;
        let ring = parsed.ring?;
        match self.resolve(name) {
            Match::Event { id, only: Some(_) } => Some((id, ring)),
            // The table has the event in this ring, too.
            Match::Event { .. } => Some((self.event(&parsed, None)?, ring)),
            _ => None,
        }
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

fn is_core(pmu: &str) -> bool {
    pmu == "cpu" || matches!(pmu, "cpu_core" | "cpu_atom" | "cpu_lowpower")
}

/// The meaning of `name` in `table`; for many names, make a [`Names`] once.
pub fn resolve(table: &Table, name: &str) -> Match {
    Names::new(table).resolve(name)
}

/// How well a table fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMatch {
    /// The table.
    pub name: String,
    /// Number of the recording's events that it has.
    pub matched: usize,
    /// Number of the recording's events of this kind of core.
    pub total: usize,
    /// Nodes of level 1 all of whose events the recording has; 0 where no other table has as many events.
    pub nodes: usize,
}

/// Tables that have events of the recording, best first: for hints, and for imports without a
/// microarchitecture.
///
/// If some tables have all names as written, these are the best. Otherwise names are resolved, also
/// by encoding, in the tables with most of the recording's plain names.
pub fn best_tables(recording: &Recording, library: &Library) -> Vec<TableMatch> {
    let mut seen = HashSet::new();
    let rows = recording.blocks.iter().flat_map(|b| &b.rows);
    let used: Vec<&str> = rows
        .filter(|r| seen.insert(r.name))
        .map(|r| recording.name(r.name))
        .filter(|name| !is_constant(name) && SoftwareKind::from_name(name).is_none())
        .collect();
    let written = library.knowing(&used);
    let all = written.iter().any(|(known, _)| *known == used.len());
    let mut found: Vec<TableMatch> = if all {
        let total = used.len();
        let fit = |(matched, name): (usize, &str)| TableMatch {
            name: name.into(),
            matched,
            total,
            nodes: 0,
        };
        written.into_iter().filter(|(known, _)| *known > 0).map(fit).collect()
    } else {
        candidates(&used, library).into_iter().filter_map(|n| resolved(&used, library, n)).collect()
    };
    found.sort_by(|a, b| b.matched.cmp(&a.matched).then_with(|| a.total.cmp(&b.total)));
    let equal = found.iter().take_while(|fit| fit.matched == found[0].matched).count();
    if equal > 1 {
        for fit in &mut found[..equal] {
            fit.nodes = evaluated(&used, library, &fit.name);
        }
        found[..equal].sort_by_key(|fit| std::cmp::Reverse(fit.nodes));
    }
    found
}

/// Nodes of level 1 that a table evaluates from these events.
fn evaluated(used: &[&str], library: &Library, name: &str) -> usize {
    let Ok(table) = library.load(name) else { return 0 };
    let names = Names::new(&table);
    let counted: HashSet<EventId> = used
        .iter()
        .filter_map(|used| match names.resolve(used) {
            Match::Event { id, .. } => Some(id),
            _ => None,
        })
        .collect();
    let level_1 = table.children(None).map(|node| table.events_of(node, false));
    level_1.filter(|events| events.iter().all(|event| counted.contains(event))).count()
}

fn is_constant(name: &str) -> bool {
    name.strip_prefix('#').and_then(Const::from_name).is_some()
}

/// How well table `name` fits; `None` if it has none of the events.
fn resolved(used: &[&str], library: &Library, name: &str) -> Option<TableMatch> {
    let table = library.load(name).ok()?;
    let names = Names::new(&table);
    let mut fit = TableMatch { name: name.to_owned(), matched: 0, total: 0, nodes: 0 };
    for used in used {
        match names.resolve(used) {
            Match::Event { .. } => fit.matched += 1,
            Match::Unknown => {}
            Match::OtherCore | Match::Constant(_) | Match::Software(_) => continue,
        }
        fit.total += 1;
    }
    (fit.matched > 0).then_some(fit)
}

/// Tables worth decoding: those with as many of the recording's plain event names as the best one,
/// or all of them if few names are plain (raw codes, `cycles`).
fn candidates<'l>(used: &[&str], library: &'l Library) -> Vec<&'l str> {
    let plain: HashSet<String> = used.iter().filter_map(|n| plain_name(n)).collect();
    let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
    let scores = library.knowing_plain(&plain);
    let best = scores.iter().map(|(s, _)| *s).max().unwrap_or(0);
    let decided = best * 2 > used.len();
    scores.into_iter().filter(|(s, _)| !decided || *s == best).map(|(_, n)| n).collect()
}
