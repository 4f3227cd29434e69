//! Facts that are measured on this machine: a report of all of them, and a table that the program reads back. What the
//! numbers are is this machine's business, and whether they are open that of whoever else uses it.

use crate::block::{quiet_sandbox, sandbox};
use crate::support::files::{Folder, text};
use crate::support::run::{command, run, tdtool};

/// The facts that docs/method/core-facts.md lists.
const FACTS: [&str; 15] = [
    "width",
    "loads",
    "stores",
    "l1_size",
    "l1_latency",
    "l2_size",
    "l2_latency",
    "l3_size",
    "l3_latency",
    "memory_latency",
    "forwarding",
    "misprediction",
    "op_cache",
    "decoded",
    "reorder_buffer",
];

#[test]
fn every_fact_is_known_with_its_error_or_open_with_its_reason_and_is_kept() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let cache = Folder::new();
    let doctor = |arguments: &[&str]| {
        let mut doctor = command([&["doctor", "--format", "json"], arguments].concat());
        run(doctor.env("XDG_CACHE_HOME", cache.path())).succeeded().json()
    };
    assert_eq!(doctor(&[])["measured"].as_array().unwrap().len(), 0, "nothing was measured yet");
    let measured = doctor(&["--measure"])["measured"].clone();
    let rows = measured.as_array().unwrap();
    let kinds: Vec<&str> = rows.iter().map(|row| row["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, FACTS);
    for row in rows {
        match row["value"].as_f64() {
            Some(value) => {
                assert!(value > 0.0 && row["error"].as_f64().unwrap() >= 0.0, "{row}");
                assert!(!row["how"].as_str().unwrap().is_empty(), "{row}");
            }
            None => assert!(!row["open"].is_null(), "{row}"),
        }
    }
    assert_eq!(doctor(&[])["measured"], measured, "the next process knows what was kept");
}

#[test]
fn a_table_of_measured_facts_is_one_that_the_program_reads() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let folder = Folder::new();
    let mut doctor = command(["--no-table", "doctor", "--toml", "nova"]);
    let made = run(doctor.env("XDG_CACHE_HOME", folder.path()));
    if made.code() != Some(0) {
        // Its width is open, and it says how to go on.
        assert!(made.stderr.contains("--measure"), "{}", made.stderr);
        return;
    }
    let tables = Folder::new();
    tables.write("nova.toml", &made.stdout);
    let checked = tdtool(["tables", "check", "nova", "--tables", text(tables.path())]);
    assert!(checked.succeeded().stdout.contains("nova"));
    let block =
        ["block", "--quick", "--asm", "add rax, rbx", "--uarch", "nova", "--format", "json"];
    let mut block = command([&block[..], &["--tables", text(tables.path())]].concat());
    // The same self-test.
    let block = run(block.env("XDG_CACHE_HOME", folder.path())).json();
    assert_eq!(block["machine"]["facts"]["issue_width"], "table", "{block}");
    assert!(tdtool(["doctor", "--toml", "../nova"]).code() != Some(0), "no name of a table");
}

#[test]
fn a_block_without_any_table_says_which_facts_were_measured_and_which_are_unknown() {
    let Some(_sandbox) = sandbox() else { return };
    let cache = Folder::new();
    let mut block =
        command(["--no-table", "block", "--quick", "--asm", "add rax, rbx", "--format", "json"]);
    let block = run(block.env("XDG_CACHE_HOME", cache.path())).json();
    assert!(block["machine"]["table"].is_null());
    let facts = &block["machine"]["facts"];
    assert!(["measured", "unknown"].contains(&facts["issue_width"].as_str().unwrap()), "{facts}");
    assert_eq!(facts["reorder_buffer"], "unknown");
    assert_eq!(facts["ports"], "unknown");
}
