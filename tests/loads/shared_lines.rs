//! Cache lines that threads share, against `perf c2c`.

use super::recording::{LOAD, LOCAL_HITM, PROCESS, REMOTE_HITM, STORE, Sampled, file};
use super::{list, number, read};
use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::random::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

const HEAP: u64 = 0x7f00_0000_1000;

/// Four threads on four CPUs of two nodes: lines 0 and 2 are shared falsely, all access the same word of line 1,
/// line 3 belongs to the first thread.
fn records() -> Vec<u8> {
    let mut random = Random(7);
    let mut records = Vec::new();
    for round in 0..2000 {
        let line = [0, 0, 0, 1, 1, 2, 3][random.index(7)];
        let thread = if line == 3 { 0 } else { random.below(4) };
        let what = random.below(10);
        let (ip, latency, source) = match what {
            0..4 => (8, 0, STORE),
            4..7 => (0, 40 + random.below(20), LOAD),
            _ if line == 3 => (0, 40 + random.below(20), LOAD),
            9 => (0, 300 + random.below(100), REMOTE_HITM),
            _ => (0, 100 + random.below(100), LOCAL_HITM),
        };
        let address = HEAP + 64 * line + if line == 1 { 16 } else { 8 * thread };
        let ip = 0x40_1a80 + 4 * (thread & 1) + ip;
        let one = Sampled { ip, thread: PROCESS + thread, cpu: thread, address, latency, source };
        records.extend(one.record(10 + round));
    }
    records
}

/// What perf says of a line: share of all HITM, HITM, local, remote, stores; and by offset and instruction: parts
/// of the remote and local HITM and of the stores, in percent.
#[derive(Debug, Default, PartialEq)]
struct Line {
    share: f64,
    counts: [u64; 4],
    parts: BTreeMap<(u64, String), [f64; 3]>,
}

fn of_perf(report: &str) -> BTreeMap<u64, Line> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let percent = |text: &str| text.trim_end_matches('%').parse::<f64>().unwrap();
    let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
    let mut last = 0;
    for row in report.lines() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        match cells.as_slice() {
            // Index, address, node, PA count, share, HITM, local, remote, records, loads, stores.
            [_, address, "N/A", _, share, all, local, remote, _, _, stores, ..]
                if share.ends_with('%') =>
            {
                let counts = [all, local, remote, stores].map(|n| n.parse().unwrap());
                let (share, parts) = (percent(share), BTreeMap::new());
                lines.insert(hex(address), Line { share, counts, parts });
            }
            [_, _, _, _, _, _, address] if address.starts_with("0x") => last = hex(address),
            [remote, local, stores, _, _, offset, "N/A", _, ip, ..] if remote.ends_with('%') => {
                let key = (hex(offset), (*ip).to_owned());
                let parts = [remote, local, stores].map(|text| percent(text));
                lines.get_mut(&last).unwrap().parts.insert(key, parts);
            }
            _ => {}
        }
    }
    lines
}

/// The same of our document: it has a row per thread, too.
fn of_document(document: &Value) -> BTreeMap<u64, Line> {
    let hex = |value: &Value| u64::from_str_radix(&value.as_str().unwrap()[2..], 16).unwrap();
    let mut lines = BTreeMap::new();
    for row in list(document, "lines") {
        let count = |row: &Value, key: &str| row[key].as_u64().unwrap();
        let remote = count(row, "modified_remote");
        let counts =
            [count(row, "modified"), count(row, "modified") - remote, remote, count(row, "writes")];
        let mut sums: BTreeMap<(u64, String), [u64; 3]> = BTreeMap::new();
        for one in list(row, "accesses") {
            let key = (count(one, "offset"), one["address"].as_str().unwrap().to_owned());
            let sum = sums.entry(key).or_default();
            sum[0] += count(one, "modified_remote");
            sum[1] += count(one, "modified") - count(one, "modified_remote");
            sum[2] += count(one, "writes");
        }
        let part = |n: u64, all: u64| 100.0 * n as f64 / all as f64;
        let parts = sums.into_iter().map(|(key, [r, l, s])| {
            (key, [part(r, counts[2]), part(l, counts[1]), part(s, counts[3])])
        });
        let share = 100.0 * number(&row["share"]);
        lines.insert(hex(&row["address"]), Line { share, counts, parts: parts.collect() });
    }
    lines
}

fn same(ours: &BTreeMap<u64, Line>, perf: &BTreeMap<u64, Line>) {
    assert_eq!(ours.keys().collect::<Vec<_>>(), perf.keys().collect::<Vec<_>>());
    let near = |a: f64, b: f64| (a - b).abs() < 0.0051;
    for (address, own) in ours {
        let other = &perf[address];
        assert_eq!(own.counts, other.counts, "HITM, local, remote, stores of {address:#x}");
        assert!(near(own.share, other.share), "{own:?} {other:?}");
        assert_eq!(own.parts.keys().collect::<Vec<_>>(), other.parts.keys().collect::<Vec<_>>());
        for (key, parts) in &own.parts {
            let theirs = other.parts[key];
            assert!((0..3).all(|n| near(parts[n], theirs[n])), "{key:?}: {parts:?}, {theirs:?}");
        }
    }
}

/// `perf c2c report --stdio` of perf 6.1 on this recording: HITM, local, remote, stores and share of all HITM of each
/// line; where perf is installed, all of its parts by offset and instruction, too.
#[test]
fn lines_have_the_counts_and_shares_of_perf_c2c() {
    let folder = Folder::new();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, file(&records())).unwrap();
    let document = read(&[text(&path)]);
    let ours = of_document(&document);
    let figures: Vec<_> = ours.iter().map(|(line, own)| (line - HEAP, own.counts)).collect();
    assert_eq!(figures, PERF);
    let sharing: Vec<_> = list(&document, "lines").iter().map(|line| &line["sharing"]).collect();
    assert_eq!(sharing, ["false", "true", "false"], "as records() makes them");
    let output =
        Command::new("perf").args(["c2c", "report", "--stdio", "-i", text(&path)]).run_limited();
    match output {
        Ok(output) if output.status.success() => {
            same(&ours, &of_perf(&String::from_utf8_lossy(&output.stdout)));
        }
        _ => eprintln!("skipped: no perf c2c here"),
    }
}

/// Offset of the line, HITM, local, remote, stores.
const PERF: [(u64, [u64; 4]); 3] =
    [(0, [255, 176, 79, 336]), (64, [162, 109, 53, 235]), (128, [69, 47, 22, 112])];
