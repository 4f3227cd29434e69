//! Counts of a scripted block against hand calculation.

use super::count::{Counted, count};
use super::counter::Effort;
use super::sample;
use super::scripted::{Script, Scripted};
use crate::counters::CorePmu;
use crate::measurement::{Miss, Node};
use pmu::machine::{Encoding, Format, Machine, Pmu, Root};
use std::collections::{BTreeMap, BTreeSet};
use tma::tables::Table;

/// Width 4; two nodes below `Be`, which take events of their own.
const TABLE: &str = r#"
schema = 1
name = "toy"
title = "Toy"
vendor = "any"
pmu = "cpu"
source = ["hand-written"]
clocks = "CYC"
pipeline = { width = 4 }
counters = { general = 4, general_smt = 4, fixed = 0 }

[events]
CYC = { code = 0x3c }
FE = { code = 1 }
BE = { code = 2 }
RET = { code = 3 }
MEM = { code = 4 }
ALL = { code = 5 }
"MEM_LOAD_RETIRED.L1_MISS" = { code = 6 }

[[node]]
id = "Fe"
level = 1
formula = "FE / (4 * CYC)"
over = "Fe > 0.15"

[[node]]
id = "Be"
level = 1
formula = "BE / (4 * CYC)"
over = "Be > 0.2"

[[node]]
id = "Ret"
level = 1
formula = "RET / (4 * CYC)"

[[node]]
id = "Mem"
level = 2
parent = "Be"
formula = "Be * MEM / ALL"
over = "Mem > 0.1"

[[node]]
id = "Core"
level = 2
parent = "Be"
formula = "Be - Mem"
over = "Core > 0.1"
"#;

/// An iteration of 10 cycles, 40 slots: 4 lost in the front end, 24 in the back end, 12 retire. Three of four
/// stalls are memory's. The generic instructions are config 1 of type 0.
fn script() -> Script {
    let rates = [(0x3c, 10.0), (1, 4.0), (2, 24.0), (3, 12.0), (4, 6.0), (5, 8.0), (6, 0.25)];
    Script { rates: rates.into_iter().collect(), ..Script::default() }
}

fn core() -> CorePmu {
    let empty = tempfile::tempdir().expect("a folder");
    let machine = Machine::at(&Root::at(empty.path()));
    let parsed = |text| Format::parse(text).expect("a format");
    let pmu = Pmu {
        name: "cpu".into(),
        kind: 4,
        formats: [("event".to_owned(), parsed("config:0-7"))].into_iter().collect(),
        cpus: None,
        events: BTreeMap::new(),
        caps: BTreeMap::new(),
        mux_interval_ms: None,
    };
    CorePmu::new(
        &machine,
        &pmu,
        Some(std::sync::Arc::new(Table::parse(TABLE, "toy").expect("a table"))),
        None,
    )
}

const EFFORT: Effort = Effort { repetitions: 8, sentinel: true };

fn counted(script: Script) -> (Counted, Scripted) {
    let scripted = Scripted::new(script);
    let (mut runs, mut counters) = (scripted.clone(), scripted.clone());
    (count(&core(), &mut runs, &mut counters, EFFORT).expect("a sandbox"), scripted)
}

fn node<'a>(counted: &'a Counted, id: &str) -> &'a Node {
    counted.hierarchy.nodes.iter().find(|n| n.id == id).expect("the node")
}

fn miss<'a>(counted: &'a Counted, name: &str) -> Option<&'a Miss> {
    counted.misses.iter().find(|m| m.name == name)
}

/// By hand: 4/40, 24/40, 12/40; 0.6 · 6/8 and the rest of it.
const SHARES: [(&str, f64); 5] =
    [("Fe", 0.1), ("Be", 0.6), ("Ret", 0.3), ("Mem", 0.45), ("Core", 0.15)];

fn assert_shares(counted: &Counted) {
    for (id, share) in SHARES {
        let node = node(counted, id);
        let [value, low, high] = [node.share, node.low, node.high].map(|v| v.expect("a value"));
        assert!((value - share).abs() < 1e-9, "{id}: {value}, not {share}");
        assert!(low <= value && value <= high, "{id}: {low} to {high}");
    }
}

#[test]
fn a_difference_holds_the_iterations_between_and_nothing_of_the_command_around_them() {
    let scripted = Scripted::new(script());
    let (mut runs, mut counters) = (scripted.clone(), scripted);
    let events = [0x3c, 6].map(|config| Encoding { config, ..Encoding::default() });
    super::Counting::open(&mut counters, 1, &events).expect("opened");
    for _ in 0..3 {
        let sample = sample(&mut runs, &mut counters, 0).expect("ran").expect("counted");
        // 1000 iterations less 400; the 777 of either command are gone.
        assert_eq!(sample.counts, [6000, 150]);
        assert_eq!((sample.per_iteration(0), sample.per_iteration(1)), (Some(10.0), Some(0.25)));
        assert!(sample.whole);
    }
}

#[test]
fn the_tree_is_what_the_counts_give_by_hand() {
    let (counted, scripted) = counted(script());
    assert_shares(&counted);
    let verdict = &counted.hierarchy.verdict;
    assert!(verdict.starts_with("bottleneck Be > Mem;"), "{verdict}");
    let story = scripted.story.borrow();
    assert_eq!(story.most_open, 1, "groups were open at the same time");
    let clockless: Vec<_> = story.opened.iter().filter(|g| !g.contains(&0x3c)).collect();
    assert!(clockless.is_empty(), "groups without the clock: {clockless:?}");
}

#[test]
fn a_group_too_large_for_the_kernel_is_counted_in_parts() {
    let (counted, scripted) = counted(Script { largest: 3, ..script() });
    assert_shares(&counted);
    assert!(scripted.story.borrow().opened.iter().all(|g| g.len() <= 3));
}

#[test]
fn a_group_that_never_gets_its_counters_is_counted_in_parts() {
    let (counted, scripted) = counted(Script { free: 2, ..script() });
    assert_shares(&counted);
    assert!(scripted.story.borrow().opened.iter().any(|g| g.len() > 2), "nothing was tried");
}

#[test]
fn without_any_free_counter_nothing_is_measured_and_each_node_says_why() {
    let (counted, _) = counted(Script { free: 0, ..script() });
    for (id, _) in SHARES {
        let node = node(&counted, id);
        assert_eq!(node.share, None);
        assert!(
            node.reason.as_ref().is_some_and(|r| r.contains("never got a counter")),
            "{node:?}"
        );
    }
    assert!(counted.hierarchy.verdict.starts_with("not measured: "));
    assert!(counted.misses.is_empty());
}

#[test]
fn an_event_the_kernel_lacks_takes_its_nodes_with_it_and_no_others() {
    // MEM is 4.
    let (counted, _) = counted(Script { absent: BTreeSet::from([4]), ..script() });
    for id in ["Mem", "Core"] {
        let reason = node(&counted, id).reason.clone().unwrap_or_default();
        assert!(reason.contains("not supported here: MEM"), "{id}: {reason}");
    }
    assert_eq!(node(&counted, "Be").share, Some(0.6));
}

#[test]
fn contended_samples_are_rejected() {
    // Every fifth command, and the counts of it are double.
    let (counted, _) = counted(Script { contended: |n| n % 5 == 4, ..script() });
    assert_shares(&counted);
    let (counted, _) = self::counted(Script { contended: |_| true, ..script() });
    let reason = node(&counted, "Fe").reason.clone().unwrap_or_default();
    assert!(reason.contains("contention on the core"), "{reason}");
}

#[test]
fn a_block_that_fails_while_it_is_counted_has_no_tree() {
    let (counted, _) = counted(Script { fails: Some(2), ..script() });
    let reason = node(&counted, "Fe").reason.clone().unwrap_or_default();
    assert!(reason.contains("did not run to its end"), "{reason}");
}

#[test]
fn misses_come_from_the_kernels_events_and_else_from_the_tables() {
    // Generic L1D read misses are config 0x10000 (cache 0, read, miss).
    let mut own = script();
    own.rates.insert(0x10000, 0.5);
    let (generic, _) = counted(own);
    let miss_of = |c: &Counted| miss(c, "l1d-read-misses").expect("counted").clone();
    assert_eq!(miss_of(&generic).per_iteration, 0.5);
    assert!(miss_of(&generic).how.contains("L1-dcache-load-misses"));
    let (table, _) = counted(Script { absent: BTreeSet::from([0x10000]), ..script() });
    assert_eq!(miss_of(&table).per_iteration, 0.25);
    assert!(miss_of(&table).how.contains("MEM_LOAD_RETIRED.L1_MISS"));
    assert!(miss(&table, "split-loads").is_none(), "the table has no such event");
}
