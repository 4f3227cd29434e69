//! `tdtool block` as a process: arguments and standard input in, output out.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// The program with `args`, not yet started.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tdtool"));
    command.arg("block").args(args);
    command
}

/// Runs it with `input` on standard input.
pub fn run(args: &[&str], input: &[u8]) -> Output {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether blocks can be run here at all; says so if not.
pub fn sandbox() -> bool {
    let output = run(&["90", "--quick", "--budget", "1"], b"");
    let there = output.status.code() == Some(0);
    if !there {
        eprintln!("skipped: no sandbox here: {}", stderr(&output));
    }
    there
}

/// The JSON document of a quick measurement.
pub fn json(args: &[&str], input: &[u8]) -> serde_json::Value {
    let quick = ["--quick", "--budget", "50", "--format", "json"];
    let output = run(&[args, &quick].concat(), input);
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", stderr(&output)))
}

/// The block's bytes in a document.
pub fn hex(document: &serde_json::Value) -> &str {
    document["block"]["hex"].as_str().unwrap()
}
