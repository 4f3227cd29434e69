//! Real Zen 4 counts, as perf's own CSV lines, against the metrics perf printed from them.
//!
//! Recording: KeithJH/kinematics-demo (MIT). Two blocks of it are a fixture; the whole of it is
//! read where `../shared` exists. `tests/tools/zen4_to_perf_csv.py` makes the same lines for use by
//! hand.

use crate::support::files::{Folder, fixture, root, shared, text};
use crate::support::run::{command, run};
use crate::support::tools::tool;
use profile::counts::{Options, counts, read};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tma::tables::Table;
use tma::tree::Evaluator;

/// One block: perf's lines, and the metrics in percent that perf printed.
#[derive(Default)]
struct Block {
    lines: Vec<String>,
    metrics: Vec<(String, f64)>,
}

fn blocks(path: &Path) -> BTreeMap<u32, Block> {
    let mut blocks: BTreeMap<u32, Block> = BTreeMap::new();
    let text = fs::read_to_string(path).unwrap();
    for line in text.lines().filter(|l| !l.starts_with(['#', 'b'])) {
        let (block, rest) = line.split_once(',').unwrap();
        let block = blocks.entry(block.parse().unwrap()).or_default();
        let (kind, rest) = rest.split_once(',').unwrap();
        let (rest, share) = rest.rsplit_once(',').unwrap();
        let (name, value) = rest.rsplit_once(',').unwrap();
        match kind {
            "event" => {
                let share: f64 = share.parse().unwrap();
                let run_time = (share * 1e7).round();
                let name = name.trim_matches('"');
                block.lines.push(format!("{value},,{name},{run_time},{share:.2},,\n"));
            }
            _ => block.metrics.push((name.to_owned(), value.parse().unwrap())),
        }
    }
    blocks
}

/// Evaluates every file and compares each metric to perf's one decimal of a percent.
fn check(table: &Table, files: &[PathBuf], blocks: &BTreeMap<u32, Block>) {
    let recording = read(files).unwrap();
    assert!(recording.skipped.is_empty(), "{:?}", recording.skipped);
    let imported = counts(&recording, table, Options::default()).unwrap();
    assert!(imported.unknown.is_empty());
    assert_eq!(imported.counts.len(), blocks.len());
    for (counts, (number, block)) in imported.counts.iter().zip(blocks) {
        let values = Evaluator::new(table).values(counts);
        for (metric, printed) in &block.metrics {
            let node = table.node(metric).unwrap_or_else(|| panic!("no node {metric}"));
            let value = values.nodes[usize::from(node)].quantity.get().unwrap() * 100.0;
            assert!(
                (value - printed).abs() <= 0.05 + 1e-6,
                "block {number}: {metric} is {value:.3}, perf printed {printed}"
            );
            assert!(!values.nodes[usize::from(node)].split, "block {number}: {metric} is split");
        }
    }
}

fn check_all_ways(recording: &Path) {
    let table = events::library().load("zen4").unwrap();
    let blocks = blocks(recording);
    assert!(blocks.values().all(|b| !b.metrics.is_empty()));
    let folder = Folder::new();
    let mut files = Vec::new();
    // Each block a file, and each file imported alone: groups are found without the others.
    for (number, block) in &blocks {
        let path = folder.path().join(format!("block-{number:03}.csv"));
        fs::write(&path, block.lines.concat()).unwrap();
        let alone = blocks.iter().filter(|(n, _)| *n == number);
        let alone = alone.map(|(n, b)| (*n, Block { lines: vec![], metrics: b.metrics.clone() }));
        check(&table, std::slice::from_ref(&path), &alone.collect());
        files.push(path);
    }
    check_program(&files, &blocks);
    // All blocks as the intervals of one file.
    let mut intervals = String::new();
    for (second, block) in blocks.values().enumerate() {
        for line in &block.lines {
            intervals += &format!("     {}.000000000,{line}", second + 1);
        }
    }
    let path = folder.path().join("intervals.csv");
    fs::write(&path, &intervals).unwrap();
    check(&table, &[path], &blocks);
    // The recording as it is: a CSV with its own header.
    check(&table, &[recording.to_owned()], &blocks);
    script_agrees(recording, &intervals);
}

/// The program on the same files: one report, a tree for each block.
fn check_program(files: &[PathBuf], blocks: &BTreeMap<u32, Block>) {
    let options = ["report", "--uarch", "zen4", "--level", "2", "--format", "json", "--import"];
    let report = run(command(options).args(files)).succeeded().json();
    assert_eq!(report["unread"], json!([]));
    let nodes = report["nodes"].as_array().unwrap();
    for (number, block) in blocks {
        let scope = format!("block-{number:03}");
        for (metric, printed) in &block.metrics {
            let here = |n: &&Value| {
                n["id"] == metric.as_str()
                    && (blocks.len() == 1 && n["scope"].is_null() || n["scope"] == scope.as_str())
            };
            let found: Vec<f64> =
                nodes.iter().filter(here).map(|n| n["value"].as_f64().unwrap()).collect();
            let [value] = found[..] else { panic!("{scope} {metric}: {found:?}") };
            // perf's one decimal of a percent.
            assert!((value * 100.0 - printed).abs() <= 0.05 + 1e-6, "{scope}: {metric} {value}");
        }
    }
}

/// The script for people makes the same lines.
fn script_agrees(recording: &Path, intervals: &str) {
    let folder = Folder::new();
    let out = folder.file("intervals.csv");
    let script = root().join("tests/tools/zen4_to_perf_csv.py");
    if tool("python3", &[text(&script), text(recording), &out, "--intervals"]).is_some() {
        assert_eq!(folder.read("intervals.csv"), intervals);
    }
}

#[test]
fn two_blocks_give_perfs_metrics() {
    check_all_ways(&fixture("import/zen4-two-blocks.csv"));
}

#[test]
fn the_whole_recording_gives_perfs_metrics() {
    let Some(path) = shared("recordings/perf-stat/zen4-pipeline.csv") else { return };
    check_all_ways(&path);
}
