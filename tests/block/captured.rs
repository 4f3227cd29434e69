//! `tdtool block PROGRAM:FUNCTION -- ARGS`: the values of the running program.

mod long;
mod memory;
mod several_blocks;

use super::{block, command, json, sandbox};
use crate::probe::line;
use crate::probe::programs::{LOOP, program};
use crate::support::files::{Folder, text};
use crate::support::run::{Ran, ended, send, start, tdtool};
use crate::support::tools::gcc;
use crate::support::wait::until;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::Path;

/// Number 1, 2, 6, 7, 8 in encodings: rcx, rdx, rsi, rdi, r8.
fn registers(document: &Value) -> Vec<u64> {
    let all = &document["values"]["registers"];
    [1, 2, 6, 7, 8].iter().map(|number| all[number].as_u64().unwrap()).collect()
}

/// What it printed; `None` where this machine lets no process be traced.
fn traced(ran: Ran) -> Option<Ran> {
    if ran.stderr.contains("cannot trace") {
        eprintln!("skipped: {}", ran.stderr);
        return None;
    }
    Some(ran)
}

fn notes(document: &Value) -> String {
    document["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
fn a_block_starts_with_the_registers_of_its_running_program() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let Some(_busy) = sandbox() else { return };
    let (account, saved) = (folder.file("account"), folder.file("values.json"));
    // The first block of the loop: the load and the branch that follows the lowest bit.
    let place = format!("{}:sums+1", text(&program));
    // Call 3 begins after 10 + 11 + 12 entries, and has 13 trips.
    let values = ["--entry", "34", "--save-values", &saved, "--", &account, "9", "noise"];
    let (options, arguments) = values.split_at(4);
    let quick = ["--quick", "--budget", "3000", "--format", "json"];
    let asked = [&[&*place][..], &quick, options, arguments].concat();
    let Some(captured) = traced(block(&asked)) else { return };
    // The program's own output does not mix with the document.
    assert!(captured.stderr.contains("noise"), "{}", captured.stderr);
    let Some(captured) = as_loop(&asked) else { return };
    let [a, trips, b] = line(&account, 3)[..] else { panic!("three numbers") };
    let expected = registers(&captured);
    assert_eq!((expected[0], &expected[2..]), (0, &[trips, a, b][..]), "{captured}");
    let notes = notes(&captured);
    assert!(notes.contains("entry 34 "), "{notes}");
    assert!(notes.contains("13 more trips") && notes.contains("2 pages"), "{notes}");
    // The loop of several blocks ran as in the program, its memory and branches included.
    assert!(notes.contains("13 iterations"), "{notes}");
    // Without the program: the same from the file, also for the dependency analysis.
    let again = json(&[&place, "--registers", &saved]);
    assert_eq!(registers(&again), expected);
    let deps = tdtool(["deps", &place, "--registers", &saved]);
    assert!(deps.status.success(), "{}", deps.stderr);
    folder.write("values.json", r#"{"schema":"tdtool.block/2"}"#);
    let wrong = block([&*place, "--registers", &saved]);
    assert_eq!(wrong.code(), Some(1), "{}", wrong.stderr);
}

#[test]
fn what_cannot_be_captured_is_an_error_with_its_remedy() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let options = ["-shared", "-fPIC"];
    let Some(library) = gcc(folder.path(), LOOP, &options, "libsums.so") else { return };
    let (own, loaded) = (format!("{}:sums", text(&program)), format!("{}:sums", text(&library)));
    let account = folder.file("account");
    for (arguments, code, word) in [
        (&["90", "--", "x"][..], 2, "PROGRAM:FUNCTION -- ARGS"),
        (&[&*loaded, "--entry", "1"], 2, "-- COMMAND"),
        (&["--asm", "nop", "--", "x"], 2, "cannot be used with"),
        (&[&*own, "--entry", "0"], 2, "--entry"),
        (&[&*own, "--", &*account, "0"], 1, "never entered"),
        (&[&*loaded, "--", "true"], 1, "not mapped"),
        (&[&*loaded, "--", "/nowhere/x"], 127, "cannot start"),
    ] {
        let Some(output) = traced(block(arguments)) else { return };
        assert_eq!(output.code(), Some(code), "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(word), "{arguments:?}: {}", output.stderr);
    }
}

/// Runs a program of `source` and measures loop 0 of its function `f` with the values it has there; `None`
/// where that is not possible here.
fn measured(source: &str, folder: &Folder) -> Option<Value> {
    let program = gcc(folder.path(), source, &["-O1"], "program")?;
    let place = format!("{}:f@0", text(&program));
    let options = ["--quick", "--budget", "50", "--format", "json", "--", "x"];
    as_loop(&[&[&*place][..], &options].concat())
}

/// So often is asked again: a neighbour may spoil all samples of an execution.
const ATTEMPTS: usize = 4;

/// What `tdtool block` says, asked again where an execution was not measured as the loop that it is; `None` where this
/// machine lets no process be traced.
fn as_loop(asked: &[&str]) -> Option<Value> {
    let mut captured = traced(block(asked))?.json();
    for _ in 1..ATTEMPTS {
        let notes = notes(&captured);
        let spoilt = ["its own loop was not run", "executions not measured"];
        if captured["status"] != "failed" && !spoilt.iter().any(|text| notes.contains(text)) {
            break;
        }
        captured = traced(block(asked))?.json();
    }
    Some(captured)
}

/// Main: calls a function 300 times with 2,000 numbers.
const CALLS: &str = r#"
long f(long *first, long *end);
static long a[2000];
int main(void) {
    long sum = 0;
    for (long i = 0; i < 2000; i++) a[i] = 3 * i;
    for (int c = 0; c < 300; c++) sum += f(a, a + 2000);
    return sum == 1;
}
"#;

/// A program that says its process id and waits, stopped or not.
const WAITING: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(int count, char **arguments) {
    FILE *out = fopen(arguments[1], "w");
    fprintf(out, "%d\n", getpid());
    fclose(out);
    for (;;) pause();
}
void sums(void) {}
"#;

#[test]
fn nothing_is_left_of_the_program_when_tdtool_is_ended() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), WAITING, &["-O1"], "waiting") else { return };
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let account = folder.write("account", "");
        let child = start(&mut command([&*format!("{}:sums", text(&program)), "--", &account]));
        let mut pid = String::new();
        until(
            || {
                pid = folder.read("account").trim().to_owned();
                !pid.is_empty() || std::fs::metadata(format!("/proc/{}/exe", child.id())).is_err()
            },
            || "the program did not start".to_owned(),
        );
        send(&child, signal);
        let ended = ended(child);
        assert_ne!(ended.code(), Some(0));
        if pid.is_empty() {
            eprintln!("skipped: {}", ended.stderr);
            return;
        }
        // A zombie has no command line, and is gone once it is waited for.
        let line = format!("/proc/{pid}/cmdline");
        let gone =
            || !Path::new(&line).exists() || std::fs::read(&line).is_ok_and(|l| l.is_empty());
        until(gone, || format!("{pid} is still there"));
    }
}
