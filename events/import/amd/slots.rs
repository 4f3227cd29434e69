//! The two-level tree over dispatch slots that AMD publishes for Zen 4 and later, and each generation of Zen cores
//! with the metrics that its JSON lists.
//!
//! Thresholds mirror Intel's for the same question (TMA 5: 15 % of the slots at level 1 for the
//! front end and bad speculation, 20 % for the back end, 70 % for retiring, 10 to 20 % below).

use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use tma::formula::parse;
use tma::tables::Facts;
use tma::tables::schema::{EventSpec, NodeSpec};

/// One generation: everything that its JSON does not say.
pub struct Generation {
    pub name: &'static str,
    pub title: &'static str,
    /// Code names of its products.
    pub aliases: &'static [&'static str],
    pub family: u32,
    /// As the kernel assigns them (`bsp_init_amd` in arch/x86/kernel/cpu/amd.c).
    pub models: &'static [RangeInclusive<u32>],
    /// Ops dispatched a cycle, and entries of the retire queue (AMD's software optimization
    /// guides for families 17h, 19h and 1Ah).
    pub width: u32,
    pub reorder_buffer: u32,
    pub facts: fn() -> Facts,
    /// Event that counts retired ops.
    pub retired: &'static str,
    /// Makes the tree and adds to the notes what it could not say.
    pub tree: fn(&Generation, &Vendor) -> Result<Vec<NodeSpec>>,
}

/// Contents of one folder of JSON.
pub struct Vendor {
    /// Core events by name.
    pub events: BTreeMap<String, EventSpec>,
    /// Events that other PMUs count (L3, data fabric, memory controller).
    pub elsewhere: BTreeSet<String>,
    /// Names of the plain events that the list of recommended metrics adds.
    pub recommended: Vec<String>,
    /// Metrics in file order.
    pub metrics: Vec<Metric>,
}

/// A metric as the vendor writes it.
pub struct Metric {
    pub name: String,
    pub expr: String,
    pub scale: String,
    pub groups: Vec<String>,
}

/// Properties of a node that the JSON lacks: label, threshold, sampling events.
struct Ours {
    /// The metric's name without the `by_` and `from_` that Zen 5 puts in.
    id: &'static str,
    label: &'static str,
    over: &'static str,
    /// The events that exist are taken.
    locate: &'static [&'static str],
}

const OURS: [Ours; 13] = [
    Ours { id: "frontend_bound", label: "Frontend Bound", over: "> 0.15", locate: &[] },
    Ours {
        id: "frontend_bound_latency",
        label: "Latency",
        over: "> 0.1",
        locate: &["ic_tag_hit_miss.instruction_cache_miss"],
    },
    Ours {
        id: "frontend_bound_bandwidth",
        label: "Bandwidth",
        over: "> 0.1",
        locate: &["op_cache_hit_miss.op_cache_miss"],
    },
    Ours { id: "bad_speculation", label: "Bad Speculation", over: "> 0.15", locate: &[] },
    Ours {
        id: "bad_speculation_mispredicts",
        label: "Branch Mispredicts",
        over: "> 0.1",
        locate: &["ex_ret_brn_misp"],
    },
    Ours {
        id: "bad_speculation_pipeline_restarts",
        label: "Pipeline Restarts",
        over: "> 0.1",
        locate: &["resyncs_or_nc_redirects", "bp_redirects.resync"],
    },
    Ours { id: "backend_bound", label: "Backend Bound", over: "> 0.2", locate: &[] },
    Ours {
        id: "backend_bound_memory",
        label: "Memory Bound",
        over: "> 0.2",
        locate: &["ls_dmnd_fills_from_sys.local_ccx", "ls_dmnd_fills_from_sys.dram_io_near"],
    },
    Ours { id: "backend_bound_cpu", label: "CPU Bound", over: "> 0.1", locate: &[] },
    Ours { id: "smt_contention", label: "SMT Contention", over: "> 0.25", locate: &[] },
    Ours {
        id: "retiring",
        label: "Retiring",
        over: "> 0.7 or retiring_microcode > 0.05",
        locate: &[],
    },
    Ours { id: "retiring_fastpath", label: "Fastpath", over: "> 0.6", locate: &[] },
    Ours {
        id: "retiring_microcode",
        label: "Microcode",
        over: "> 0.05",
        locate: &["ex_ret_ucode_ops"],
    },
];

/// Whether `metric` is a node of the tree.
pub fn is_tree(metric: &Metric) -> bool {
    metric.groups.iter().any(|g| g == "PipelineL1" || g == "PipelineL2")
}

/// The tree, each parent followed by its children.
pub fn tree(_: &Generation, vendor: &Vendor) -> Result<Vec<NodeSpec>> {
    let level =
        |l: &'static str| vendor.metrics.iter().filter(move |m| m.groups.iter().any(|g| g == l));
    let mut nodes = Vec::new();
    for top in level("PipelineL1") {
        nodes.push(node(top, None, vendor)?);
        let group = format!("{}_group", top.name);
        for below in level("PipelineL2").filter(|m| m.groups.contains(&group)) {
            nodes.push(node(below, Some(&top.name), vendor)?);
        }
    }
    Ok(nodes)
}

fn node(metric: &Metric, parent: Option<&str>, vendor: &Vendor) -> Result<NodeSpec> {
    let plain = metric.name.replace("_by_", "_").replace("_from_", "_");
    let Some(ours) = OURS.iter().find(|o| o.id == plain) else {
        bail!("node {} is new: give it a label and a threshold", metric.name)
    };
    let own = |name: &str| {
        vendor.metrics.iter().find(|m| m.name.replace("_from_", "_") == name).map(|m| &m.name)
    };
    let mut over = format!("{} {}", metric.name, ours.over);
    if let Some(microcode) = own("retiring_microcode") {
        // The threshold of `retiring` names the child by whatever this generation calls it.
        if metric.name == "retiring" {
            over = over.replace("retiring_microcode", microcode);
        }
    }
    if let Some(parent) = parent {
        let above = OURS.iter().find(|o| o.id == parent).map_or("", |o| o.over);
        if parent != "retiring" {
            over = format!("{over} and {parent} {above}");
        }
    }
    let locate = ours.locate.iter().filter(|e| vendor.events.contains_key(**e));
    Ok(NodeSpec {
        id: metric.name.clone(),
        label: Some(ours.label.into()),
        parent: parent.map(str::to_owned),
        level: if parent.is_some() { 2 } else { 1 },
        formula: convert(&metric.expr)?,
        domain: Some("Slots".into()),
        over: Some(over),
        locate: locate.map(|e| (*e).to_owned()).collect(),
        groups: metric.groups.clone(),
        ..Default::default()
    })
}

/// `d_ratio(a, b)` → `a / b`; `cpu@name\,cmask\=0x6@` → `name:c6`; `instructions` →
/// `ex_ret_instr`, which is what the kernel counts for it on AMD.
pub fn convert(text: &str) -> Result<String> {
    let text = ratios(&modifiers(text)?)?;
    let expr = parse(&text).with_context(|| text.clone())?;
    let mut words = String::new();
    for word in expr.to_string().split_inclusive([' ', '(', ')', ',']) {
        let (name, rest) = word.split_at(word.trim_end_matches([' ', '(', ')', ',']).len());
        words += if name == "instructions" { "ex_ret_instr" } else { name };
        words += rest;
    }
    Ok(words)
}

/// An event's name without its modifiers.
pub fn base(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

fn modifiers(text: &str) -> Result<String> {
    let mut parts = text.split('@');
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(event) = parts.next() {
        let (before, Some((name, modifier))) =
            (out.strip_suffix("cpu"), event.split_once("\\,cmask\\=0x"))
        else {
            bail!("event modifier in `{text}` is new");
        };
        let cmask = u32::from_str_radix(modifier, 16)?;
        out = format!("{}{name}:c{cmask}", before.unwrap_or(&out));
        out += parts.next().unwrap_or_default();
    }
    Ok(out)
}

fn ratios(text: &str) -> Result<String> {
    const CALL: &str = "d_ratio(";
    let Some(at) = text.find(CALL) else { return Ok(text.to_owned()) };
    let inside = &text[at + CALL.len()..];
    let (mut depth, mut comma, mut end) = (0, None, None);
    for (i, c) in inside.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => {
                end = Some(i);
                break;
            }
            ')' => depth -= 1,
            ',' if depth == 0 => comma = Some(i),
            _ => {}
        }
    }
    let (Some(comma), Some(end)) = (comma, end) else { bail!("unbalanced `{text}`") };
    let ratio = format!("(({}) / ({}))", &inside[..comma], &inside[comma + 1..end]);
    ratios(&format!("{}{ratio}{}", &text[..at], &inside[end + 1..]))
}
