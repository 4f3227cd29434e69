//! Counts → report: a live measurement ([`live`](mod@live)) or recorded counts ([`imported`](mod@imported)),
//! evaluated. `software` has software counts under the document's names. This file chooses the nodes of a report,
//! describes the target of a measurement in words and as options, and has the texts of `events/nodes.toml` for
//! findings.

pub mod imported;
pub mod live;
pub(crate) mod software;

pub(crate) use imported::of_counts;
pub use imported::{ImportAsk, imported};
pub use live::{LiveAsk, Outcome, Update, live, live_through, required};
use pmu::Target;
use report::documents::{Finding, FindingKind, Selection};
use std::path::Path;
use tma::Result;
use tma::schedule::{self, Budget, deepest_without_multiplexing};
use tma::shell::quoted;
use tma::tables::texts::Texts;
use tma::tables::{NodeId, NodeKind, PmuKind, Table, select};

/// Nodes that the user wants to see.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Deepest level; `None`: the deepest that needs no multiplexing (live) or is complete
    /// (imports).
    pub level: Option<u32>,
    /// Node list as [`select()`] takes it; `None`: the whole tree down to the level.
    pub nodes: Option<String>,
    /// Add the bottlenecks view.
    pub bottlenecks: bool,
    /// Leave out the counts behind each node and the events that locate it: the output does not show them, and at short
    /// intervals they cost.
    pub without_details: bool,
}

/// Nodes of one table, and the level they reach.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Deepest level shown.
    pub level: u32,
    /// Rows of the report.
    pub selection: Selection,
    /// Nodes to count for: the rows, and the infos that cost no general counter.
    pub counted: Vec<NodeId>,
}

impl Ask {
    /// The nodes for a live measurement within `budget`.
    ///
    /// # Errors
    /// The node list names what the table does not have.
    pub fn live(&self, table: &Table, smt: bool, budget: &Budget) -> Result<Chosen> {
        let level = match (self.level, &self.nodes) {
            (Some(level), _) => level,
            (None, Some(_)) => table.depth(),
            (None, None) => deepest_without_multiplexing(table, smt, budget),
        };
        let mut chosen = self.at_level(table, level)?;
        let is_bottleneck = |n: &NodeId| table.nodes[usize::from(*n)].kind == NodeKind::Bottleneck;
        let (asked, others): (Vec<NodeId>, Vec<NodeId>) = chosen
            .selection
            .beside
            .iter()
            .partition(|n| is_bottleneck(n) || self.names(**n, table));
        let counted = chosen.selection.tree.iter().copied().chain(asked).collect();
        chosen.counted = with_free_infos(table, counted, &others, smt, budget);
        Ok(chosen)
    }

    /// The nodes down to `level`, or those of the node list.
    ///
    /// # Errors
    /// The node list names what the table does not have.
    pub fn at_level(&self, table: &Table, level: u32) -> Result<Chosen> {
        let mut selection = Selection::level(table, level, self.bottlenecks);
        selection.without_details = self.without_details;
        if let Some(list) = &self.nodes {
            let listed = select(table, list)?;
            let is_tree = |n: &NodeId| table.nodes[usize::from(*n)].kind == NodeKind::Tree;
            let within = |n: &NodeId| {
                self.level.is_none_or(|level| table.nodes[usize::from(*n)].level <= level)
            };
            selection.tree = listed.iter().copied().filter(is_tree).filter(within).collect();
            for n in listed.into_iter().filter(|n| !is_tree(n)) {
                if !selection.beside.contains(&n) {
                    selection.beside.push(n);
                }
            }
            selection.beside.sort_unstable();
        }
        let deepest = selection.tree.iter().map(|n| table.nodes[usize::from(*n)].level).max();
        let counted = selection.tree.iter().chain(&selection.beside).copied().collect();
        Ok(Chosen { level: deepest.unwrap_or(0), selection, counted })
    }

    /// Whether the node list asks for this info by name.
    fn names(&self, n: NodeId, table: &Table) -> bool {
        self.nodes.as_ref().is_some_and(|l| select(table, l).is_ok_and(|s| s.contains(&n)))
    }
}

/// `counted` and those infos that need no further group: first all that sit on fixed counters,
/// then the usual few that find room beside what is counted anyway (on AMD, which has no fixed
/// counters, that is how IPC gets in).
fn with_free_infos(
    table: &Table,
    mut counted: Vec<NodeId>,
    infos: &[NodeId],
    smt: bool,
    budget: &Budget,
) -> Vec<NodeId> {
    let groups = |nodes: &[NodeId]| schedule::plan_with(table, nodes, smt, budget, 0).groups.len();
    let least = groups(&counted).max(1);
    let fixed = |n: &&NodeId| on_fixed_counters(table, **n, smt);
    let usual = |n: &&NodeId| {
        let id = table.nodes[usize::from(**n)].id.as_str();
        USUAL_INFOS.contains(&id) && !on_fixed_counters(table, **n, smt)
    };
    let mut candidates: Vec<Vec<NodeId>> = vec![infos.iter().filter(fixed).copied().collect()];
    candidates.extend(infos.iter().filter(fixed).map(|n| vec![*n]));
    candidates.extend(infos.iter().filter(usual).map(|n| vec![*n]));
    for more in candidates {
        let new = |n: &NodeId| !counted.contains(n);
        let more: Vec<NodeId> = more.into_iter().filter(new).collect();
        let with: Vec<NodeId> = counted.iter().copied().chain(more.iter().copied()).collect();
        if !more.is_empty() && groups(&with) <= least {
            counted = with;
        }
    }
    counted
}

/// Infos worth a counter that is left over.
const USUAL_INFOS: [&str; 3] = ["IPC", "GHz", "UpTC"];

/// Whether a node's core events all sit on fixed counters.
fn on_fixed_counters(table: &Table, n: NodeId, smt: bool) -> bool {
    let events = table.events_of(n, smt);
    let fixed = |spec: &tma::tables::EventSpec| match spec.pmu {
        PmuKind::Core => spec.fixed.is_some() && spec.ring.is_none() && !spec.percore,
        PmuKind::Tsc => true,
        _ => false,
    };
    !events.is_empty() && events.iter().all(|e| fixed(&table.events[usize::from(*e)].spec))
}

/// In words; none of a command, which speaks for itself.
pub(crate) fn words(target: &Target) -> Option<String> {
    Some(match target {
        Target::Command => return None,
        Target::Process(pid) => format!("process {pid}"),
        Target::Thread(tid) => format!("thread {tid}"),
        Target::System => "all CPUs".to_owned(),
        Target::Cpus(cpus) => format!("CPUs {}", list(cpus)),
        Target::Cgroup(path) => format!("cgroup {}", path.display()),
    })
}

/// The options of `tdtool report` that name it; none of a command.
pub(crate) fn options(target: &Target) -> Option<String> {
    Some(match target {
        Target::Command => return None,
        Target::Process(pid) => format!("-p {pid}"),
        Target::Thread(tid) => format!("-t {tid}"),
        Target::System => "-a".to_owned(),
        Target::Cpus(cpus) => format!("-C {}", list(cpus)),
        Target::Cgroup(path) => quoted(&[Path::new("--cgroup"), path]),
    })
}

fn list(cpus: &[u32]) -> String {
    let all: Vec<String> = cpus.iter().map(u32::to_string).collect();
    all.join(",")
}

/// The name of a process, where it still runs.
pub(crate) fn named(pid: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(tma::text::name(name.trim_end()).into_owned()).filter(|name| !name.is_empty())
}

/// Fills meaning, causes and next step of the findings that name a node.
pub(super) fn advise(texts: Texts, table: &Table, findings: &mut [Finding]) {
    for finding in findings {
        if !matches!(finding.kind, FindingKind::Bottleneck | FindingKind::Undecided) {
            continue;
        }
        let Some(id) = &finding.node else { continue };
        let Some(text) = texts.node(table, id) else { continue };
        finding.meaning = Some(text.meaning.to_owned());
        finding.causes = text.causes.map(str::to_owned);
        finding.next = text.next.map(str::to_owned);
    }
}
