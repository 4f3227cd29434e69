//! AMD's tables, from the event codes and metric arithmetic that Linux carries for Zen
//! (`amdzen/amdzen1` … `amdzen5`, each a folder of JSON lists).
//!
//! Only codes and arithmetic are taken over. Zen 4 and later publish a two-level tree (`slots`);
//! Zen 1 to 3 have no slot events, their trees are estimates of our own (`estimates`). AMD
//! publishes no thresholds: those are chosen in these files and explained in
//! docs/method/topdown.md.

mod estimates;
mod slots;

use crate::cores;
use crate::emit::Generated;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use slots::{Generation, Metric, Vendor};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, iter};
use tma::formula::{BinOp, Expr, parse};
use tma::tables::schema::{Counters, EventSpec, MatchRule, NodeSpec, Pipeline, TableFile};

const GENERATIONS: [Generation; 5] = [
    Generation {
        name: "zen1",
        title: "AMD Zen and Zen+ (Ryzen 1000 and 2000, EPYC 7001)",
        aliases: &["Naples", "Summit Ridge", "Raven Ridge", "Pinnacle Ridge", "Picasso"],
        family: 0x17,
        models: &[0x00..=0x2f, 0x50..=0x5f],
        width: 6,
        reorder_buffer: 192,
        facts: cores::zen1,
        retired: "ex_ret_cops",
        tree: estimates::zen1,
    },
    Generation {
        name: "zen2",
        title: "AMD Zen 2 (Ryzen 3000 and 4000, EPYC 7002)",
        aliases: &["Rome", "Matisse", "Renoir", "Castle Peak", "Van Gogh"],
        family: 0x17,
        models: &[0x30..=0x4f, 0x60..=0x7f, 0x90..=0x91, 0xa0..=0xaf],
        width: 6,
        reorder_buffer: 224,
        facts: cores::zen2,
        retired: "ex_ret_cops",
        tree: estimates::zen2,
    },
    Generation {
        name: "zen3",
        title: "AMD Zen 3 (Ryzen 5000, EPYC 7003)",
        aliases: &["Milan", "Vermeer", "Cezanne", "Rembrandt", "Chagall"],
        family: 0x19,
        models: &[0x00..=0x0f, 0x20..=0x5f],
        width: 6,
        reorder_buffer: 256,
        facts: cores::zen3,
        retired: "ex_ret_ops",
        tree: estimates::zen3,
    },
    Generation {
        name: "zen4",
        title: "AMD Zen 4 (Ryzen 7000 and 8000, EPYC 9004)",
        aliases: &[
            "Genoa",
            "Bergamo",
            "Siena",
            "Raphael",
            "Dragon Range",
            "Phoenix",
            "Hawk Point",
            "Storm Peak",
        ],
        family: 0x19,
        models: &[0x10..=0x1f, 0x60..=0xaf],
        width: 6,
        reorder_buffer: 320,
        facts: cores::zen4,
        retired: "ex_ret_ops",
        tree: slots::tree,
    },
    Generation {
        name: "zen5",
        title: "AMD Zen 5 (Ryzen 9000, EPYC 9005)",
        aliases: &["Turin", "Granite Ridge", "Strix Point", "Strix Halo", "Krackan Point"],
        family: 0x1a,
        models: &[0x00..=0x2f, 0x40..=0x4f, 0x60..=0x7f],
        width: 8,
        reorder_buffer: 448,
        facts: cores::zen5,
        retired: "ex_ret_ops",
        tree: slots::tree,
    },
];

/// All AMD tables.
pub fn tables(vendor: &Path) -> Result<Vec<Generated>> {
    GENERATIONS.iter().map(|g| generate(g, vendor)).collect()
}

fn generate(g: &Generation, vendor: &Path) -> Result<Generated> {
    let folder = vendor.join("amdzen").join(format!("amd{}", g.name));
    let vendor = read(&folder).with_context(|| folder.display().to_string())?;
    let node = (g.tree)(g, &vendor)?;
    let (info, left_out) = infos(g, &vendor)?;
    let mut notes = vec![
        "The NMI watchdog, where it is on, holds one of the six counters \
         (sysctl kernel.nmi_watchdog=0 frees it)."
            .to_owned(),
        "Each hardware thread counts its own events. With SMT the two threads share the dispatch \
         slots; what the other one takes shows as smt_contention, or, before Zen 4, as part of \
         the back end."
            .to_owned(),
    ];
    if !left_out.is_empty() {
        notes.push(format!(
            "Left out, because L3, data fabric or memory controllers count them: {}.",
            left_out.join(", ")
        ));
    }
    let events = used_events(&node, &info, &vendor)?;
    let models = g.models.iter().cloned().flatten().collect();
    Ok(Generated {
        folder: "amd",
        heading: vec![
            format!("{}. Written by events/import; do not edit.", g.title),
            "Event codes and metric arithmetic as published for Linux perf.".into(),
            "Thresholds, labels and estimates are tdtool's own (docs/method/topdown.md).".into(),
        ],
        table: TableFile {
            schema: 1,
            name: g.name.into(),
            title: g.title.into(),
            aliases: g.aliases.iter().map(|name| (*name).to_owned()).collect(),
            vendor: "AuthenticAMD".into(),
            core: None,
            pmu: "cpu".into(),
            source: vec![
                format!("Linux tools/perf/pmu-events/arch/x86/amd{}: codes, arithmetic", g.name),
                "Linux arch/x86/kernel/cpu/amd.c: processor models".into(),
                "tdtool: thresholds, labels, estimates".into(),
            ],
            tma: None,
            clocks: "ls_not_halted_cyc".into(),
            texts: None,
            notes,
            matches: vec![MatchRule { family: g.family, models, steppings: Vec::new() }],
            signature: cores::signature(g.name),
            pipeline: Pipeline {
                width: g.width,
                reorder_buffer: g.reorder_buffer,
                source: Some(cores::AMD.to_owned()),
            },
            facts: (g.facts)(),
            counters: Counters { general: 6, general_smt: 6, fixed: 0, topdown_levels: 0 },
            events,
            node,
            bottleneck: Vec::new(),
            info,
        },
    })
}

fn read(folder: &Path) -> Result<Vendor> {
    let mut vendor = Vendor {
        events: BTreeMap::new(),
        elsewhere: BTreeSet::new(),
        recommended: Vec::new(),
        metrics: Vec::new(),
    };
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::path);
    for file in files {
        let path = file.path();
        let list: Vec<Value> = serde_json::from_str(&fs::read_to_string(&path)?)
            .with_context(|| path.display().to_string())?;
        let recommended = path.ends_with("recommended.json");
        for item in &list {
            entry(item, recommended, &mut vendor)
                .with_context(|| format!("{}: {item}", path.display()))?;
        }
    }
    Ok(vendor)
}

fn entry(item: &Value, recommended: bool, vendor: &mut Vendor) -> Result<()> {
    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let number = |key: &str| {
        let text = text(key);
        match text.trim_start_matches("0x") {
            "" => Ok(0),
            digits => u32::from_str_radix(digits, 16),
        }
    };
    let (event, metric) = (text("EventName"), text("MetricName"));
    if !event.is_empty() {
        if !text("Unit").is_empty() {
            vendor.elsewhere.insert(event);
            return Ok(());
        }
        let spec =
            EventSpec { code: number("EventCode")?, umask: number("UMask")?, ..Default::default() };
        if recommended {
            vendor.recommended.push(event.clone());
        }
        vendor.events.insert(event, spec);
    } else if !metric.is_empty() && !vendor.metrics.iter().any(|m| m.name == metric) {
        vendor.metrics.push(Metric {
            name: metric,
            expr: text("MetricExpr"),
            scale: text("ScaleUnit"),
            groups: text("MetricGroup").split(';').map(str::to_owned).collect(),
        });
    }
    Ok(())
}

/// Our own figures first, then every recommended metric that the core can count; and the names
/// of those it cannot.
fn infos(g: &Generation, vendor: &Vendor) -> Result<(Vec<NodeSpec>, Vec<String>)> {
    let mut found = general(g, vendor);
    let mut left_out = Vec::new();
    for metric in vendor.metrics.iter().filter(|m| !slots::is_tree(m)) {
        match info(metric, vendor)? {
            Some(node) => found.push(node),
            None => left_out.push(metric.name.clone()),
        }
    }
    for name in &vendor.recommended {
        // A raw count says little; per thousand instructions it compares between runs.
        found.push(NodeSpec {
            id: format!("{name}_pti"),
            formula: format!("1000 * {name} / ex_ret_instr"),
            unit: Some("per 1000 instructions".into()),
            ..Default::default()
        });
    }
    Ok((found, left_out))
}

/// `None` where an event of another PMU is needed.
fn info(metric: &Metric, vendor: &Vendor) -> Result<Option<NodeSpec>> {
    let mut formula = slots::convert(&metric.expr)?;
    let mut unknown = Vec::new();
    parse(&formula)?.names(&mut |name| {
        let known = vendor.events.contains_key(slots::base(name));
        let other = vendor.metrics.iter().any(|m| m.name == name);
        if !known && !other {
            unknown.push(name.to_owned());
        }
    });
    if !unknown.is_empty() {
        return Ok(None);
    }
    let unit = match metric.scale.as_str() {
        "1e3per_1k_instr" => {
            formula = match parse(&formula)? {
                Expr::Bin(BinOp::Div, count, per) => format!("1000 * ({count}) / ({per})"),
                other => format!("1000 * ({other})"),
            };
            formula = parse(&formula)?.to_string();
            Some("per 1000 instructions")
        }
        "1slots" => Some("slots"),
        "" if metric.name == "total_dispatch_slots" => Some("slots"),
        "" if metric.name.ends_with("_ratio") => None,
        "" => Some("events"),
        "1per_branch" => None,
        percent if percent.starts_with("100%") => None,
        other => bail!("unit {other} of {} is new", metric.name),
    };
    Ok(Some(NodeSpec {
        id: metric.name.clone(),
        formula,
        unit: unit.map(Into::into),
        groups: metric.groups.iter().filter(|g| !g.is_empty()).cloned().collect(),
        ..Default::default()
    }))
}

fn general(g: &Generation, vendor: &Vendor) -> Vec<NodeSpec> {
    let info = |id: &str, formula: &str, unit: Option<&str>| NodeSpec {
        id: id.into(),
        formula: formula.into(),
        unit: unit.map(Into::into),
        ..Default::default()
    };
    let reference = "ls_not_halted_p0_cyc.p0_freq_cyc";
    let clock = if vendor.events.contains_key(reference) {
        // The reference counts at the P0 frequency, which is the TSC's.
        let formula = format!("ls_not_halted_cyc / {reference} * #TSC_HZ / 1000000000");
        info("GHz", &formula, Some("GHz"))
    } else {
        let estimate = "Cycles of all threads over wall time: the clock only where exactly one \
                        thread was busy throughout.";
        let formula = "ls_not_halted_cyc / (#DURATION_MS * 1000000)";
        NodeSpec { estimate: Some(estimate.into()), ..info("GHz", formula, Some("GHz")) }
    };
    vec![
        info("IPC", "ex_ret_instr / ls_not_halted_cyc", Some("instructions/cycle")),
        info("CPI", "ls_not_halted_cyc / ex_ret_instr", Some("cycles/instruction")),
        info("UpTC", &format!("{} / ls_not_halted_cyc", g.retired), Some("ops/cycle")),
        clock,
    ]
}

/// The events that formulas and sampling hints name, with a `:cN` suffix as a counter mask.
fn used_events(
    nodes: &[NodeSpec],
    infos: &[NodeSpec],
    vendor: &Vendor,
) -> Result<BTreeMap<String, EventSpec>> {
    let all = || nodes.iter().chain(infos);
    let ids: BTreeSet<&str> = all().map(|n| n.id.as_str()).collect();
    let mut names = BTreeSet::new();
    for node in all() {
        for text in iter::once(&node.formula).chain(&node.over) {
            let expr = parse(text).with_context(|| format!("{}: {text}", node.id))?;
            expr.names(&mut |name| {
                names.insert(name.to_owned());
            });
        }
        names.extend(node.locate.iter().cloned());
    }
    let mut events = BTreeMap::new();
    for name in names.into_iter().filter(|n| !ids.contains(n.as_str())) {
        let base = slots::base(&name);
        let Some(spec) = vendor.events.get(base) else { bail!("no core event {name}") };
        let mut spec = spec.clone();
        if let Some(cmask) = name[base.len()..].strip_prefix(":c") {
            spec.cmask = cmask.parse()?;
        }
        events.insert(name, spec);
    }
    Ok(events)
}
