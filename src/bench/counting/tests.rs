//! Counts of a scripted block against hand calculation, on a kernel with scripted refusals.

use super::events::{Counting, Refused, Total};
use super::source::{Counted, count};
use super::{Effort, Runs, Which, sample};
use crate::clock::Calibration;
use crate::counters::CorePmu;
use crate::measurement::{Miss, Node};
use crate::sandbox::Ended;
use nix::errno::Errno;
use pmu::machine::{Encoding, Format, Machine, Pmu, Root};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tma::Result;
use tma::tables::Table;

/// Iterations of a long and a short command, which have one run each.
pub const LONG: f64 = 1000.0;
/// See [`LONG`].
pub const SHORT: f64 = 400.0;

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

const EFFORT: Effort = Effort { repetitions: 8, sentinel: true };

/// By hand: 4/40, 24/40, 12/40; 0.6 · 6/8 and the rest of it.
const SHARES: [(&str, f64); 5] =
    [("Fe", 0.1), ("Be", 0.6), ("Ret", 0.3), ("Mem", 0.45), ("Core", 0.15)];

/// The scripted behaviour of block, processor and kernel.
#[derive(Debug, Clone)]
pub struct Script {
    /// Counts per iteration, by `config`.
    pub rates: BTreeMap<u64, f64>,
    /// Counts of everything else in a command: entry, exit, the kernel's wake-up.
    pub overhead: f64,
    /// Most events that the kernel accepts in a group.
    pub largest: usize,
    /// Free counters; larger groups open and get none.
    pub free: usize,
    /// Events the kernel does not have.
    pub absent: BTreeSet<u64>,
    /// Commands, from 0, with contention.
    pub contended: fn(usize) -> bool,
    /// The command, from 0, in which the block fails.
    pub fails: Option<usize>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            rates: BTreeMap::new(),
            overhead: 777.0,
            largest: 8,
            free: 8,
            absent: BTreeSet::new(),
            contended: |_| false,
            fails: None,
        }
    }
}

/// The events so far.
#[derive(Debug, Default)]
pub struct Story {
    /// Groups opened whole, by their configs.
    pub opened: Vec<Vec<u64>>,
    /// Most groups that were open at once.
    pub most_open: usize,
    /// Commands run.
    pub commands: usize,
    open: Option<Vec<u64>>,
    enabled: bool,
    total: Total,
}

/// The worker and its counters; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Scripted {
    /// The script.
    pub script: Script,
    /// The story.
    pub story: Rc<RefCell<Story>>,
}

impl Scripted {
    /// Follows `script`.
    pub fn new(script: Script) -> Self {
        Self { script, story: Rc::default() }
    }
}

impl Counting for Scripted {
    fn open(&mut self, _: i32, events: &[Encoding]) -> std::result::Result<(), Refused> {
        let mut story = self.story.borrow_mut();
        for (at, event) in events.iter().enumerate() {
            if self.script.absent.contains(&event.config) {
                return Err(Refused { at, errno: Errno::ENOENT });
            }
            if at >= self.script.largest {
                return Err(Refused { at, errno: Errno::EINVAL });
            }
        }
        let configs: Vec<u64> = events.iter().map(|e| e.config).collect();
        story.opened.push(configs.clone());
        story.most_open = story.most_open.max(1 + usize::from(story.open.is_some()));
        story.total = Total { values: vec![0; configs.len()], ..Total::default() };
        story.open = Some(configs);
        Ok(())
    }

    fn start(&mut self) -> std::result::Result<(), Errno> {
        self.story.borrow_mut().enabled = true;
        Ok(())
    }

    fn stop(&mut self) -> std::result::Result<Total, Errno> {
        let mut story = self.story.borrow_mut();
        story.enabled = false;
        Ok(story.total.clone())
    }

    fn close(&mut self) {
        self.story.borrow_mut().open = None;
    }
}

impl Runs for Scripted {
    fn process(&mut self) -> Result<i32> {
        Ok(1)
    }

    fn placements(&self) -> usize {
        2
    }

    fn between(&self) -> f64 {
        LONG - SHORT
    }

    fn runs(&self) -> f64 {
        1.0
    }

    fn run(
        &mut self,
        _: usize,
        which: Which,
    ) -> Result<std::result::Result<Vec<Calibration>, Ended>> {
        let mut story = self.story.borrow_mut();
        let command = story.commands;
        story.commands += 1;
        if self.script.fails == Some(command) {
            return Ok(Err(Ended::TimedOut));
        }
        let iterations = if which == Which::Long { LONG } else { SHORT };
        let busy = (self.script.contended)(command);
        if let (true, Some(configs)) = (story.enabled, story.open.clone()) {
            let counts = configs.len() <= self.script.free;
            story.total.enabled += iterations as u64;
            story.total.running += if counts { iterations as u64 } else { 0 };
            for (value, config) in story.total.values.iter_mut().zip(&configs) {
                let rate = self.script.rates.get(config).copied().unwrap_or(0.0);
                let slower = if busy { 2.0 } else { 1.0 };
                let count = rate * iterations * slower + self.script.overhead;
                *value += if counts { count as u64 } else { 0 };
            }
        }
        // A tick is a cycle, and reading the clock takes 30: a chain of 18 × 128 and of 2 × 128
        // additions, a sentinel of 960 cycles.
        let sentinel = if busy { 1450.0 } else { 990.0 };
        let round = Calibration {
            add: (2304.0 + 30.0, 256.0 + 30.0),
            multiply: None,
            sentinel: (990.0, sentinel),
        };
        Ok(Ok(vec![round; 4]))
    }
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
    let bottleneck = &counted.hierarchy.counted;
    assert!(bottleneck.starts_with("bottleneck Be > Mem;"), "{bottleneck}");
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
    assert!(counted.hierarchy.counted.starts_with("not measured: "));
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
