//! The Intel tables against values that two public implementations of the same metrics give for
//! random counts: every node, bottleneck and info metric, and every threshold.
//!
//! tests/fixtures/vectors holds the first two trials of each; a check of all of them runs where
//! `../shared/vectors` exists.

use crate::support::files::{fixture, shared};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use tma::formula::{Inputs, Leaf};
use tma::tables::{Const, NodeKind, Table};

const TABLES: [&str; 4] = ["skl", "icl", "spr", "srf"];

/// Values of one trial; a missing count is an error of the table or of the vectors.
struct Trial<'a> {
    table: &'a Table,
    counts: &'a HashMap<String, f64>,
    nodes: Vec<f64>,
}

impl Inputs for Trial<'_> {
    fn value(&mut self, leaf: Leaf) -> f64 {
        let name = match leaf {
            Leaf::Node(n) => return self.nodes[usize::from(n)],
            Leaf::Event(e) => self.table.events[usize::from(e)].name.to_uppercase(),
            Leaf::Const(c) => format!("#{}", Const::ALL[usize::from(c)].name()),
        };
        let name = if name == "TSC" { "MSR/TSC/".to_owned() } else { name };
        *self.counts.get(&name).unwrap_or_else(|| panic!("{}: no count of {name}", self.table.name))
    }
}

/// trial → the rest of its rows.
fn rows(path: &Path) -> BTreeMap<u32, Vec<Vec<String>>> {
    let mut trials: BTreeMap<u32, Vec<Vec<String>>> = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap().lines().skip(1) {
        let mut cells = line.split(',').map(str::to_owned);
        let trial = cells.next().unwrap().parse().unwrap();
        trials.entry(trial).or_default().push(cells.collect());
    }
    trials
}

/// Where a formula divides by zero, both implementations behind the vectors give 0.
fn defined(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// Checks every trial of one folder; returns how many values it compared.
fn check(folder: &Path, name: &str) -> usize {
    let table = events::library().load(name).unwrap();
    let expect = rows(&folder.join("expect.csv"));
    let mut compared = 0;
    for (trial, events) in rows(&folder.join("events.csv")) {
        let counts: HashMap<String, f64> =
            events.iter().map(|r| (r[0].to_uppercase(), r[1].parse().unwrap())).collect();
        let mut values =
            Trial { table: &table, counts: &counts, nodes: vec![f64::NAN; table.nodes.len()] };
        for &n in &table.order {
            values.nodes[usize::from(n)] = table.nodes[usize::from(n)].formula.eval(&mut values);
        }
        for row in &expect[&trial] {
            let place = format!("{} trial {trial} {}", folder.display(), row[0]);
            let n = table.node(&row[0]).unwrap_or_else(|| panic!("{place}: no such node"));
            let ours = defined(values.nodes[usize::from(n)]);
            let theirs = row[1].parse::<f64>().unwrap();
            let scale = theirs.abs().max(1e-12);
            assert!((ours - theirs).abs() <= 1e-6 * scale, "{place}: {ours}, expected {theirs}");
            compared += 1;
            let over = table.nodes[usize::from(n)].over.as_ref();
            assert_eq!(over.is_some(), !row[2].is_empty(), "{place}: a threshold on one side only");
            if let Some(over) = over {
                let over = defined(over.eval(&mut values));
                assert_eq!(over.to_string(), row[2], "{place}: over its threshold");
                compared += 1;
            }
        }
        assert_eq!(expect[&trial].len(), table.nodes.len(), "{name}: nodes without a vector");
    }
    compared
}

#[test]
fn intel_tables_give_the_published_values_on_the_excerpts() {
    for table in TABLES {
        for smt in [0, 1] {
            let folder = fixture(&format!("vectors/{table}-smt{smt}"));
            assert!(check(&folder, table) > 100);
        }
    }
}

#[test]
fn intel_tables_give_the_published_values_on_all_vectors() {
    let Some(all) = shared("vectors") else { return };
    for table in TABLES {
        for smt in [0, 1] {
            assert!(check(&all.join(format!("{table}-smt{smt}")), table) > 300);
        }
    }
}

/// Counts from notes of intel/perfmon's releases: tree / bottleneck / info.
#[test]
fn intel_tables_have_all_nodes_the_vendor_publishes() {
    let sizes = [
        ("skl", [98, 12, 97]),
        ("skx", [102, 12, 107]),
        ("clx", [103, 12, 108]),
        ("hsx", [64, 0, 54]),
        ("bdx", [73, 0, 69]),
        ("icl", [103, 12, 109]),
        ("icx", [105, 12, 111]),
        ("adl", [109, 12, 110]),
        ("mtl", [114, 12, 115]),
        ("lnl", [112, 8, 109]),
        ("spr", [114, 12, 124]),
        ("emr", [114, 12, 124]),
        ("gnr", [119, 12, 128]),
        ("srf", [26, 0, 57]),
        ("grr", [26, 0, 57]),
    ];
    for (name, expected) in sizes {
        let table = events::library().load(name).unwrap();
        let found = [NodeKind::Tree, NodeKind::Bottleneck, NodeKind::Info]
            .map(|kind| table.of_kind(kind).count());
        assert_eq!(found, expected, "{name}");
    }
}

/// Encodings as Linux takes them: arch/x86/events/intel/core.c (fixed counters, slots and
/// top-down metrics), Intel SDM volume 3 chapter 21 (architectural events), `perf list --raw`.
#[test]
fn intel_events_are_encoded_as_the_kernel_takes_them() {
    let config = |table: &str, event: &str| {
        let table = events::library().load(table).unwrap();
        let e = table.event(event).unwrap_or_else(|| panic!("{}: {event}", table.name));
        let s = &table.events[usize::from(e)].spec;
        let bit = |on: bool, at: u32| u64::from(on) << at;
        let umask = u64::from(s.umask);
        u64::from(s.code)
            | (umask & 0xff) << 8
            | bit(s.edge, 18)
            | bit(s.any, 21)
            | bit(s.inv, 23)
            | u64::from(s.cmask) << 24
            | bit(s.eq, 36)
            | (umask >> 8) << 40
    };
    let extra = |table: &str, event: &str| {
        let table = events::library().load(table).unwrap();
        table.events[usize::from(table.event(event).unwrap())].spec.value
    };
    for (table, event, expected) in [
        ("skl", "INST_RETIRED.ANY", 0xc0),
        ("skl", "CPU_CLK_UNHALTED.THREAD_ANY", 0x20_003c),
        ("skl", "CPU_CLK_UNHALTED.REF_TSC", 0x0300),
        ("skl", "IDQ_UOPS_NOT_DELIVERED.CORE", 0x019c),
        ("skl", "ICACHE_16B.IFDATA_STALL:c1:e1", 0x0104_0480),
        ("icx", "TOPDOWN.SLOTS", 0x0400),
        ("icx", "PERF_METRICS.RETIRING", 0x8000),
        ("icx", "PERF_METRICS.BACKEND_BOUND", 0x8300),
        ("spr", "PERF_METRICS.HEAVY_OPERATIONS", 0x8400),
        ("spr", "PERF_METRICS.BRANCH_MISPREDICTS", 0x8500),
        ("spr", "PERF_METRICS.FETCH_LATENCY", 0x8600),
        ("spr", "PERF_METRICS.MEMORY_BOUND", 0x8700),
        ("spr", "INST_RETIRED.PREC_DIST", 0x0100),
        ("adl-e", "TOPDOWN_BE_BOUND.ALL", 0x0074),
        ("arl-e", "TOPDOWN_FE_BOUND.ALL", 0x019c),
        ("arl-e", "TOPDOWN_RETIRING.ALL", 0x02c2),
        ("lnl", "BR_INST_RETIRED.COND_TAKEN_FWD", 0x100_0000_00c4),
        ("lnl", "IDQ.DSB_UOPS:c8:i1:eq1", 0x10_0880_0879),
    ] {
        assert_eq!(config(table, event), expected, "{table} {event}");
    }
    assert_eq!(extra("spr", "OCR.DEMAND_RFO.L3_MISS:ocr_msr_val=0x103b800002"), Some(0x103b800002));
    assert_eq!(extra("skl", "FRONTEND_RETIRED.LATENCY_GE_4"), Some(0x400406));
}
