//! One description of a processor core: everything that a measurement or a model assumes of it. Its notes say where
//! measurement contradicts its table, and where its identity is not what it claims.
//!
//! It is built once, from the machine or from what the user named (`--uarch`, `--tables`), and
//! passed down. What is not known is `None` and named by [`Core::missing`].

use crate::cpuid::Fingerprint;
use crate::identity::{Fact, Identity};
use crate::measured::{Kind, Known, Measured, Origin};
use crate::self_test::{Answers, SelfTest};
use crate::tables::facts::{FactName, FusedWith, OpCache};
use crate::tables::{Facts, Level1, Library, ReorderBuffer, Shared, Table};
use crate::{Cache, Cpu, Error, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// A processor core.
///
/// ```
/// use std::{fs, sync::Arc};
/// use tma::{Core, tables::Table, tables::facts::FactName};
///
/// let text = fs::read_to_string("../../events/amd/zen4.toml")?;
/// let core = Core { table: Some(Arc::new(Table::parse(&text, "zen4.toml")?)), ..Core::default() };
/// // AMD, Software Optimization Guide for family 19h: 6 ops a cycle, a retire queue of 320.
/// assert_eq!(core.width(), Some(6));
/// assert_eq!(core.reorder_buffer().map(|buffer| buffer.entries), Some(320));
///
/// // Without a table nothing is assumed, and what is not known has a name.
/// let unknown = Core::default();
/// assert_eq!(unknown.width(), None);
/// assert!(unknown.missing().contains(&FactName::IssueWidth));
/// assert!(unknown.needs_table().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Core {
    /// The processor that runs this program; empty where the core is only modelled.
    pub cpu: Cpu,
    /// Its event table.
    pub table: Option<Arc<Table>>,
    /// Whether the user named a table that does not describe this processor.
    pub foreign: bool,
    /// Identity of the processor, from everything that it shows; none where the core is only modelled.
    pub identity: Option<Arc<Identity>>,
    /// Features, caches and brand of the processor; none where CPUID was not asked.
    pub fingerprint: Option<Arc<Fingerprint>>,
    /// Facts common to all candidates, where the identity leaves several tables.
    pub shared: Option<Arc<Shared>>,
    /// The first-level data cache.
    pub l1_data: Option<Cache>,
    /// The first-level instruction cache.
    pub l1_code: Option<Cache>,
    /// The file of latencies: its text and where it comes from.
    pub latencies: Option<(String, String)>,
    /// Self-test answers of the processor; shared by all copies of this description.
    pub self_test: Arc<SelfTest>,
    /// Facts that were measured on the processor; shared likewise.
    pub measured: Arc<Measured>,
    /// The file of ports: its text and where it comes from.
    pub ports: Option<(String, String)>,
}

/// How far a measured width may differ from the table's.
const WIDTH_ERROR: f64 = 0.1;
/// How far errors of the clock take it above what a core does.
const CLOCK_ERROR: f64 = 0.04;

static UNKNOWN: LazyLock<Facts> = LazyLock::new(Facts::default);

impl Core {
    /// The core that table `name` of `library` describes, without a processor that runs it.
    ///
    /// # Errors
    /// No such table; a table or file of latencies or ports that cannot be read.
    pub fn modelled(library: &Library, name: &str) -> Result<Self> {
        let table = library.load(name)?;
        let latencies = match &table.facts.latencies {
            Some(name) => Some(library.latencies(name)?),
            None => None,
        };
        let ports = match &table.facts.ports {
            Some(name) => Some(library.ports(name)?),
            None => None,
        };
        Ok(Self { table: Some(table), latencies, ports, ..Self::default() })
    }

    /// Name of the event table.
    pub fn uarch(&self) -> Option<&str> {
        self.table.as_ref().map(|t| t.name.as_str())
    }

    /// Its name for files of what was measured on it: that of its table, or `unknown`.
    pub fn name(&self) -> &str {
        self.uarch().unwrap_or("unknown")
    }

    /// The facts that the table states.
    pub fn facts(&self) -> &Facts {
        match (&self.table, &self.shared) {
            (Some(table), _) => &table.facts,
            (None, Some(shared)) => &shared.facts,
            (None, None) => &UNKNOWN,
        }
    }

    /// Slots a cycle that the table states, or all tables that remain possible.
    pub fn stated_width(&self) -> Option<u32> {
        match &self.table {
            Some(table) => Some(table.pipeline.width),
            None => self.shared.as_ref().and_then(|shared| shared.width),
        }
    }

    /// Whether the width rules out a result: a table alone may be wrong, and a measured width alone is the least that the
    /// core does.
    pub fn is_width_confirmed(&self) -> bool {
        let is_measured = self.answers().is_some_and(|answers| answers.width.is_some());
        is_measured && self.stated_width().is_some()
    }

    /// Slots a cycle: as measured where the core does more than the table states, else as it states, else as measured. A
    /// measured one that is no whole number within the clock's error is rounded up: it bounds what the core can do.
    pub fn width(&self) -> Option<u32> {
        let whole = |width: f64| (width * (1.0 - CLOCK_ERROR)).ceil().max(1.0) as u32;
        match (self.stated_width(), self.answers().and_then(|a| a.width)) {
            (Some(stated), Some(seen)) if seen <= f64::from(stated) * (1.0 + WIDTH_ERROR) => {
                Some(stated)
            }
            (stated, seen) => seen.map(whole).or(stated),
        }
    }

    /// Measured capacity, where it exceeds the table's or the table has none. A lower measurement does not refute the
    /// table: filling the capacity may need something else as well.
    fn beyond(&self, kind: Kind, stated: Option<u32>) -> Option<&Known> {
        let known = self.measured.facts()?.known(kind)?;
        stated.is_none_or(|stated| known.value - known.error > f64::from(stated)).then_some(known)
    }

    /// The cache of decoded instructions: as measured where it holds more than the table states, else as that states.
    pub fn op_cache(&self) -> Option<OpCache> {
        let stated = self.facts().op_cache.as_ref();
        match self.beyond(Kind::OpCache, stated.map(|cache| cache.ops)) {
            Some(known) => {
                let ops = (known.value - known.error).max(0.0) as u32;
                Some(OpCache {
                    ops,
                    per_32_bytes: None,
                    source: format!("measured: {}", known.how),
                })
            }
            None => stated.cloned(),
        }
    }

    /// Where the facts come from that measurements and models use.
    pub fn origins(&self) -> BTreeMap<&'static str, Origin> {
        let of = |is_known: bool, is_stated: bool| match (is_known, is_stated) {
            (false, _) => Origin::Unknown,
            (true, true) => Origin::Table,
            (true, false) => Origin::Measured,
        };
        let (width, stated) = (self.width(), self.stated_width());
        let buffer = self.reorder_buffer();
        let stated_buffer = buffer.is_some() && buffer == self.stated_buffer();
        let (cache, stated_cache) = (self.op_cache(), &self.facts().op_cache);
        BTreeMap::from([
            ("issue_width", of(width.is_some(), width == stated)),
            ("reorder_buffer", of(buffer.is_some(), stated_buffer)),
            ("op_cache", of(cache.is_some(), cache == *stated_cache)),
            ("latencies", of(self.latencies.is_some(), true)),
            ("ports", of(self.ports.is_some(), true)),
        ])
    }

    /// The answers of the processor's self-test, once it ran.
    pub fn answers(&self) -> Option<&Answers> {
        self.self_test.answers()
    }

    /// Whether nops share the slot of another instruction: as measured, else as the table states.
    pub fn fuses_nops(&self) -> Option<bool> {
        let stated = || self.facts().nop_fusion.as_ref().map(|f| f.with != FusedWith::Nothing);
        self.answers().and_then(|a| a.nops_fused).or_else(stated)
    }

    /// Whether a move between registers shares the slot of an instruction after it that changes the
    /// register moved to: as measured.
    pub fn fuses_moves(&self) -> bool {
        self.answers().and_then(|a| a.moves_fused).unwrap_or(false)
    }

    /// Distances from a load to a store of the same base register, in bytes, at which the load
    /// waits falsely: as measured, else as the table states.
    pub fn false_distances(&self) -> Option<Vec<u32>> {
        let stated = || self.facts().store_aliasing.as_ref().map(|f| f.distances.clone());
        self.answers().and_then(|a| a.false_distances.clone()).or_else(stated)
    }

    /// The reorder buffer that the table states, or all tables that remain possible.
    fn stated_buffer(&self) -> Option<ReorderBuffer> {
        match &self.table {
            Some(table) => ReorderBuffer::stated(table),
            None => self.shared.as_ref().and_then(|shared| shared.reorder_buffer.clone()),
        }
    }

    /// The reorder buffer: as measured where it holds more than the table states, else as that states.
    pub fn reorder_buffer(&self) -> Option<ReorderBuffer> {
        let stated = self.stated_buffer();
        match self.beyond(Kind::ReorderBuffer, stated.as_ref().map(|buffer| buffer.entries)) {
            Some(known) => Some(ReorderBuffer {
                entries: known.value.round() as u32,
                source: format!("measured: {}", known.how),
            }),
            None => stated,
        }
    }

    /// Ids and labels of level 1 of the top-down tree; the paper's where there is no table.
    pub fn level_1(&self) -> Vec<(String, String)> {
        let nodes = self.table.iter().flat_map(|t| t.tree()).filter(|(_, node)| node.level == 1);
        let own: Vec<_> = nodes.map(|(_, n)| (n.id.to_string(), n.label.to_string())).collect();
        if !own.is_empty() {
            return own;
        }
        Level1::ALL.map(|node| (node.id().to_owned(), node.label())).to_vec()
    }

    /// The facts that are not known.
    pub fn missing(&self) -> Vec<FactName> {
        let mut missing = Vec::new();
        missing.extend(self.width().is_none().then_some(FactName::IssueWidth));
        missing.extend(self.reorder_buffer().is_none().then_some(FactName::ReorderBuffer));
        let is_measured = |fact: &FactName| *fact != FactName::OpCache || self.op_cache().is_none();
        missing.extend(self.facts().missing().into_iter().filter(is_measured));
        missing
    }

    /// The name of its table.
    pub fn needs_table(&self) -> Result<&str> {
        self.uarch().ok_or_else(|| {
            Error::failed("no event table describes this processor")
                .because(self.cpu.signature())
                .hint("name one with --uarch NAME; `tdtool tables list` lists them")
        })
    }

    /// The core that has what the tables `names` have in common: where nothing decides among them.
    pub fn in_common(library: &Library, names: &[String]) -> Result<Self> {
        let Some(shared) = Shared::of(library, names)? else { return Ok(Self::default()) };
        let file = |name: &Option<String>, of: fn(&Library, &str) -> Result<(String, String)>| {
            name.as_ref().map(|name| of(library, name)).transpose()
        };
        let latencies = file(&shared.facts.latencies, Library::latencies)?;
        let ports = file(&shared.facts.ports, Library::ports)?;
        Ok(Self { shared: Some(Arc::new(shared)), latencies, ports, ..Self::default() })
    }
}

/// Facts of an identity that a note names.
const NAMED: usize = 4;

/// `[2048, 4096]`.
fn list(numbers: &[u32]) -> String {
    let all: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("[{}]", all.join(", "))
}

impl Core {
    /// Where the self-test contradicts the table, in words.
    pub fn contradictions(&self) -> Vec<String> {
        self.answers().map(|answers| self.contradicted_by(answers)).unwrap_or_default()
    }

    /// Where these answers contradict the table, in words.
    pub fn contradicted_by(&self, answers: &Answers) -> Vec<String> {
        let (facts, mut found) = (self.facts(), Vec::new());
        let stated = facts.sustained_width.as_ref().map(|s| s.with_two_loads);
        let stated = stated.or(self.stated_width());
        if let (Some(stated), Some(measured)) = (stated, answers.width)
            && (measured / f64::from(stated) - 1.0).abs() > WIDTH_ERROR
        {
            found.push(format!("{measured:.1} instructions a cycle, the table states {stated}"));
        }
        let words = |fused| if fused { "fused" } else { "not fused" };
        if let (Some(stated), Some(measured)) = (&facts.nop_fusion, answers.nops_fused)
            && (stated.with != FusedWith::Nothing) != measured
        {
            let stated = stated.with != FusedWith::Nothing;
            found.push(format!("nops are {}, the table states {}", words(measured), words(stated)));
        }
        if let (Some(stated), Some(measured)) = (&facts.store_aliasing, &answers.false_distances)
            && stated.distances.iter().any(|d| !measured.contains(d))
        {
            let (measured, stated) = (list(measured), list(&stated.distances));
            found.push(format!("loads wait falsely at {measured}, the table states {stated}"));
        }
        found
    }

    /// A warning where the table is of another processor than the one that is measured.
    pub fn warning(&self) -> Option<String> {
        let table = self.table.as_ref().filter(|_| self.foreign)?;
        let is = match self.identity.as_ref().and_then(|identity| identity.table.as_ref()) {
            Some(own) if !self.cpu.vendor.is_empty() => {
                format!("{own}; {}", self.cpu.signature())
            }
            _ => self.cpu.signature(),
        };
        Some(format!(
            "table {} ({}) does not describe this processor ({is})",
            table.name, table.title
        ))
    }

    /// Note on its identity: that it is not what family and model claim, that something contradicts the table, or that
    /// several tables fit.
    pub fn identity_note(&self) -> Option<String> {
        let identity = self.identity.as_ref()?;
        let list = |facts: &mut dyn Iterator<Item = &Fact>| {
            let texts: Vec<String> = facts.take(NAMED).map(Fact::to_string).collect();
            texts.join(", ")
        };
        if self.table.is_none() && identity.candidates.len() > 1 {
            let tables = identity.candidates.join(", ");
            return Some(format!(
                "nothing decides between the tables {tables}: what they state alike is used, the \
                 rest is not known; --uarch NAME chooses"
            ));
        }
        let table = self.table.as_ref().filter(|_| !self.foreign)?;
        let against = list(&mut identity.against(&table.name));
        if !against.is_empty() {
            return Some(format!("table {} is contradicted by {against}", table.name));
        }
        let is_chosen = identity.table.as_ref() == Some(&table.name);
        (is_chosen && identity.is_masked()).then(|| {
            format!(
                "the processor is {} by its {}, though it claims {}: `tdtool tables identify`",
                table.name,
                identity.by.name(),
                self.cpu.signature()
            )
        })
    }
}
