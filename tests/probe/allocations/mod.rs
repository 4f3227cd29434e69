//! `tdtool count --loads`: memory is that of the calls that the program itself names, by their lines.

mod programs;

use super::name;
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::tools::build;
use programs::{C, CPP, TASKS};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A counted program, and the lines that it has written.
struct Counted {
    document: Value,
    lines: Vec<u64>,
}

/// Runs it until all loads of the functions were recorded: on a busy machine no burst may fall into a loop of some
/// milliseconds. `None` where it cannot be traced.
fn counted(folder: &Folder, program: &Path, functions: &str, more: &[&str]) -> Option<Counted> {
    let lines = folder.file("lines");
    for _ in 0..6 {
        let options = ["count", "--loads", "--functions", functions, "--format", "json", "--"];
        let command = [&[name(program), lines.as_str()], more].concat();
        let ran = tdtool(options.iter().copied().chain(command));
        if ran.stderr.contains("cannot trace") {
            eprintln!("skipped: {}", ran.stderr);
            return None;
        }
        let document = ran.succeeded().json();
        let all = document["loads"].as_array().unwrap();
        let has = |function: &str| {
            let mut own =
                all.iter().filter(|load| load["function"].as_str().unwrap().contains(function));
            own.any(|load| !load["memory"].is_null())
        };
        if functions.split(',').all(has) {
            let written = folder.read("lines");
            let lines = written.lines().map(|line| line.parse().unwrap()).collect();
            return Some(Counted { document, lines });
        }
    }
    panic!("no bursts in {functions}");
}

impl Counted {
    /// The lines of the sites of a function's loads, with their shares of all its addresses; an empty list is memory
    /// that was not allocated.
    fn sites(&self, function: &str) -> BTreeMap<Vec<u64>, f64> {
        let loads = self.document["loads"].as_array().unwrap().iter();
        let own = loads.filter(|load| load["function"].as_str().unwrap().contains(function));
        let mut found = BTreeMap::new();
        let mut all = 0.0;
        for memory in own.map(|load| &load["memory"]).filter(|memory| !memory.is_null()) {
            let addresses = memory["addresses"].as_f64().unwrap();
            all += addresses;
            let mut add = |lines: Vec<u64>, share: &Value| {
                *found.entry(lines).or_insert(0.0) += share.as_f64().unwrap() * addresses;
            };
            add(Vec::new(), &memory["other"]);
            assert_eq!(memory["unknown"], 0.0, "{memory}");
            for at in memory["sites"].as_array().unwrap() {
                let line =
                    |site: &Value| self.site(site.as_u64().unwrap())["line"].as_u64().unwrap();
                let mut lines: Vec<u64> =
                    at["sites"].as_array().unwrap().iter().map(line).collect();
                lines.sort_unstable();
                add(lines, &at["share"]);
            }
        }
        found.retain(|_, sum| {
            *sum /= all;
            *sum > 0.01
        });
        found
    }

    fn site(&self, number: u64) -> &Value {
        &self.document["allocation_sites"][number as usize]
    }

    /// Calls, bytes and what was called at a line.
    fn given(&self, line: u64) -> (u64, u64, &str) {
        let mut all = self.document["allocation_sites"].as_array().unwrap().iter();
        let site = all.find(|site| site["line"] == line).unwrap();
        let number = |key: &str| site[key].as_u64().unwrap();
        (number("allocations"), number("bytes"), site["by"].as_str().unwrap())
    }

    /// All addresses of a function's loads are of one line.
    fn is_of(&self, function: &str, line: usize) {
        let lines: Vec<Vec<u64>> = self.sites(function).into_keys().collect();
        assert_eq!(lines, [vec![self.lines[line]]], "{function}");
    }
}

#[test]
fn memory_is_of_the_calls_that_gave_it() {
    let _busy = busy();
    for (nodes, option) in [(200_000, "-O2"), (50_000, "-static")] {
        let defined = format!("-DNODES={nodes}");
        let options = &["-O1", "-g", &defined, option];
        let folder = Folder::new();
        let Some(program) = build(folder.path(), "cc", C, options, "program") else { return };
        let functions = "walk,look,scan,ring,map,aligned,still";
        let Some(all) = counted(&folder, &program, functions, &[]) else { return };
        for (line, function) in [(0, "walk"), (1, "look"), (2, "scan"), (5, "map"), (6, "aligned")]
        {
            all.is_of(function, line);
        }
        // Two of the same size, by turns in the ring.
        let two = all.sites("ring");
        let half = |line: usize| two.get(&vec![all.lines[line]]).copied().unwrap_or(0.0);
        assert!((half(3) - 0.5).abs() < 0.02 && (half(4) - 0.5).abs() < 0.02, "{two:?}");
        // Static data.
        assert_eq!(all.sites("still").into_keys().collect::<Vec<_>>(), [Vec::<u64>::new()]);
        let given = [0, 1, 3, 4, 5, 6].map(|line| all.given(all.lines[line]));
        let expected = [
            (nodes, 16 * nodes, "malloc"),
            (1, 1 << 19, "calloc"),
            (500, 24_000, "malloc"),
            (500, 24_000, "malloc"),
            (1, 1 << 16, "mmap"),
            (1, 1 << 16, "posix_memalign"),
        ];
        assert_eq!(given, expected, "{option}");
        // 8 to 65536 numbers in 13 steps: 128 (1 + 2 + … + 4096) bytes.
        assert_eq!(all.given(all.lines[2]), (13, 128 * 8191, "realloc"));
    }
}

#[test]
fn memory_of_libraries_is_of_their_callers() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = build(folder.path(), "c++", CPP, &["-O2", "-g", "-x", "c++"], "program")
    else {
        return;
    };
    let Some(all) = counted(&folder, &program, "scan,walk,whole,text,found", &[]) else { return };
    for (line, function) in [(0, "scan"), (1, "walk"), (2, "whole"), (3, "text")] {
        all.is_of(function, line);
    }
    // Nodes and buckets; the map itself is on the stack.
    let lines: Vec<u64> = all.sites("found").into_keys().flatten().collect();
    assert_eq!(lines, [all.lines[4]]);
    assert_eq!(all.given(all.lines[1]), (100_000, 1_600_000, "operator new"));
    // 1 to 65536 numbers of 8 bytes.
    assert_eq!(all.given(all.lines[0]).1, 8 * 131_071);
}

#[test]
fn threads_are_told_apart_and_processes_are_not() {
    let _busy = busy();
    let folder = Folder::new();
    let options = ["-O2", "-g", "-pthread"];
    let Some(program) = build(folder.path(), "cc", TASKS, &options, "program") else { return };
    let Some(all) = counted(&folder, &program, "walk_a,walk_b", &[]) else { return };
    all.is_of("walk_a", 0);
    all.is_of("walk_b", 1);
    assert_eq!(all.given(all.lines[0]), (6000, 192_000, "malloc"));
    let Some(all) = counted(&folder, &program, "both", &["forks"]) else { return };
    let two = all.lines[2..4].to_vec();
    assert_eq!(all.sites("both").into_keys().collect::<Vec<_>>(), [two]);
    assert!(all.document["notes"].to_string().contains("the program forked"));
}
