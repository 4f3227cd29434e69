//! `tdtool report -- COMMAND`, with or without a PMU on this machine.

use super::{json, report};
use crate::support::child::Limited as _;
use crate::support::files::{Folder, root, text, zen4_intervals};
use crate::support::shown;
use serde_json::Value;

#[test]
fn a_command_is_measured_and_its_status_is_ours() {
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -2 $$", 130)]
    {
        let output = report(&["--no-code", "--", "sh", "-c", script]);
        assert_eq!(output.code(), Some(status), "{script}: {}", output.stderr);
        assert!(output.stderr.contains("task clock"), "{script}: {}", output.stderr);
    }
}

/// `2>&1 | head`, a full disk: no panic, and the command's status or an error's.
#[test]
fn a_standard_error_that_cannot_be_written_is_no_panic() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let mut command = crate::support::run::command(["report", "--", "true"]);
    let status = command.stderr(full).end_limited().expect("started");
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
}

/// As with `perf stat`: `tdtool report -- gzip -c file > file.gz` leaves a sound file.
#[test]
fn standard_output_is_the_command_s_alone() {
    let output = report(&["--", "echo", "ours"]);
    assert_eq!(output.stdout, "ours\n");
    // Unless it is asked for.
    let output = report(&["--no-code", "-o", "-", "--", "echo", "ours"]);
    assert!(output.stdout.contains("ours\n") && output.stdout.contains("task clock"), "{output:?}");
}

#[test]
fn a_command_that_cannot_start_has_the_status_that_a_shell_gives() {
    let missing = report(&["--", "./no-such-program"]);
    assert_eq!(missing.code(), Some(127));
    assert!(missing.stderr.contains("./no-such-program"), "{}", missing.stderr);
    let plain = report(&["--", text(&root().join("Cargo.toml"))]);
    assert_eq!(plain.code(), Some(126), "{}", plain.stderr);
}

#[test]
fn nothing_stands_as_measured_that_is_not() {
    let output = report(&["--format", "json", "--", "sh", "-c", "echo ours"]);
    let document = output.json();
    assert_eq!(document["schema"], "tdtool.report/1");
    // The command's own output made way for the document.
    assert!(output.stderr.contains("ours"));
    let nodes = document["nodes"].as_array().expect("nodes");
    for node in nodes {
        let (value, missing) = (&node["value"], &node["missing"]);
        assert_ne!(value.is_null(), missing.is_null(), "{node}");
        if document["source"] == "no_pmu" {
            assert!(value.is_null(), "{node}");
        }
        for key in ["id", "label", "parent", "level", "error", "running", "over", "bottleneck"] {
            assert!(node.get(key).is_some(), "{key} in {node}");
        }
    }
    let software = document["software"].as_object().expect("software");
    assert!(software["wall_ms"].as_f64().is_some_and(|ms| ms > 0.0));
    if document["source"] == "no_pmu" {
        assert!(output.stderr.contains("try:"), "the remedy is named: {}", output.stderr);
        let demanded = report(&["--require-pmu", "--", "true"]);
        assert_eq!(demanded.code(), Some(3));
    }
}

#[test]
fn a_file_gets_the_report_and_the_commands_output_stays_where_it_was() {
    let folder = Folder::new();
    let path = folder.file("r.json");
    let output = report(&["--format", "json", "--output", &path, "--", "sh", "-c", "echo ours"]);
    assert_eq!(output.stdout, "ours\n");
    let document: Value = serde_json::from_str(&folder.read("r.json")).expect("JSON");
    assert_eq!(document["command"][2], "echo ours");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_anything_runs() {
    let output = report(&["--output", "/no/such/folder/r", "--", "sh", "-c", "echo ran"]);
    assert_eq!(output.code(), Some(1));
    assert!(!output.stdout.contains("ran"));
}

#[test]
fn requests_without_sense_are_wrong_usage_and_say_what_to_do() {
    let asked = [
        &["report"][..],
        &["report", "-p", "1", "-a"],
        &["report", "--level", "0", "--", "true"],
        &["report", "--level", "99", "--", "true"],
        &["report", "--level", "-1", "--", "true"],
        &["report", "--interval", "0", "--", "true"],
        &["report", "--duration", "nan", "--", "true"],
        &["report", "--uarch", "skylak", "--", "true"],
        &["report", "--nodes", "No_Such_Node", "--uarch", "skl", "--", "true"],
        &["report", "file.csv", "--", "true"],
        &["report", "--per-core", "--", "true"],
    ];
    assert_shown!("requests_without_sense", shown::each(&asked, &Folder::new()));
}

#[test]
fn without_a_pmu_that_is_said_once_and_no_constant_stands_as_a_metric() {
    let output = report(&["--no-code", "--", "true"]);
    let text = &output.stdout;
    need!(text.contains("no core PMU"), "this machine has a PMU");
    assert!(output.stderr.lines().count() <= 3, "{}", output.stderr);
    assert_eq!(text.matches("not measured").count(), 1, "{text}");
    // Samples, too, say nothing of it again; nor does standard error.
    for options in [&["--", "true"][..], &["-o", "-", "--", "true"]] {
        let output = report(options);
        let all = format!("{}{}", output.stdout, output.stderr);
        assert_eq!(all.matches("no core PMU").count(), 1, "{all}");
    }
    let document = json(&["--no-code", "--", "true"]);
    let info = document["info"].as_array().expect("info");
    assert!(info.iter().all(|i| i["value"].is_null()), "{info:?}");
}

/// Standard output is the command's, or the report's where there is no command, or another program reads it.
#[test]
fn a_text_report_leaves_standard_output_to_its_command_only() {
    let of = |asked: &[&str]| {
        let ran = super::report(&[&["--no-code"], asked].concat()).succeeded();
        [ran.stdout, ran.stderr]
    };
    let command = ["--", "sh", "-c", "echo said by the command"];
    let [out, err] = of(&command);
    assert!(out == "said by the command\n" && err.contains("wall"), "{out}{err}");
    let [out, err] = of(&[&["--format", "csv"], &command[..]].concat());
    assert!(err.starts_with("said by the command\n") && out.contains("wall"), "{out}{err}");
    let [out, err] = of(&["--uarch", "zen4", &zen4_intervals()]);
    assert!(out.contains("zen4") && err.is_empty(), "{out}{err}");
    let pid = std::process::id().to_string();
    let [out, err] = of(&["-p", &pid, "--duration", "0.1"]);
    assert!(out.contains("wall") && !err.contains("wall"), "{out}{err}");
}
