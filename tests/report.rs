//! `tdtool report` and `tdtool diff` as a user runs them, with or without a PMU on this machine.

#![allow(clippy::print_stderr)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn tdtool(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tdtool")).args(args).output().expect("tdtool starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}{}", stdout(output), stderr(output)))
}

/// Two one-second intervals of real Zen 4 counts (source in zen4-two-blocks.csv beside it).
fn zen4() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/fixtures/import/zen4-two-intervals.csv").display().to_string()
}

#[test]
fn a_command_is_measured_and_its_status_is_ours() {
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -2 $$", 130)]
    {
        let output = tdtool(&["report", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(status), "{script}: {}", stderr(&output));
        assert!(stdout(&output).contains("task clock"), "{script}: {}", stdout(&output));
    }
}

#[test]
fn a_command_that_cannot_start_is_told_as_a_shell_tells_it() {
    let missing = tdtool(&["report", "--", "./no-such-program"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(stderr(&missing).contains("error: cannot start ./no-such-program"));
    let text = tdtool(&["report", "--", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    assert_eq!(text.status.code(), Some(126), "{}", stderr(&text));
}

#[test]
fn nothing_stands_as_measured_that_is_not() {
    let output = tdtool(&["report", "--format", "json", "--", "sh", "-c", "echo ours"]);
    let report = json(&output);
    assert_eq!(report["schema"], "tdtool.report/1");
    // The command's own output made way for the document.
    assert!(stderr(&output).contains("ours"));
    let nodes = report["nodes"].as_array().expect("nodes");
    for node in nodes {
        let (value, missing) = (&node["value"], &node["missing"]);
        assert_ne!(value.is_null(), missing.is_null(), "{node}");
        if report["source"] == "no_pmu" {
            assert!(value.is_null(), "{node}");
        }
        for key in ["id", "label", "parent", "level", "error", "running", "over", "bottleneck"] {
            assert!(node.get(key).is_some(), "{key} in {node}");
        }
    }
    let software = report["software"].as_object().expect("software");
    assert!(software["wall_ms"].as_f64().is_some_and(|ms| ms > 0.0));
    if report["source"] == "no_pmu" {
        assert!(stderr(&output).contains("try:"), "the remedy is told: {}", stderr(&output));
        let demanded = tdtool(&["report", "--require-pmu", "--", "true"]);
        assert_eq!(demanded.status.code(), Some(3));
    }
}

#[test]
fn a_file_gets_the_report_and_the_commands_output_stays_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.json").display().to_string();
    let output =
        tdtool(&["report", "--format", "json", "--output", &path, "--", "sh", "-c", "echo ours"]);
    assert_eq!(stdout(&output), "ours\n");
    let text = std::fs::read_to_string(&path).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["command"][2], "echo ours");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_anything_runs() {
    let output = tdtool(&["report", "--output", "/no/such/folder/r", "--", "sh", "-c", "echo ran"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!stdout(&output).contains("ran"));
}

#[test]
fn requests_without_sense_are_wrong_usage_and_say_what_to_do() {
    for args in [
        &["report"][..],
        &["report", "-p", "1", "-a"],
        &["report", "--level", "0", "--", "true"],
        &["report", "--duration", "nan", "--", "true"],
        &["report", "--uarch", "skylak", "--", "true"],
        &["report", "--nodes", "No_Such_Node", "--", "true"],
        &["report", "file.csv", "--", "true"],
        &["report", "--per-core", "--", "true"],
    ] {
        let output = tdtool(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with("error:"), "{args:?}: {}", stderr(&output));
    }
}

/// The values perf printed for these counts (perf 6.x, metric group PipelineL2), in percent with
/// one decimal: block 0 of the recording, see tests/fixtures/import/zen4-two-blocks.csv.
#[test]
fn recorded_counts_give_the_values_perf_printed() {
    let output = tdtool(&["report", "--format", "json", "-I", "1000", "--uarch", "zen4", &zen4()]);
    let text = stdout(&output);
    let first: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    for (id, percent) in [
        ("bad_speculation_mispredicts", 0.7),
        ("bad_speculation_pipeline_restarts", 0.0),
        ("backend_bound_cpu", 20.5),
        ("backend_bound_memory", 60.2),
        ("retiring_fastpath", 14.8),
        ("retiring_microcode", 0.0),
        ("frontend_bound_bandwidth", 0.6),
        ("frontend_bound_latency", 2.9),
    ] {
        let nodes = first["nodes"].as_array().expect("nodes");
        let node = nodes.iter().find(|n| n["id"] == id).expect(id);
        let value = 100.0 * node["value"].as_f64().expect(id);
        assert!((value - percent).abs() <= 0.0501, "{id}: {value} against {percent}");
    }
    let bottleneck = first["nodes"].as_array().expect("nodes");
    let bottleneck = bottleneck.iter().find(|n| n["bottleneck"] == true).expect("a bottleneck");
    assert_eq!(bottleneck["id"], "backend_bound_memory");
}

#[test]
fn text_and_csv_are_views_of_the_same_document() {
    let report = json(&tdtool(&["report", "--format", "json", "--uarch", "zen4", &zen4()]));
    let csv = stdout(&tdtool(&["report", "--format", "csv", "--uarch", "zen4", &zen4()]));
    let text = stdout(&tdtool(&["report", "--verbose", "--uarch", "zen4", &zen4()]));
    for node in report["nodes"].as_array().expect("nodes") {
        let id = node["id"].as_str().expect("id");
        let row = csv.lines().find(|l| l.starts_with(&format!("node,{id},")));
        let row = row.unwrap_or_else(|| panic!("{id} in {csv}"));
        let value = row.split(',').nth(4).expect("value");
        assert_eq!(value.parse().ok(), node["value"].as_f64(), "{id}");
        if let Some(value) = node["value"].as_f64() {
            let shown = format!("{:.1} %", 100.0 * value);
            let label = node["label"].as_str().expect("label");
            let line = text.lines().find(|l| l.trim_start_matches(['●', ' ']).starts_with(label));
            assert!(line.is_some_and(|l| l.contains(&shown)), "{label} {shown} in {text}");
        }
    }
}

#[test]
fn ascii_means_ascii_and_a_pipe_gets_no_colour() {
    let text = stdout(&tdtool(&["report", "--ascii", "--uarch", "zen4", &zen4()]));
    let tree: String = text.lines().filter(|l| l.contains('%')).take(7).collect();
    assert!(!tree.contains('█') && tree.contains('#'), "{tree}");
    assert!(!text.contains('\x1b'));
}

#[test]
fn a_report_compared_with_itself_differs_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.json").display().to_string();
    let output =
        tdtool(&["report", "--format", "json", "--output", &path, "--uarch", "zen4", &zen4()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let same = json(&tdtool(&["diff", "--format", "json", &path, &path]));
    assert_eq!(same["schema"], "tdtool.diff/1");
    for row in same["nodes"].as_array().expect("nodes") {
        let absent = row["a"].is_null();
        assert_eq!(row["judgement"], if absent { "absent" } else { "unjudged" }, "{row}");
        assert_eq!(row["difference"].as_f64(), (!absent).then_some(0.0), "{row}");
    }
    let wrong = tdtool(&["diff", &path, concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(stderr(&wrong).contains("Cargo.toml"), "{}", stderr(&wrong));
}

#[test]
fn what_is_no_recording_gets_cause_and_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("p.c"), "int main(void) { return 0; }\n").expect("written");
    std::fs::write(path("p.py"), "print(1)\n").expect("written");
    std::fs::write(path("garbage"), "garbage\n").expect("written");
    for (file, remedy) in [
        (path("p.c"), "compile it"),
        (path("p.py"), "tdtool report -- python3"),
        (path("garbage"), "tdtool report -- ./PROGRAM"),
        (path("."), "tdtool report -- ./PROGRAM"),
        (path("absent"), "tdtool report -- "),
    ] {
        let told = stderr(&tdtool(&["report", &file]));
        assert!(told.starts_with("error: "), "{told}");
        assert!(told.contains("\ntry:   ") && told.contains(remedy), "{told}");
        assert!(!told.contains("os error"), "{told}");
    }
}

#[test]
fn numbers_out_of_range_say_what_would_do() {
    for (option, value, says) in
        [("--interval", "0", "at least 10 ms"), ("--level", "99", "levels count from 1")]
    {
        let output = tdtool(&["report", option, value, "--", "true"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}

#[test]
fn without_a_pmu_that_is_said_once_and_no_constant_stands_as_a_metric() {
    let output = tdtool(&["report", "--no-code", "--", "true"]);
    let text = stdout(&output);
    if !text.contains("no core PMU") {
        eprintln!("skipped: this machine has a PMU");
        return;
    }
    assert!(stderr(&output).lines().count() <= 3, "{}", stderr(&output));
    assert_eq!(text.matches("not measured").count(), 1, "{text}");
    let report = json(&tdtool(&["report", "--no-code", "--format", "json", "--", "true"]));
    let info = report["info"].as_array().expect("info");
    assert!(info.iter().all(|i| i["value"].is_null()), "{info:?}");
}

#[test]
fn a_comparison_says_which_file_is_which() {
    let folder = tempfile::tempdir().expect("a folder");
    let [a, b] = ["before.json", "after.json"].map(|name| {
        let path = folder.path().join(name).display().to_string();
        tdtool(&["report", "--no-code", "--format", "json", "-o", &path, "--", "true"]);
        path
    });
    let text = stdout(&tdtool(&["diff", &a, &b]));
    assert!(text.starts_with(&format!("A: {a}: true, ")), "{text}");
    assert!(text.contains(&format!("\nB: {b}: true, ")), "{text}");
}
