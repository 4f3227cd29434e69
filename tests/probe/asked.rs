//! Requests that `tdtool count` cannot carry out are refused with a remedy; as much as is possible with a live
//! process is done.

use super::refused::Endless;
use super::symbol;
use crate::support::files::{Folder, text};
use crate::support::run::{Ran, ended, program, run, send, start, tdtool};
use crate::support::tools::{gcc, tool};
use nix::sys::signal::Signal;
use std::path::PathBuf;

/// A function that is called for ever with any argument, and once without.
const PROGRAM: &str = r#"
#include <stdio.h>
__attribute__((noipa)) long part(long n) {
    long s = 0;
    for (long i = 0; i < n; i++) { s += i ^ n; __asm__ volatile("" : "+r"(s)); }
    return s;
}
__attribute__((noipa)) long other(long n) { return n * 77; }
int main(int count, char **arguments) {
    do { if (part(1000) == 1) return 9; } while (count > 1);
    printf("done %ld\n", other(5));
    return 5;
}
"#;

fn build(folder: &Folder) -> Option<PathBuf> {
    gcc(folder.path(), PROGRAM, &["-O1"], "asked")
}

/// Whether tracing is permitted.
fn is_possible(ran: &Ran) -> bool {
    let is_refused = ran.stderr.contains("cannot trace");
    if is_refused {
        eprintln!("skipped: {}", ran.stderr);
    }
    !is_refused
}

/// Asserts the exit status, and that each of three lines has some text.
fn refuses(arguments: &[&str], status: i32, texts: &[&str]) {
    let ran = tdtool(arguments);
    assert_eq!(ran.code(), Some(status), "{arguments:?}: {}", ran.stderr);
    assert!(ran.stderr.starts_with("error:"), "{arguments:?}: {}", ran.stderr);
    for text in texts.iter().chain(&["\ntry: "]) {
        assert!(ran.stderr.contains(text), "{arguments:?}: {text}: {}", ran.stderr);
    }
}

#[test]
fn addresses_without_a_block_are_refused_with_what_is_near() {
    let folder = Folder::new();
    let Some(file) = build(&folder) else { return };
    let (part, other) = (symbol(&file, "part"), symbol(&file, "other"));
    let count = |at: u64, texts: &[&str]| {
        let values = format!("--values={at:#x}");
        refuses(&["count", "--functions", "part", &values, "--", text(&file)], 2, texts);
    };
    count(1, &["no counted function has the address 0x1", "the nearest is"]);
    count(other, &["its function other is not counted", "--functions other"]);
    // The first instruction (test, cmp) has several bytes.
    count(part + 1, &["no instruction of part begins", &format!("block begins at {part:#x}")]);
    let values = format!("--values={part:#x}");
    let ran = tdtool(["count", "--functions", "part", &values, "--", text(&file)]);
    assert!(!is_possible(&ran) || ran.code() == Some(5), "{}", ran.stderr);
}

#[test]
fn what_does_not_go_together_is_refused_with_what_does() {
    refuses(&["count", "--seconds", "2", "--", "true"], 2, &["`tdtool count -p PID --seconds N`"]);
    let remedy = "tdtool count --plain -- COMMAND";
    refuses(&["count", "--plain", "-p", "1"], 2, &["needs a command to run again", remedy]);
}

#[test]
fn a_command_that_cannot_be_started_is_so_called() {
    let folder = Folder::new();
    let path = folder.write("plain", "text");
    let place = text(folder.path());
    // Exit statuses are those of a shell (POSIX, "Exit Status for Commands").
    refuses(&["count", "--", "./nonexist"], 127, &["cannot start ./nonexist", "check the path"]);
    refuses(&["count", "--", "no-such-program-of-tdtool"], 127, &["in PATH"]);
    refuses(&["count", "--", place], 126, &["it is a directory"]);
    refuses(&["count", "--", &path], 126, &["chmod +x"]);
    run(program("chmod").args(["+x", &path])).succeeded();
    refuses(&["count", "--", &path], 1, &["it is not an ELF file", "--module FILE"]);
    // It ends before its first sample, unless the loader is sampled: CPUID is slow in virtual machines.
    let ran = tdtool(["count", "--hot", "--", "true"]);
    let is_known = ["before its first sample", "none of the hot functions", "cannot be sampled"];
    let is_refused = is_known.iter().any(|text| ran.stderr.contains(text));
    assert!(is_refused || ran.code() == Some(0), "{}", ran.stderr);
}

#[test]
fn a_process_that_waits_is_said_to_wait() {
    let sleeping = start(program("sleep").arg("100"));
    let pid = sleeping.id().to_string();
    let ran = tdtool(["count", "--seconds", "0.05", "-p", &pid]);
    let hot = tdtool(["count", "--hot", "--seconds", "0.05", "-p", &pid]);
    send(&sleeping, Signal::SIGKILL);
    ended(sleeping);
    assert!(hot.code() != Some(0), "{}", hot.stderr);
    if is_possible(&ran) {
        assert!(!ran.stdout.contains("         ?"), "{}", ran.stdout);
    }
}

#[test]
fn the_hot_functions_of_a_process_are_sampled_then_counted() {
    let folder = Folder::new();
    let Some(file) = build(&folder) else { return };
    let running = Endless::start(&file);
    let arguments =
        ["count", "--hot", "--seconds", "0.3", "--format", "json", "-p", &running.pid()];
    let ran = tdtool(arguments);
    if !is_possible(&ran) || ran.stderr.contains("hot functions are not known") {
        return;
    }
    let document = ran.json();
    assert_eq!(document["hot"]["functions"][0]["function"], "part", "{document}");
    let blocks = document["blocks"].as_array().unwrap();
    assert!(blocks.iter().any(|block| block["count"].as_u64() > Some(1000)), "{document}");
    let runs = document["cost"].as_array().unwrap().iter().map(|cost| cost["run"].clone());
    assert_eq!(runs.collect::<Vec<_>>(), ["samples", "counts"]);
}

#[test]
fn a_function_without_a_symbol_has_a_name_that_can_be_given_back() {
    let folder = Folder::new();
    let Some(file) = build(&folder) else { return };
    let part = symbol(&file, "part");
    let stripped = folder.path().join("bare");
    let Some(_) = tool("strip", &["-o", text(&stripped), text(&file)]) else { return };
    let name = format!("bare+{part:#x}");
    let place = format!("{}:{name}", text(&stripped));
    let listed = tdtool(["block", "--list", &place]).succeeded();
    assert!(listed.stdout.starts_with(&format!("{name}: ")), "{}", listed.stdout);
    let by_address = tdtool(["block", "--list", &format!("{}:{part:#x}", text(&stripped))]);
    assert_eq!(by_address.stdout, listed.stdout);
    let inside = format!("{}:bare+{:#x}", text(&stripped), part + 1);
    let refused = tdtool(["block", "--list", &inside]).stderr;
    assert!(refused.starts_with("error:"), "{refused}");
    let ran = tdtool(["count", "--functions", &name, "--format", "json", "--", text(&stripped)]);
    if is_possible(&ran) {
        assert_eq!(ran.json()["blocks"][0]["function"], *name);
    }
    let inside = format!("bare+{:#x}", part + 1);
    refuses(&["count", "--functions", &inside, "--", text(&stripped)], 1, &[&name]);
}

/// Addresses begin with 0x, so that a number is a name.
#[test]
fn a_number_is_the_name_of_a_function() {
    let folder = Folder::new();
    let Some(file) = build(&folder) else { return };
    let named = folder.path().join("named");
    let of = ["--redefine-sym", "part=12", text(&file), text(&named)];
    let Some(_) = tool("objcopy", &of) else { return };
    let texts = ["there is no function `7`", "an address begins with 0x", "--hot"];
    refuses(&["count", "--functions", "7", "--", text(&named)], 1, &texts);
    let ran = tdtool(["count", "--functions", "12", "--format", "json", "--", text(&named)]);
    if is_possible(&ran) {
        assert_eq!(ran.json()["blocks"][0]["function"], "12");
    }
}
