//! Files for other tools: the Firefox Profiler, Perfetto, callgrind_annotate. What they hold is compared with folded
//! stacks, and with other reports of the same counts.

use super::page::two_phases;
use super::report;
use super::stacks::recorded;
use crate::support::child::Limited as _;
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::shown;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

fn read(folder: &Folder, name: &str) -> Value {
    serde_json::from_str(&folder.read(name)).expect("JSON")
}

/// Stacks with their samples.
type Stacks = BTreeMap<String, u64>;

fn folded(folder: &Folder, name: &str) -> Stacks {
    let line = |line: &str| {
        let (stack, samples) = line.rsplit_once(' ').expect("stack and samples");
        (stack.to_owned(), samples.parse().expect("samples"))
    };
    folder.read(name).lines().map(line).collect()
}

/// The stacks of a processed profile, by its tables (firefox-devtools/profiler, src/types/profile.js).
fn stacks(profile: &Value) -> Stacks {
    let mut out = Stacks::new();
    for thread in profile["threads"].as_array().expect("threads") {
        let shared = &profile["shared"]["stringArray"];
        let strings = if shared.is_array() { shared } else { &thread["stringArray"] };
        let cell = |table: &str, column: &str, row: &Value| {
            thread[table][column][row.as_u64().expect("an index") as usize].clone()
        };
        let samples = &thread["samples"];
        for (number, stack) in samples["stack"].as_array().expect("stacks").iter().enumerate() {
            let mut names = Vec::new();
            let mut at = stack.clone();
            while !at.is_null() {
                let function = cell("frameTable", "func", &cell("stackTable", "frame", &at));
                let name = cell("funcTable", "name", &function).as_u64().expect("a name") as usize;
                names.push(strings[name].as_str().expect("a string").to_owned());
                at = cell("stackTable", "prefix", &at);
            }
            names.push(thread["name"].as_str().expect("a name").to_owned());
            names.reverse();
            let weight = samples["weight"][number].as_u64().unwrap_or(1);
            *out.entry(names.join(";")).or_default() += weight;
        }
    }
    out
}

#[test]
fn a_profile_for_firefox_has_the_stacks_of_the_folded_ones() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(session) = recorded(&folder) else { return };
    let (profile, lines) = (folder.file("profile.json"), folder.file("folded"));
    let output = report(&[&session, "--firefox", &profile, "--folded", &lines]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let profile = read(&folder, "profile.json");
    assert_eq!(stacks(&profile), folded(&folder, "folded"));
    // Times are differences, and none goes back.
    for thread in profile["threads"].as_array().expect("threads") {
        let steps = thread["samples"]["timeDeltas"].as_array().expect("times");
        assert!(steps.iter().all(|step| step.as_f64().is_some_and(|step| step >= 0.0)));
    }
}

#[test]
fn a_profile_for_firefox_has_a_marker_for_each_interval() {
    let folder = Folder::new();
    let counts = two_phases(&folder);
    let path = folder.file("profile.json");
    report(&[&counts, "--uarch", "zen4", "--interval", "--firefox", &path]).succeeded();
    let profile = read(&folder, "profile.json");
    let markers = &profile["threads"][0]["markers"];
    let data = markers["data"].as_array().expect("data");
    let of = |kind: &str| data.iter().filter(|d| d["type"] == kind).collect::<Vec<_>>();
    assert_eq!((of("tdtool Level 1").len(), of("tdtool phase").len()), (20, 2));
    let schema = profile["meta"]["markerSchema"].as_array().expect("schemas");
    let level = schema.iter().find(|s| s["name"] == "tdtool Level 1").expect("a schema");
    // Every graph is of a field, and every marker has all of them.
    for graph in level["graphs"].as_array().expect("graphs") {
        let key = graph["key"].as_str().expect("a key");
        assert!(of("tdtool Level 1").iter().all(|d| d[key].as_f64().is_some()), "{key}");
    }
}

/// The Trace Event Format: what each kind of event must have.
#[test]
fn a_trace_has_counters_and_phases() {
    let folder = Folder::new();
    let (counts, path) = (two_phases(&folder), folder.file("trace.json"));
    report(&[&counts, "--uarch", "zen4", "--interval", "--trace", &path]).succeeded();
    let trace = read(&folder, "trace.json");
    let events = trace["traceEvents"].as_array().expect("events");
    let of = |phase: &str| events.iter().filter(|e| e["ph"] == phase).collect::<Vec<_>>();
    assert_eq!(of("M").len() + of("C").len() + of("X").len(), events.len());
    assert!(events.iter().all(|e| e["name"].is_string() && e["pid"].is_u64()));
    // One at the begin of each interval, and the end.
    let level: Vec<&Value> = of("C").into_iter().filter(|e| e["name"] == "Level 1 (%)").collect();
    let times: Vec<f64> = level.iter().filter_map(|e| e["ts"].as_f64()).collect();
    assert_eq!(times, (0..=20).map(|s| f64::from(s) * 1e6).collect::<Vec<_>>());
    // The shares of the other form of the same reports.
    let reports = report(&[&counts, "--uarch", "zen4", "--interval", "--format", "json"]);
    let reports = reports.succeeded().stdout;
    let reports: Vec<Value> =
        reports.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for (event, report) in level.iter().zip(&reports) {
        let nodes = report["nodes"].as_array().expect("nodes").iter();
        for node in nodes.filter(|node| node["level"] == 1 && !node["value"].is_null()) {
            let label = node["label"].as_str().expect("a label");
            let shown = event["args"][label].as_f64().expect("a share");
            let share = node["value"].as_f64().expect("counted");
            assert!((shown - 100.0 * share).abs() < 0.006, "{label}: {shown} and {share}");
        }
    }
    let phases: Vec<(f64, f64)> =
        of("X").iter().filter_map(|e| Some((e["ts"].as_f64()?, e["dur"].as_f64()?))).collect();
    assert_eq!(phases, [(0.0, 10e6), (10e6, 10e6)]);
}

#[test]
fn a_file_over_time_is_refused_where_nothing_has_times() {
    let folder = Folder::new();
    let counts = two_phases(&folder);
    let path = folder.file("out.json");
    let asked = [
        &["report", &counts, "--uarch", "zen4", "--firefox", &path][..],
        &["report", &counts, "--uarch", "zen4", "--trace", &path],
    ];
    assert_shown!("nothing_over_time", shown::each(&asked, &folder));
}

/// Read again by callgrind_annotate.
#[test]
fn costs_for_callgrind_have_the_samples_of_the_folded_stacks() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(session) = recorded(&folder) else { return };
    let (costs, lines) = (folder.file("costs"), folder.file("folded"));
    report(&[&session, "--callgrind", &costs, "--folded", &lines]).succeeded();
    let stacks = folded(&folder, "folded");
    let with = |name: &str| -> u64 {
        let has = |stack: &str| stack.split(';').any(|frame| frame == name);
        stacks.iter().filter(|(stack, _)| has(stack)).map(|(_, samples)| samples).sum()
    };
    // In another folder than the source: callgrind_annotate shortens names of files below its own, not of all alike.
    let annotate = |arguments: &[&str]| {
        let all = [arguments, &[costs.as_str()]].concat();
        let output = Command::new("callgrind_annotate").args(all).current_dir("/").run_limited();
        output.ok().map(|output| String::from_utf8_lossy(&output.stdout).replace(',', ""))
    };
    let options = ["--inclusive=yes", "--threshold=100", "--auto=no"];
    let Some(seen) = annotate(&options) else {
        return eprintln!("skipped: callgrind_annotate is not installed");
    };
    let number = |line: &str| line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
    let of = |what: &str| seen.lines().find(|l| l.contains(what)).and_then(number);
    assert_eq!(of("PROGRAM TOTALS"), Some(stacks.values().sum()), "{seen}");
    for name in ["main", "middle", "leaf"] {
        assert_eq!(of(&format!(":{name} ")), Some(with(name)), "{name}: {seen}");
    }
}
