//! docs/guide/fleet: the queries in every engine that is installed, with answers computed here.

use super::parquet::python_has;
use super::sample::{estimated, lines, window};
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

/// Backend_Bound of the estimated hosts; it is 0.25 of those that are counted.
const ESTIMATED: [f64; 6] = [0.22, 0.23, 0.24, 0.25, 0.26, 0.27];

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
/// type c9 takes half more. And 6 hosts without a PMU, for which reports estimate.
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
    for (host, backend) in ESTIMATED.into_iter().enumerate() {
        all.extend((0..2).map(|hour| estimated(&format!("e{host}"), hour * 60, 2.0, backend)));
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
    // The rings' hosts have level 1, the reports' both.
    let expected = [
        ("old", "Backend_Bound"),
        ("new", "Backend_Bound"),
        ("", "Backend_Bound"),
        ("", "Memory_Bound"),
        ("", "Bad_Speculation"),
    ];
    assert_eq!(order, expected);
    let of_reports = 6.0 * 2.0 * 2.0;
    near(&wasted[0]["cpu_seconds"], total("old") * 0.25);
    near(&wasted[1]["cpu_seconds"], total("new") * 0.25);
    near(&wasted[3]["cpu_seconds"], of_reports * 0.1875);
    assert_eq!(wasted[0]["hosts"], "30");
    let functions = table(&answer("duckdb", &out, "functions"));
    let sum: f64 = functions.iter().map(|row| row["mean_percent"].parse::<f64>().unwrap()).sum();
    assert!((sum - 100.0).abs() < 0.01, "{sum}");
    near(&functions[0]["cpu_seconds"], total("old") * 0.75);
    near(&functions[0]["wasted_cpu_seconds"], total("old") * 0.75 * 0.5);
    assert_eq!(functions[1]["function_name"], "f");
    let savings = table(&answer("duckdb", &out, "savings"));
    assert_eq!(savings[0]["node"], "Backend_Bound");
    near(&savings[0]["cpu_seconds"], total("old") * 0.75 * 0.25);
    near(&savings[0]["high"], total("old") * 0.75 * 0.26);
    let cost: f64 = savings[0]["cost"].parse().unwrap();
    assert!((cost - total("old") * 0.75 * 0.25 * 0.1 / 3600.0).abs() < 0.0001, "{cost}");
    // Of reports a part in place of the whole, and a whole without known parts.
    let reports = savings.iter().filter(|row| row["build_id"].is_empty());
    let reports: Vec<_> = reports.filter(|row| row["function_name"] == "f").collect();
    let nodes: Vec<_> = reports.iter().map(|row| row["node"].as_str()).collect();
    assert_eq!(nodes, ["Memory_Bound", "Bad_Speculation"]);
    near(&reports[0]["cpu_seconds"], of_reports * 0.75 * 0.1875);
    near(&reports[1]["cpu_seconds"], of_reports * 0.75 * 0.0625);
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

/// Estimates have no build-ids, and some processors' tables have nodes in lower case.
#[test]
fn counted_and_estimated_hosts_are_compared_by_name() {
    if !python_has("duckdb") {
        return;
    }
    let folder = Folder::new();
    let out = folder.file("out");
    let mut windows = fleet();
    for window in windows.iter_mut().filter(|of| of["host"]["labels"]["instance_type"] == "c9") {
        for row in window["nodes"].as_array_mut().unwrap() {
            row["node"] = row["node"].as_str().unwrap().to_lowercase().into();
        }
    }
    let input = folder.write("in.json", lines(windows));
    tdtool(["export", "--parquet", &out, &input]).succeeded();
    let rows = table(&answer("duckdb", &out, "sources"));
    let nodes: Vec<_> = rows.iter().map(|row| row["node"].as_str()).collect();
    assert_eq!(nodes, ["backend_bound", "retiring"]);
    // Student's t at 1 - 0.05 / 2 / 2 (two comparisons), 5 degrees of freedom: six hosts, as the others are alike.
    let student = 3.163;
    let mean = ESTIMATED.iter().sum::<f64>() / 6.0;
    let squares = ESTIMATED.iter().map(|of| (of - mean) * (of - mean)).sum::<f64>();
    let error = student * (squares / 5.0 / 6.0).sqrt();
    for (row, counted, estimated, error, held, verdict) in [
        (&rows[0], 0.25, mean, error, 5.0 / 6.0, "same"),
        (&rows[1], 0.5, 0.625, 0.0, 0.0, "differs"),
    ] {
        assert_eq!((row["counted_hosts"].as_str(), row["estimated_hosts"].as_str()), ("30", "6"));
        for (name, expected) in [
            ("counted_percent", counted),
            ("estimated_percent", estimated),
            ("difference", estimated - counted),
            ("error", error),
            ("held_percent", held),
        ] {
            let found: f64 = row[name].parse().unwrap();
            assert!((found - expected * 100.0).abs() < 0.02, "{name}: {found} is not {expected}");
        }
        assert_eq!(row["verdict"], verdict, "{row:?}");
    }
}

#[test]
fn every_engine_gives_the_same_answers() {
    let has_scheduler = std::env::var_os("BALLISTA_SCHEDULER").is_some();
    if !has_scheduler {
        eprintln!("skipped: $BALLISTA_SCHEDULER names no scheduler");
    }
    let possible = ENGINES.into_iter().filter(|(engine, _)| *engine != "ballista" || has_scheduler);
    let here: Vec<_> = possible.filter(|(_, module)| python_has(module)).collect();
    need!(here.len() >= 2, "fewer than two engines to compare");
    let folder = Folder::new();
    let out = folder.file("out");
    let input = folder.write("in.json", lines(fleet()));
    tdtool(["export", "--parquet", &out, &input]).succeeded();
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
