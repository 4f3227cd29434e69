//! Constraints of a processor's counters: fixed counters and metrics, masks, the watchdog, the clock.

use std::collections::BTreeSet;
use tma::schedule::{
    Budget, Counter, Group, assign, deepest_without_multiplexing, plan, split, to_level,
};
use tma::tables::{EventId, Table};

/// Ice Lake's counters: 8 general, fixed ones for instructions, cycles, reference cycles and
/// slots, four level-1 metrics. Events and masks as in Intel's event list for Ice Lake server.
const ICELAKE: &str = r#"
schema = 1
name = "icelake"
title = "Ice Lake, a part of it"
vendor = "GenuineIntel"
pmu = "cpu"
source = ["written by hand from intel/perfmon, ICX"]
clocks = "CPU_CLK_UNHALTED.THREAD"
[pipeline]
width = 5
[counters]
general = 8
general_smt = 8
fixed = 3
topdown_levels = 1
[events]
"CPU_CLK_UNHALTED.THREAD" = { code = 0x3c, fixed = 1 }
"TOPDOWN.SLOTS" = { umask = 4, fixed = 3, fixed_only = true }
"PERF_METRICS.RETIRING" = { umask = 0x80, metric = 0 }
"PERF_METRICS.BAD_SPECULATION" = { umask = 0x81, metric = 1 }
"PERF_METRICS.FRONTEND_BOUND" = { umask = 0x82, metric = 2 }
"PERF_METRICS.BACKEND_BOUND" = { umask = 0x83, metric = 3 }
"CYCLE_ACTIVITY.STALLS_MEM_ANY" = { code = 0xa3, umask = 0x14, cmask = 0x14 }
"CYCLE_ACTIVITY.STALLS_L1D_MISS" = { code = 0xa3, umask = 0xc, cmask = 0xc, counters = [0, 1, 2, 3] }
"CYCLE_ACTIVITY.STALLS_L2_MISS" = { code = 0xa3, umask = 5, cmask = 5, counters = [0, 1, 2, 3] }
"CYCLE_ACTIVITY.STALLS_L3_MISS" = { code = 0xa3, umask = 6, cmask = 6, counters = [0, 1, 2, 3] }
"L1D_PEND_MISS.FB_FULL" = { code = 0x48, umask = 2, counters = [0, 1, 2, 3] }
"MEM_LOAD_RETIRED.L2_HIT" = { code = 0xd1, umask = 2, counters = [0, 1, 2, 3] }
"FRONTEND_RETIRED.L1I_MISS" = { code = 0xc6, umask = 1, extra = "frontend", value = 0x12 }
"FRONTEND_RETIRED.L2_MISS" = { code = 0xc6, umask = 1, extra = "frontend", value = 0x13 }
[[node]]
id = "Retiring"
level = 1
formula = "PERF_METRICS.RETIRING / TOPDOWN.SLOTS"
[[node]]
id = "Backend_Bound"
level = 1
formula = "PERF_METRICS.BACKEND_BOUND / (PERF_METRICS.RETIRING + PERF_METRICS.BAD_SPECULATION + PERF_METRICS.FRONTEND_BOUND + PERF_METRICS.BACKEND_BOUND)"
[[node]]
id = "Memory_Bound"
parent = "Backend_Bound"
level = 2
formula = "Backend_Bound * CYCLE_ACTIVITY.STALLS_MEM_ANY / CPU_CLK_UNHALTED.THREAD"
[[node]]
id = "Caches"
parent = "Memory_Bound"
level = 3
formula = "(CYCLE_ACTIVITY.STALLS_L1D_MISS + CYCLE_ACTIVITY.STALLS_L2_MISS + CYCLE_ACTIVITY.STALLS_L3_MISS + MEM_LOAD_RETIRED.L2_HIT + L1D_PEND_MISS.FB_FULL) / CPU_CLK_UNHALTED.THREAD"
[[node]]
id = "Instruction_Misses"
parent = "Memory_Bound"
level = 3
formula = "FRONTEND_RETIRED.L1I_MISS / FRONTEND_RETIRED.L2_MISS"
"#;

fn icelake() -> Table {
    Table::parse(ICELAKE, "icelake").unwrap()
}

fn names<'a>(table: &'a Table, events: &[EventId]) -> Vec<&'a str> {
    events.iter().map(|e| table.events[usize::from(*e)].name.as_str()).collect()
}

#[test]
fn metrics_come_with_slots_as_leader_and_take_no_counter() {
    let table = icelake();
    let budget = Budget::of(&table, true, false).with_general(1);
    // Backend_Bound does not name slots; its group has them all the same, or it reads 0.
    let nodes = [table.node("Backend_Bound").unwrap(), table.node("Memory_Bound").unwrap()];
    let plan = plan(&table, &nodes, true, &budget);
    assert_eq!(plan.groups.len(), 1);
    let events = &plan.groups[0].events;
    assert_eq!(
        names(&table, events),
        [
            "TOPDOWN.SLOTS",
            "PERF_METRICS.RETIRING",
            "PERF_METRICS.BAD_SPECULATION",
            "PERF_METRICS.FRONTEND_BOUND",
            "PERF_METRICS.BACKEND_BOUND",
            "CPU_CLK_UNHALTED.THREAD",
            "CYCLE_ACTIVITY.STALLS_MEM_ANY",
        ]
    );
    let counters = assign(&table, &plan.groups[0], &budget).unwrap();
    assert_eq!(counters[0], Counter::Fixed(3));
    assert_eq!(counters[4], Counter::Metric(3));
    assert_eq!(counters[5..], [Counter::Fixed(1), Counter::General(0)]);
}

/// Five events for four counters; two values for one front-end register.
#[test]
fn a_node_that_fits_nowhere_is_split_and_says_so() {
    let table = icelake();
    let budget = Budget::of(&table, true, false);
    let nodes = to_level(&table, 3);
    let plan = plan(&table, &nodes, true, &budget);
    for (id, split) in [
        ("Retiring", false),
        ("Memory_Bound", false),
        ("Caches", true),
        ("Instruction_Misses", true),
    ] {
        let placement = plan.placement(table.node(id).unwrap()).unwrap();
        assert_eq!(placement.is_split(), split, "{id}");
    }
    assert_eq!(plan.groups.len(), 2);
}

#[test]
fn without_fixed_metrics_their_nodes_are_not_served_and_the_reason_is_reported() {
    let table = icelake();
    let mut budget = Budget::of(&table, true, false);
    budget.topdown_levels = 0;
    let plan = plan(&table, &to_level(&table, 3), true, &budget);
    let retiring = table.node("Retiring").unwrap();
    let (_, why) = plan.unserved.iter().find(|(n, _)| *n == retiring).unwrap();
    assert_eq!(why, "it needs PERF_METRICS.RETIRING: the fixed top-down metrics are not available");
    assert!(plan.placement(retiring).is_none());
    assert!(plan.placement(table.node("Caches").unwrap()).is_some());
}

#[test]
fn the_deepest_level_that_needs_one_group_depends_on_the_counters() {
    let table = icelake();
    let level = |general| {
        let budget = Budget::of(&table, true, false).with_general(general);
        deepest_without_multiplexing(&table, true, &budget)
    };
    // Level 1 is metrics alone, level 2 needs one counter, level 3 has nodes that are split.
    assert_eq!([level(0), level(1), level(8)], [1, 2, 2]);
}

/// The watchdog's cycles and ours compete for fixed counter 1; one of them needs a general one.
#[test]
fn the_watchdog_takes_a_counter_only_where_it_must() {
    let table = icelake();
    let clocks = table.event("CPU_CLK_UNHALTED.THREAD").unwrap();
    let stalls = table.event("CYCLE_ACTIVITY.STALLS_MEM_ANY").unwrap();
    let fits = |events: &[EventId], general| {
        let budget = Budget::of(&table, true, true).with_general(general);
        assign(&table, &Group { events: events.to_vec() }, &budget).is_some()
    };
    assert!(fits(&[stalls], 1), "the watchdog is on the fixed counter");
    assert!(!fits(&[clocks, stalls], 1), "three events, fixed counter 1 and one general");
    assert!(fits(&[clocks, stalls], 2));
}

#[test]
fn a_refused_group_is_halved_until_nothing_is_left_to_halve() {
    let table = icelake();
    let budget = Budget::of(&table, true, false);
    let whole = Group { events: (0..table.events.len()).map(|e| e as EventId).collect() };
    let mut pending = vec![whole.clone()];
    let mut smallest: Vec<Group> = Vec::new();
    let mut halvings = 0;
    while let Some(group) = pending.pop() {
        let halves = split(&group, &table, &budget);
        halvings += 1;
        assert!(halvings < 100);
        match &halves[..] {
            [alone] => smallest.push(alone.clone()),
            [a, b] => {
                let both: BTreeSet<_> = a.events.iter().chain(&b.events).collect();
                assert_eq!(both, group.events.iter().collect());
                assert!(a.events.len() < group.events.len() && b.events.len() < group.events.len());
                pending.extend(halves);
            }
            more => panic!("{} parts", more.len()),
        }
    }
    let metric = |e: &EventId| table.events[usize::from(*e)].spec.metric.is_some();
    let fixed = |e: &EventId| table.events[usize::from(*e)].spec.fixed.is_some();
    for group in smallest {
        let metrics = group.events.iter().filter(|e| metric(e)).count();
        let only_fixed = group.events.iter().all(fixed);
        let listed = names(&table, &group.events);
        assert!(group.events.len() == 1 || metrics == 4 || only_fixed, "{listed:?}");
        if metrics > 0 {
            assert_eq!(listed[0], "TOPDOWN.SLOTS");
        }
    }
}

#[test]
fn fixed_counters_stay_together_however_small_the_halves_become() {
    let table = icelake();
    let budget = Budget::of(&table, true, false);
    let id = |name: &str| table.event(name).unwrap();
    let pair = ["TOPDOWN.SLOTS", "CPU_CLK_UNHALTED.THREAD"].map(id);
    let stalls = id("CYCLE_ACTIVITY.STALLS_MEM_ANY");
    let group = Group { events: vec![pair[0], pair[1], stalls] };
    let halves = split(&group, &table, &budget);
    // Slots per cycle from one group; the other event still has cycles to be divided by.
    let sets: Vec<BTreeSet<_>> =
        halves.iter().map(|h| h.events.iter().copied().collect()).collect();
    assert_eq!(sets, [BTreeSet::from(pair), BTreeSet::from([stalls, pair[1]])]);
    assert_eq!(split(&halves[0], &table, &budget).len(), 1, "slots and cycles");
}

/// Zen 4: six counters, none fixed; `ls_not_halted_cyc` is part of every group.
#[test]
fn where_no_fixed_counter_counts_cycles_every_group_has_the_clock() {
    let mut text = "schema = 1\nname = \"zen\"\ntitle = \"Zen\"\nvendor = \"AuthenticAMD\"\n\
        pmu = \"cpu\"\nsource = []\nclocks = \"cycles\"\n[pipeline]\nwidth = 6\n[counters]\n\
        general = 6\ngeneral_smt = 6\nfixed = 0\n[events]\ncycles = { code = 0x76 }\n"
        .to_owned();
    for e in 0..10 {
        text += &format!("e{e} = {{ code = {} }}\n", 0x100 + e);
    }
    for e in 0..10 {
        text += &format!("[[node]]\nid = \"n{e}\"\nlevel = 1\nformula = \"e{e}\"\n");
    }
    let table = Table::parse(&text, "zen").unwrap();
    let nodes = to_level(&table, 1);
    for (watchdog, groups) in [(false, 2), (true, 3)] {
        let budget = Budget::of(&table, true, watchdog);
        let plan = plan(&table, &nodes, true, &budget);
        // 10 events beside the clock, 5 (watchdog: 4) a group.
        assert_eq!(plan.groups.len(), groups);
        assert!(plan.groups.iter().all(|g| g.events[0] == table.clocks));
    }
}
