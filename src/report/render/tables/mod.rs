//! The event tables as text: a list of them, the contents of one, one node with its formula, threshold and events.
//! `plan` has groups of events, what is wrong with a table, and values for counts from a file.

mod plan;

use pmu::machine::TableMatch;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tma::tables::texts::Texts;
use tma::tables::{Event, EventSpec, ExtraRegister, Library, Node, NodeKind, PmuKind, Ring, Table};

pub use plan::{PerfStat, check, evaluation_csv, evaluation_remarks, perf_stat, plan};

/// The tables of `library`; `*` marks those of `here`, this processor.
pub fn list(library: &Library, here: &[TableMatch]) -> String {
    let mut out = String::new();
    let _ =
        writeln!(out, "  {:<8} {:>6} {:>5} {:>5}  processors", "name", "levels", "nodes", "infos");
    for name in library.names() {
        let mark = if here.iter().any(|t| t.table == name) { '*' } else { ' ' };
        match library.load(name) {
            Ok(table) => {
                let nodes = table.tree().count();
                let (depth, infos) = (table.depth(), table.nodes.len() - nodes);
                let title = &table.title;
                let _ = writeln!(out, "{mark} {name:<8} {depth:>6} {nodes:>5} {infos:>5}  {title}");
            }
            Err(e) => {
                let _ = writeln!(out, "{mark} {name:<8} {e}");
            }
        }
    }
    out += match here {
        [] => "\nno table matches this processor: --uarch NAME forces one\n",
        _ => "\n* this processor\n",
    };
    out
}

/// The table's facts and tree; `all` adds the bottlenecks view, info metrics and events.
pub fn table(table: &Table, all: bool) -> String {
    let mut out = String::new();
    facts(&mut out, table);
    for (_, node) in table.tree() {
        line(&mut out, node, usize::try_from(node.level).unwrap_or(1).saturating_sub(1));
    }
    if all {
        metrics(&mut out, table);
        events(&mut out, table);
    } else {
        let others = table.nodes.len() - table.tree().count();
        if others > 0 {
            let _ = writeln!(out, "\n{others} metrics outside the tree: --all shows them");
        }
    }
    out
}

fn facts(out: &mut String, table: &Table) {
    let mut rows = vec![("table", format!("{}: {}", table.name, table.title))];
    let buffer = match table.pipeline.reorder_buffer {
        0 => String::new(),
        n => format!(", reorder buffer of {n}"),
    };
    rows.push(("pipeline", format!("{} slots per cycle{buffer}", table.pipeline.width)));
    rows.push(("counters", counters(table)));
    rows.extend(table.tma.iter().map(|v| ("method", format!("TMA {v}"))));
    rows.extend(table.source.iter().map(|s| ("source", s.clone())));
    rows.extend(table.notes.iter().map(|n| ("note", n.clone())));
    let mut last = "";
    for (key, text) in rows {
        let _ = writeln!(out, "{:<9} {text}", if key == last { "" } else { key });
        last = key;
    }
    out.push('\n');
}

fn counters(table: &Table) -> String {
    let counters = &table.counters;
    let mut text = format!("{} general", counters.general);
    if counters.general_smt != counters.general {
        let _ = write!(text, " ({} with SMT)", counters.general_smt);
    }
    let _ = write!(text, ", {} fixed", counters.fixed);
    if counters.topdown_levels > 0 {
        let _ = write!(text, ", fixed top-down metrics for level 1 to {}", counters.topdown_levels);
    }
    text
}

fn metrics(out: &mut String, table: &Table) {
    for (kind, what) in [(NodeKind::Bottleneck, "bottlenecks view"), (NodeKind::Info, "metrics")] {
        if table.of_kind(kind).next().is_some() {
            let _ = writeln!(out, "\n{what}");
        }
        for (_, node) in table.of_kind(kind) {
            line(out, node, 1);
        }
    }
}

fn events(out: &mut String, table: &Table) {
    out.push_str("\nevents\n");
    for event in &table.events {
        let _ = writeln!(out, "  {} {}", event.name, encoding(table, event));
    }
}

fn line(out: &mut String, node: &Node, depth: usize) {
    let indent = "  ".repeat(depth);
    let unit = node.spec.unit.as_deref().filter(|u| !u.is_empty());
    let unit = unit.map(|u| format!(" [{u}]")).unwrap_or_default();
    let estimate = if node.spec.estimate.is_some() { " (estimate)" } else { "" };
    let _ = writeln!(out, "{indent}{}{unit}{estimate} = {}", node.id, node.spec.formula);
    if let Some(over) = &node.spec.over {
        let _ = writeln!(out, "{indent}    over: {over}");
    }
}

/// Everything the table and the reference texts have about `node`.
pub fn node(texts: Texts, table: &Table, node: &Node) -> String {
    let mut out = format!("{}  ({})\n", node.id, node.label);
    let mut field = |key: &str, text: &str| {
        let _ = writeln!(out, "  {key:<10} {text}");
    };
    if node.kind == NodeKind::Tree {
        let parent = node.parent.map(|p| table.nodes[usize::from(p)].id.as_str());
        let under = parent.map(|p| format!(" under {p}")).unwrap_or_default();
        field("level", &format!("{}{under}", node.level));
    }
    if let Some(text) = texts.node(table, &node.id) {
        field("meaning", text.meaning);
        text.causes.iter().for_each(|t| field("causes", t));
        text.next.iter().for_each(|t| field("next", t));
    }
    node.spec.estimate.iter().for_each(|t| field("estimate", t));
    field("formula", &node.spec.formula);
    node.spec.over.iter().for_each(|t| field("over", t));
    node.spec.domain.iter().for_each(|t| field("share of", t));
    node.spec.unit.iter().filter(|u| !u.is_empty()).for_each(|t| field("unit", t));
    let lists =
        [("locate", &node.spec.locate), ("tags", &node.spec.groups), ("issues", &node.spec.issues)];
    for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        field(key, &list.join(", "));
    }
    for (name, text) in events_of(table, node) {
        field("event", &format!("{name} {text}"));
    }
    out.push('\n');
    out
}

/// The events of a node with their encodings; which SMT setting they are for, if for one only.
fn events_of(table: &Table, node: &Node) -> Vec<(String, String)> {
    let [off, on] = &node.events;
    let both: BTreeSet<_> = off.iter().chain(on).collect();
    let row = |e: &u16| {
        let event = &table.events[usize::from(*e)];
        let only = match (off.contains(e), on.contains(e)) {
            (true, false) => " (SMT off)",
            (false, true) => " (SMT on)",
            _ => "",
        };
        (event.name.clone(), encoding(table, event) + only)
    };
    both.into_iter().map(row).collect()
}

/// The encoding of `event`, the counters it may use, and its errata.
fn encoding(table: &Table, event: &Event) -> String {
    let e = &event.spec;
    let mut text = match e.pmu {
        PmuKind::Core => core(table, e),
        PmuKind::Tsc => "time-stamp counter".into(),
        PmuKind::Power => "RAPL energy".into(),
        PmuKind::Uncore => "uncore: imported counts only".into(),
        PmuKind::Latency => match e.default {
            Some(cycles) => format!("latency, {cycles} cycles where it is not measured"),
            None => "latency".into(),
        },
        PmuKind::Abstract => "abstract: imported counts only".into(),
    };
    if let Some(n) = e.fixed {
        let _ = write!(text, " on fixed counter {n}{}", if e.fixed_only { "" } else { " or any" });
    }
    if let Some(counters) = &e.counters {
        let list: Vec<String> = counters.iter().map(u8::to_string).collect();
        let _ = write!(text, " on counters {}", list.join(","));
    }
    if let Some(errata) = &e.errata {
        let _ = write!(text, " ({errata})");
    }
    text
}

/// A core event by its encoding.
fn core(table: &Table, e: &EventSpec) -> String {
    let mut fields = match e.metric {
        Some(n) => vec![format!("config={:#x}", 0x8000 + 0x100 * u32::from(n))],
        None => vec![format!("event={:#x}", e.code)],
    };
    // A metric's mask is part of its configuration.
    let umask = if e.metric.is_some() { 0 } else { e.umask };
    fields.extend((umask != 0).then(|| format!("umask={umask:#x}")));
    fields.extend((e.cmask != 0).then(|| format!("cmask={}", e.cmask)));
    for (key, on) in [("inv", e.inv), ("edge", e.edge), ("any", e.any), ("eq", e.eq)] {
        fields.extend(on.then(|| key.to_owned()));
    }
    if let (Some(extra), Some(value)) = (e.extra, e.value) {
        let key = match extra {
            ExtraRegister::OffcoreRsp => "offcore_rsp",
            ExtraRegister::Frontend => "frontend",
            ExtraRegister::Ldlat => "ldlat",
            ExtraRegister::SnoopRsp => "snoop_rsp",
        };
        fields.push(format!("{key}={value:#x}"));
    }
    let ring = match e.ring {
        Some(Ring::User) => "u",
        Some(Ring::Kernel) => "k",
        None => "",
    };
    format!("{}/{}/{ring}", table.pmu, fields.join(","))
}
