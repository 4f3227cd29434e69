//! `tdtool tables show UARCH [NODE…]`

use super::print;
use crate::cli::Global;
use clap::Args;
use std::fmt::Write as _;
use std::process::ExitCode;
use tma::Result;
use tma::tables::texts::Texts;
use tma::tables::{Event, EventSpec, ExtraRegister, Node, NodeKind, PmuKind, Ring, Table, select};

#[derive(Args)]
pub struct ShowArgs {
    /// Microarchitecture (`tdtool tables list` names them)
    #[arg(value_name = "UARCH")]
    name: String,
    /// Nodes to explain: ids, wildcards, tags, as --nodes takes them
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// The bottlenecks view, info metrics and events, too
    #[arg(long)]
    all: bool,
}

/// The tree, or one block a node.
pub fn run(global: &Global, args: &ShowArgs) -> Result<ExitCode> {
    let library = global.library()?;
    let table = library.load(&args.name)?;
    let mut out = String::new();
    if args.nodes.is_empty() {
        head(&mut out, &table);
        tree(&mut out, &table, args.all);
    } else {
        for n in select(&table, &args.nodes.join(","))? {
            explain(&mut out, library.texts(), &table, &table.nodes[usize::from(n)]);
        }
    }
    print(&out)?;
    Ok(ExitCode::SUCCESS)
}

fn head(out: &mut String, table: &Table) {
    let counters = &table.counters;
    let mut lines = vec![("table", format!("{}: {}", table.name, table.title))];
    let depth = match table.pipeline.reorder_buffer {
        0 => String::new(),
        n => format!(", reorder buffer of {n}"),
    };
    lines.push(("pipeline", format!("{} slots a cycle{depth}", table.pipeline.width)));
    let mut text = format!("{} general", counters.general);
    if counters.general_smt != counters.general {
        let _ = write!(text, " ({} with SMT)", counters.general_smt);
    }
    let _ = write!(text, ", {} fixed", counters.fixed);
    if counters.topdown_levels > 0 {
        let _ = write!(text, ", fixed top-down metrics for level 1 to {}", counters.topdown_levels);
    }
    lines.push(("counters", text));
    lines.extend(table.tma.iter().map(|v| ("method", format!("TMA {v}"))));
    lines.extend(table.source.iter().map(|s| ("source", s.clone())));
    lines.extend(table.notes.iter().map(|n| ("note", n.clone())));
    let mut last = "";
    for (key, text) in lines {
        let _ = writeln!(out, "{:<9} {text}", if key == last { "" } else { key });
        last = key;
    }
    out.push('\n');
}

fn tree(out: &mut String, table: &Table, all: bool) {
    for (_, node) in table.tree() {
        line(out, node, usize::try_from(node.level).unwrap_or(1).saturating_sub(1));
    }
    if !all {
        let others = table.nodes.len() - table.tree().count();
        if others > 0 {
            let _ = writeln!(out, "\n{others} metrics beside the tree: --all shows them");
        }
        return;
    }
    for (kind, what) in [(NodeKind::Bottleneck, "bottlenecks view"), (NodeKind::Info, "metrics")] {
        if table.of_kind(kind).next().is_some() {
            let _ = writeln!(out, "\n{what}");
        }
        for (_, node) in table.of_kind(kind) {
            line(out, node, 1);
        }
    }
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

fn explain(out: &mut String, texts: Texts, table: &Table, node: &Node) {
    let _ = writeln!(out, "{}  ({})", node.id, node.label);
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
    for (key, list) in
        [("locate", &node.spec.locate), ("tags", &node.spec.groups), ("issues", &node.spec.issues)]
    {
        if !list.is_empty() {
            field(key, &list.join(", "));
        }
    }
    let both: std::collections::BTreeSet<_> = node.events.iter().flatten().collect();
    for e in both {
        let event = &table.events[usize::from(*e)];
        let only = match (node.events[0].contains(e), node.events[1].contains(e)) {
            (true, false) => " (SMT off)",
            (false, true) => " (SMT on)",
            _ => "",
        };
        field("event", &format!("{} {}{only}", event.name, encoding(table, event)));
    }
    out.push('\n');
}

/// As perf would be asked for it: `cpu/event=0x1a0,umask=0x1,cmask=6/`.
fn encoding(table: &Table, event: &Event) -> String {
    let e = &event.spec;
    let mut text = match e.pmu {
        PmuKind::Core => core(table, e),
        PmuKind::Tsc => "time stamp counter".into(),
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

fn core(table: &Table, e: &EventSpec) -> String {
    let mut fields = match e.metric {
        Some(n) => vec![format!("config={:#x}", 0x8000 + 0x100 * u32::from(n))],
        None => vec![format!("event={:#x}", e.code)],
    };
    fields.extend((e.umask != 0).then(|| format!("umask={:#x}", e.umask)));
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
