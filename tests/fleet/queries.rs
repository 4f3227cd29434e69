//! docs/guide/fleet: the queries in every engine that is installed, with answers computed here.

use super::parquet::python_has;
use super::sample::{lines, window};
use crate::support::files::{Folder, root, text};
use crate::support::run::{program, run, tdtool};
use serde_json::Value;
use std::collections::BTreeMap;

/// Engines and the Python module that each needs.
const ENGINES: [(&str, &str); 4] = [
    ("duckdb", "duckdb"),
    ("datafusion", "datafusion"),
    ("spark", "pyspark"),
    ("ballista", "ballista"),
];
const QUERIES: [&str; 6] =
    ["wasted", "functions", "regressions", "processors", "sources", "savings"];

/// The answer of an engine, CSV.
fn answer(engine: &str, folder: &str, query: &str) -> String {
    let guide = root().join("docs/guide/fleet");
    let mut command = program("python3");
    command.arg(guide.join("query.py")).args(["--engine", engine, folder]);
    run(command.arg(guide.join(format!("{query}.sql")))).succeeded().stdout
}

/// Rows of CSV by their columns' names; no value here has a comma.
fn table(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines.map(|line| names.iter().cloned().zip(line).collect()).collect()
}

/// 30 hosts of two types, half of them with a new version from the third hour on, which takes a fifth more time; the
/// type c9 takes half more.
fn fleet() -> Vec<Value> {
    let noise =
        |host: i64, hour: i64| 1.0 + 0.04 * (((host * 37 + hour * 11) % 17) as f64 / 17.0 - 0.5);
    let mut all = Vec::new();
    for host in 0..30 {
        for hour in 0..8 {
            let is_new = host % 2 == 1 && hour >= 2;
            let is_slow = host % 3 == 0;
            let load = 1.0 + 0.5 * (hour as f64 / 8.0);
            let seconds = load
                * noise(host, hour)
                * if is_new { 1.2 } else { 1.0 }
                * if is_slow { 1.5 } else { 1.0 };
            let mut one = window(
                &format!("h{host:02}"),
                hour * 60,
                if is_new { "new" } else { "old" },
                seconds,
            );
            if is_slow {
                one["host"]["labels"]["instance_type"] = "c9".into();
            }
            all.push(one);
        }
    }
    all
}

#[test]
fn answers_are_those_computed_here() {
    if !python_has("duckdb") {
        return;
    }
    let folder = Folder::new();
    let out = folder.file("out");
    let windows = fleet();
    let input = folder.write("in.json", lines(windows.clone()));
    tdtool(["export", "--parquet", &out, &input]).succeeded();
    let total = |build: &str| -> f64 {
        let own = windows.iter().filter(|of| of["functions"][0]["binary"]["build_id"] == build);
        own.map(|of| of["busy_seconds"].as_f64().unwrap()).sum()
    };
    let near = |found: &str, expected: f64| {
        let found: f64 = found.parse().unwrap();
        assert!((found - expected).abs() < 0.002, "{found} is not {expected}");
    };
    let wasted = table(&answer("duckdb", &out, "wasted"));
    let order: Vec<_> =
        wasted.iter().map(|row| (row["build_id"].as_str(), row["node"].as_str())).collect();
    let expected = ["Backend_Bound", "Memory_Bound"];
    assert_eq!(
        order,
        [("old", expected[0]), ("new", expected[0]), ("old", expected[1]), ("new", expected[1])]
    );
    near(&wasted[0]["cpu_seconds"], total("old") * 0.25);
    near(&wasted[3]["cpu_seconds"], total("new") * 0.125);
    assert_eq!(wasted[0]["hosts"], "30");
    let functions = table(&answer("duckdb", &out, "functions"));
    let sum: f64 = functions.iter().map(|row| row["mean_percent"].parse::<f64>().unwrap()).sum();
    assert!((sum - 100.0).abs() < 0.01, "{sum}");
    near(&functions[0]["cpu_seconds"], total("old") * 0.75);
    near(&functions[0]["wasted_cpu_seconds"], total("old") * 0.75 * 0.5);
    assert_eq!(functions[1]["function_name"], "f");
    let savings = table(&answer("duckdb", &out, "savings"));
    near(&savings[0]["cpu_seconds"], total("old") * 0.75 * 0.125);
    near(&savings[0]["high"], total("old") * 0.75 * 0.135);
    near(&savings[0]["cost"], total("old") * 0.75 * 0.125 * 0.1 / 3600.0);
    let regressions = table(&answer("duckdb", &out, "regressions"));
    let cpu = &regressions[0];
    assert_eq!((cpu["metric"].as_str(), cpu["verdict"].as_str()), ("cpu", "regressed"));
    let bounds: Vec<f64> = ["low", "high"].map(|name| cpu[name].parse().unwrap()).to_vec();
    assert!(bounds[0] > 10.0 && bounds[0] < 20.0 && bounds[1] < 30.0, "{cpu:?}");
    assert!(regressions[1..].iter().all(|row| row["verdict"] == "same"), "{regressions:?}");
    let processors = table(&answer("duckdb", &out, "processors"));
    let verdict =
        |row: &BTreeMap<String, String>| (row["instance_type"].clone(), row["verdict"].clone());
    let found: Vec<_> = processors.iter().map(verdict).collect();
    let of = |kind: &str, verdict: &str| (kind.to_owned(), verdict.to_owned());
    let expected = || [of("c8", "least"), of("c9", "slower")];
    assert_eq!(found, [expected(), expected()].concat());
}

#[test]
fn every_engine_gives_the_same_answers() {
    let folder = Folder::new();
    let out = folder.file("out");
    let input = folder.write("in.json", lines(fleet()));
    tdtool(["export", "--parquet", &out, &input]).succeeded();
    let here: Vec<_> = ENGINES.into_iter().filter(|(_, module)| python_has(module)).collect();
    if std::env::var_os("BALLISTA_SCHEDULER").is_none() {
        eprintln!("skipped: $BALLISTA_SCHEDULER names no scheduler");
    }
    let here = here.into_iter().filter(|(engine, _)| {
        *engine != "ballista" || std::env::var_os("BALLISTA_SCHEDULER").is_some()
    });
    let mut answers: BTreeMap<&str, (&str, String)> = BTreeMap::new();
    for (engine, _) in here {
        for query in QUERIES {
            let found = answer(engine, &out, query);
            let (first, expected) = answers.entry(query).or_insert_with(|| (engine, found.clone()));
            assert_eq!(&found, expected, "{query}: {first} and {engine}");
        }
    }
}

/// A folder without tables, and one with tables without rows.
#[test]
fn empty_folders_and_tables_are_told_apart() {
    if !python_has("duckdb") {
        return;
    }
    let folder = Folder::new();
    let query = root().join("docs/guide/fleet/query.py");
    let wasted = root().join("docs/guide/fleet/wasted.sql");
    let ran = run(program("python3").args([text(&query), &folder.file("none"), text(&wasted)]));
    assert!(ran.code() == Some(1) && ran.stderr.contains("tables"), "{}", ran.stderr);
    let mut bare = window("a", 0, "b", 1.0);
    ["nodes", "functions", "blocks", "counts"]
        .into_iter()
        .for_each(|rows| bare[rows] = Value::Array(Vec::new()));
    let out = folder.file("out");
    let input = folder.write("in.json", lines([bare]));
    tdtool(["export", "--parquet", &out, &input]).succeeded();
    for query in QUERIES {
        assert_eq!(answer("duckdb", &out, query).lines().count(), 1, "{query}");
    }
}
