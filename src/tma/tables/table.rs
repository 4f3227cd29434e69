//! A table ready for use: names resolved to indices, formulas compiled, dependencies closed.

use super::facts::Facts;
use super::schema::{
    CoreKind, Counters, EventSpec, MatchRule, NodeSpec, Pipeline, Signature, TableFile,
};
use crate::error::{Error, Result};
use crate::formula::Program;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Index into [`Table::events`].
pub type EventId = u16;
/// Index into [`Table::nodes`].
pub type NodeId = u16;

/// A constant of the run, written `#NAME` in formulas and in imported counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Const {
    /// 1 with SMT on, else 0.
    SmtOn,
    /// Wall time of the measurement or interval, in milliseconds.
    DurationMs,
    /// Frequency of the time stamp counter, in hertz.
    TscHz,
    /// Processor sockets.
    Sockets,
    /// Physical cores of one socket.
    CoresPerSocket,
}

impl Const {
    /// All of them, in index order.
    pub const ALL: [Const; 5] =
        [Const::SmtOn, Const::DurationMs, Const::TscHz, Const::Sockets, Const::CoresPerSocket];

    /// The name after the `#`.
    pub fn name(self) -> &'static str {
        match self {
            Const::SmtOn => "SMT_ON",
            Const::DurationMs => "DURATION_MS",
            Const::TscHz => "TSC_HZ",
            Const::Sockets => "SOCKETS",
            Const::CoresPerSocket => "CORES_PER_SOCKET",
        }
    }

    /// The constant called `name`, whatever its case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name().eq_ignore_ascii_case(name))
    }

    /// Its index in [`Const::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Role of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NodeKind {
    /// Part of the tree.
    Tree,
    /// Part of the bottlenecks view.
    Bottleneck,
    /// Any other metric.
    Info,
}

/// An event of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Name as the formulas write it, modifiers included.
    pub name: String,
    /// How it is programmed.
    pub spec: EventSpec,
}

/// A node, bottleneck or info metric of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The vendor's name.
    pub id: SmolStr,
    /// Label shown to users.
    pub label: SmolStr,
    /// Tree, bottleneck or info.
    pub kind: NodeKind,
    /// Parent in the tree.
    pub parent: Option<NodeId>,
    /// Level in the tree from 1; 0 outside it.
    pub level: u32,
    /// The value.
    pub formula: Program,
    /// The vendor's threshold.
    pub over: Option<Program>,
    /// The rest of its entry in the file, with formula texts.
    pub spec: NodeSpec,
    /// Events the value needs, other nodes' events included, sorted; `[SMT off, SMT on]`.
    pub events: [Vec<EventId>; 2],
    /// Nodes the value is computed from directly; `[SMT off, SMT on]`.
    pub uses: [Vec<NodeId>; 2],
    /// Whether the formula reads a constant other than `#SMT_ON`, itself or through a node.
    pub reads_constants: bool,
}

/// A microarchitecture's table.
///
/// ```
/// use tma::tables::Table;
///
/// let table = Table::parse(
///     r#"
/// schema = 1
/// name = "toy"
/// title = "A processor with two events"
/// vendor = "any"
/// pmu = "cpu"
/// source = ["hand-written"]
/// clocks = "CYCLES"
/// pipeline = { width = 4 }
/// counters = { general = 2, general_smt = 2, fixed = 0 }
/// events = { CYCLES = { code = 0x3c }, BUBBLES = { code = 0x9c, umask = 1 } }
///
/// [[node]]
/// id = "Frontend_Bound"
/// level = 1
/// formula = "BUBBLES / (4 * CYCLES)"
/// over = "Frontend_Bound > 0.15"
/// "#,
///     "toy.toml",
/// )?;
/// let node = table.node("Frontend_Bound").expect("defined above");
/// let names = table.events_of(node, false).iter().map(|e| &table.events[usize::from(*e)].name);
/// assert!(names.eq(["BUBBLES", "CYCLES"]));
/// # Ok::<(), tma::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The name users type.
    pub name: String,
    /// Common name of the processors.
    pub title: String,
    /// Further names of them.
    pub aliases: Vec<String>,
    /// CPUID vendor string, or `any`.
    pub vendor: String,
    /// Kind of core on hybrids.
    pub core: Option<CoreKind>,
    /// Name of the core PMU.
    pub pmu: String,
    /// Where the facts come from.
    pub source: Vec<String>,
    /// Version of Intel's method.
    pub tma: Option<String>,
    /// The core clock event.
    pub clocks: EventId,
    /// Variant of the texts in `events/nodes.toml`.
    pub texts: Option<String>,
    /// Errata and kernel notes.
    pub notes: Vec<String>,
    /// Processors it is for.
    pub matches: Vec<MatchRule>,
    /// CPUID signature of such a core.
    pub signature: Option<Signature>,
    /// Width and depth.
    pub pipeline: Pipeline,
    /// Counters of the core.
    pub counters: Counters,
    /// Properties of the core that measurements and models assume.
    pub facts: Facts,
    /// All events, by name order.
    pub events: Vec<Event>,
    /// Tree (parents first), then bottlenecks, then infos.
    pub nodes: Vec<Node>,
    /// Order in which every node comes after those its formula reads.
    pub order: Vec<NodeId>,
    /// Nodes by id.
    pub(super) by_id: Vec<NodeId>,
}

impl Table {
    /// Parses and compiles the text of a table file; `origin` names it in errors.
    ///
    /// # Errors
    /// TOML and schema errors with line and column; an unknown name, a cycle, a dangling parent.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        Self::from_file(Self::read(text, origin)?, origin)
    }

    /// Parses the text of a table file without compiling it.
    ///
    /// # Errors
    /// TOML and schema errors with line and column.
    pub fn read(text: &str, origin: &str) -> Result<TableFile> {
        toml::from_str(text).map_err(|e| {
            Error::failed(format!("{origin}: the table cannot be read"))
                .because(e.to_string().trim_end())
                .hint("docs/reference/tables.md describes every key of a table")
        })
    }

    /// Compiles a table file; `origin` names it in errors.
    pub fn from_file(file: TableFile, origin: &str) -> Result<Self> {
        Self::compile(file).map_err(|e| {
            Error::failed(format!("{origin}: the table is not valid"))
                .because(e)
                .hint("docs/reference/tables.md describes formulas, parents and thresholds")
        })
    }

    /// The node with this id, exactly as written.
    pub fn node(&self, id: &str) -> Option<NodeId> {
        let own = |n: &NodeId| self.nodes[usize::from(*n)].id.as_str();
        let at = self.by_id.binary_search_by(|n| own(n).cmp(id)).ok()?;
        Some(self.by_id[at])
    }

    /// The event with this name, exactly as written.
    pub fn event(&self, name: &str) -> Option<EventId> {
        let at = self.events.binary_search_by(|e| e.name.as_str().cmp(name)).ok()?;
        u16::try_from(at).ok()
    }

    /// The file that it was compiled from.
    pub fn to_file(&self) -> TableFile {
        let specs = |kind| self.of_kind(kind).map(|(_, n)| n.spec.clone()).collect();
        TableFile {
            schema: 1,
            name: self.name.clone(),
            title: self.title.clone(),
            aliases: self.aliases.clone(),
            vendor: self.vendor.clone(),
            core: self.core,
            pmu: self.pmu.clone(),
            source: self.source.clone(),
            tma: self.tma.clone(),
            clocks: self.events[usize::from(self.clocks)].name.clone(),
            texts: self.texts.clone(),
            notes: self.notes.clone(),
            matches: self.matches.clone(),
            signature: self.signature.clone(),
            pipeline: self.pipeline.clone(),
            counters: self.counters.clone(),
            facts: self.facts.clone(),
            events: self.events.iter().map(|e| (e.name.clone(), e.spec.clone())).collect(),
            node: specs(NodeKind::Tree),
            bottleneck: specs(NodeKind::Bottleneck),
            info: specs(NodeKind::Info),
        }
    }

    /// Ids and nodes of the tree, parents before children, in file order.
    pub fn tree(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.of_kind(NodeKind::Tree)
    }

    /// Ids and nodes of one kind, in file order.
    pub fn of_kind(&self, kind: NodeKind) -> impl Iterator<Item = (NodeId, &Node)> {
        (0..).zip(&self.nodes).filter(move |(_, n)| n.kind == kind)
    }

    /// Direct children of `parent` (`None`: level 1), in file order.
    pub fn children(&self, parent: Option<NodeId>) -> impl Iterator<Item = NodeId> + '_ {
        self.tree().filter(move |(_, n)| n.parent == parent).map(|(i, _)| i)
    }

    /// The deepest level of the tree.
    pub fn depth(&self) -> u32 {
        self.tree().map(|(_, n)| n.level).max().unwrap_or(0)
    }

    /// Events node `n` needs, other nodes' events included.
    pub fn events_of(&self, n: NodeId, smt: bool) -> &[EventId] {
        &self.nodes[usize::from(n)].events[usize::from(smt)]
    }
}

/// A node of level 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level1 {
    /// Slots that the front end left empty.
    FrontendBound,
    /// Slots of work on a wrong path, and of recovery from it.
    BadSpeculation,
    /// Slots that waited for the back end.
    BackendBound,
    /// Slots of work that was retired.
    Retiring,
}

impl Level1 {
    /// All of them, in the order of the paper.
    pub const ALL: [Self; 4] =
        [Self::FrontendBound, Self::BadSpeculation, Self::BackendBound, Self::Retiring];

    /// As the paper and Intel's tables spell it.
    pub fn id(self) -> &'static str {
        match self {
            Self::FrontendBound => "Frontend_Bound",
            Self::BadSpeculation => "Bad_Speculation",
            Self::BackendBound => "Backend_Bound",
            Self::Retiring => "Retiring",
        }
    }

    /// The one with this id: vendors differ in case only.
    pub fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|node| node.id().eq_ignore_ascii_case(id))
    }

    /// The label shown to users.
    pub fn label(self) -> String {
        self.id().replace('_', " ")
    }
}
