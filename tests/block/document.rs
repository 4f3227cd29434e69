//! The JSON document of a block: its keys, whatever became of the block.

use super::{block, json, sandbox};
use serde_json::Value;

#[test]
fn what_must_not_run_is_rejected_with_its_reason_and_status_1() {
    for (hex, word) in [("0f05", "kernel"), ("0f01d9", "hypervisor"), ("c3", "leave")] {
        let output = block([hex]);
        assert_eq!(output.code(), Some(1), "{hex}");
        let text = &output.stdout;
        assert!(text.starts_with("rejected:") && text.contains(word), "{text}");
    }
    let output = block(["48zz"]);
    assert_eq!(output.code(), Some(1));
    assert!(output.stderr.contains("try:"));
}

#[test]
fn the_json_document_has_what_its_schema_promises() {
    let Some(_busy) = sandbox() else { return };
    let json = json(&["4801d8"]);
    assert_eq!(json["schema"], "tdtool.block/2");
    assert_eq!(json["block"]["hex"], "4801d8");
    assert_eq!(json["block"]["instructions"][0]["text"], "add rax,rbx");
    for key in
        ["status", "reason", "throughput", "forms", "assumptions", "bounds", "hierarchy", "samples"]
    {
        assert!(json.get(key).is_some(), "{key}");
    }
    let verdicts = ["held", "violated", "unchecked"];
    for assumption in json["assumptions"].as_array().unwrap() {
        assert!(verdicts.contains(&assumption["verdict"].as_str().unwrap()), "{assumption}");
    }
}

/// The document of a measurement that is not `--quick`.
fn whole(arguments: &[&str]) -> Value {
    block([arguments, &["--budget", "300", "--format", "json"]].concat()).json()
}

/// Keys that every document has, with what they hold.
fn check_common(json: &Value) {
    assert_eq!(json["schema"], "tdtool.block/2");
    assert!(json["block"]["hex"].is_string());
    assert!(json["block"]["instructions"].is_array());
    assert!(["ok", "unstable", "failed", "rejected"].contains(&json["status"].as_str().unwrap()));
    for key in ["reason", "throughput", "forms"] {
        assert!(json.get(key).is_some(), "{key}");
    }
    for key in ["assumptions", "bounds"] {
        assert!(json[key].is_array(), "{key}");
    }
    assert!(json["samples"].is_object());
    assert!(json["hierarchy"]["verdict"].is_string());
    for node in json["hierarchy"]["nodes"].as_array().unwrap() {
        assert!(node["id"].is_string());
        assert!(node["share"].is_number() || node["reason"].is_string(), "{node}");
    }
}

#[test]
fn the_document_of_a_measured_block_has_the_keys_of_its_schema() {
    let Some(_busy) = sandbox() else { return };
    let mut tried = (0..10).map(|_| whole(&["480fafc3"]));
    let Some(json) = tried.find(|json| json["throughput"].is_object()) else {
        eprintln!("skipped: contention");
        return;
    };
    check_common(&json);
    for key in ["cycles", "low", "high"] {
        assert!(json["throughput"][key].is_number(), "{key}");
    }
    assert!(json["throughput"]["modes"][0]["cycles"].is_number());
    assert!(json["throughput"]["clock"].is_string());
    for form in ["unrolled", "loop"] {
        assert!(json["forms"][form].is_object(), "{form}");
    }
    let assumptions = json["assumptions"].as_array().unwrap();
    let mut names: Vec<_> = assumptions.iter().map(|i| i["name"].as_str().unwrap()).collect();
    for assumption in assumptions {
        let verdict = assumption["verdict"].as_str().unwrap();
        assert!(["held", "violated", "unchecked"].contains(&verdict), "{assumption}");
        assert!(!assumption["how"].as_str().unwrap().is_empty(), "{assumption}");
    }
    // Exactly those that the documentation lists.
    let docs = include_str!("../../docs/method/blocks.md");
    let section = docs.split("## The assumptions").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("`: "));
    let mut listed: Vec<_> = rows.flat_map(|(names, _)| names.split("`, `")).collect();
    // Two need what not every machine has: a PMU, a software event that may be opened.
    listed.retain(|name| {
        names.contains(name) || !["instruction-count", "page-faults"].contains(name)
    });
    names.sort_unstable();
    listed.sort_unstable();
    assert_eq!(names, listed);
    for bound in json["bounds"].as_array().unwrap() {
        for key in ["cycles", "low", "high"] {
            assert!(bound[key].is_number(), "{key}");
        }
        assert!(bound["name"].is_string() && bound["how"].is_string());
    }
}

#[test]
fn the_documents_of_blocks_that_do_not_run_have_the_same_keys() {
    let rejected = whole(&["0f05"]);
    check_common(&rejected);
    assert_eq!(rejected["status"], "rejected");
    assert!(rejected["reason"].is_string() && rejected["throughput"].is_null());
    let Some(_busy) = sandbox() else { return };
    // mov rax,-1; mov rax,[rax]: an address of the kernel's half, which no values change
    let failed = whole(&["48c7c0ffffffff 488b00"]);
    check_common(&failed);
    assert_eq!(failed["status"], "failed");
    assert!(failed["reason"].is_string() && failed["throughput"].is_null());
    assert_eq!(failed["where"]["instruction"], 1);
    assert_eq!(failed["where"]["copy"], 0);
    assert_eq!(failed["where"]["address"], "0xffffffffffffffff");
}
