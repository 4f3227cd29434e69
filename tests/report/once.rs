//! Estimates of commands that another run finds otherwise: their input is read, their files are gone, or they serve
//! others and do not end.

use super::{compiled, report};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::send;
use crate::support::run::{Ran, command, ended, program, start, tdtool_reading};
use crate::support::wait::until;
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::Duration;

/// A loop of as many iterations as a text has, which is on standard input, or in a file that is removed then; or one
/// without an end, of a process that writes its number to a file, or of its child.
const ONCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) static unsigned long dependent(unsigned long x, long rounds) {
    for (long i = 0; i < rounds; i++) x = (x + i) ^ (x >> 3);
    return x;
}
static int serve(const char *path) {
    FILE *file = fopen(path, "a");
    fprintf(file, "%d\n", getpid());
    fclose(file);
    for (;;) if (dependent(2, 1000000) == 1) return 1;
}
int main(int count, char **arguments) {
    char text[64] = "";
    const char *how = arguments[1], *path = arguments[2];
    if (!strcmp(how, "serve")) return serve(path);
    if (!strcmp(how, "child")) {
        if (!fork()) return serve(path);
        return wait(0) == 1;
    }
    FILE *file = !strcmp(how, "file") ? fopen(path, "r") : stdin;
    if (!file || !fgets(text, sizeof text, file)) return 3;
    if (file != stdin) unlink(path);
    return dependent(count, atol(text)) == 1;
}
"#;
const ROUNDS: &str = "400000000\n";

/// The loop has the iterations that the input asks for, in the run that counted, too.
fn has_read_all(ran: Ran) {
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    need!(document["source"] == "no_pmu", "this machine has a PMU");
    let estimate = &document["estimate"];
    let rows = estimate["loops"].as_array().expect("rows");
    let hot = rows.iter().find(|row| row["name"] == "dependent");
    let entries = hot.and_then(|row| row["entries"].as_f64());
    assert_eq!(entries, ROUNDS.trim().parse().ok(), "{estimate:#}");
}

#[test]
fn each_run_of_a_command_reads_the_same_input() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, ONCE, &[]) else { return };
    let asked = ["report", "--estimate", "--format", "json", "--", &work, "input"];
    has_read_all(tdtool_reading(asked, ROUNDS.as_bytes()));
    // Of a file the rest, as a shell leaves it.
    let path = folder.write("input", format!("read before\n{ROUNDS}"));
    let mut file = File::open(path).expect("a file");
    file.seek(SeekFrom::Start(12)).expect("moved");
    has_read_all(ended(start(command(asked).stdin(file))));
}

#[test]
fn a_command_that_does_other_work_again_is_not_estimated_from_that() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, ONCE, &[]) else { return };
    let input = folder.write("input", ROUNDS);
    let ran = report(&["--estimate", "--format", "json", "--", &work, "file", &input]);
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    need!(document["source"] == "no_pmu", "this machine has a PMU");
    let estimate = &document["estimate"];
    assert_eq!(estimate["covered"], 0.0, "{estimate:#}");
    assert_eq!(estimate["program"]["bottleneck"], "undecided", "{estimate:#}");
    let next = &document["conclusion"]["next"][0]["command"];
    let once = format!("tdtool report --estimate --duration 1 -- {work} file {input}");
    assert_eq!(*next, once, "{document:#}");
}

#[test]
fn with_a_duration_a_command_is_estimated_in_one_run_and_ended() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, ONCE, &[]) else { return };
    let started = folder.file("started");
    let asked = ["--estimate", "--duration", "1", "--format", "json", "--"];
    let ran = report(&[&asked[..], &[&work, "serve", &started]].concat());
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    need!(document["source"] == "no_pmu", "this machine has a PMU");
    let pids = folder.read("started");
    assert_eq!(pids.lines().count(), 1, "it was started once: {pids}");
    assert!(!Path::new(&format!("/proc/{}", pids.trim())).exists(), "it was ended");
    assert_eq!(document["command"][0], *work, "{document:#}");
    need!(document["estimate"]["covered"].as_f64().is_some_and(|of| of > 0.5), "too few samples");
    let hot = &document["estimate"]["functions"][0];
    assert_eq!(hot["name"], "dependent", "{hot:#}");
    assert_ne!(hot["parts"]["retiring"]["value"], 0.0, "{hot:#}");
}

/// As a server's first process, which only starts others.
#[test]
fn of_a_process_that_waits_the_child_that_works_is_named() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, ONCE, &[]) else { return };
    let started = folder.file("started");
    let mut parent = start(program(&work).args(["child", &started]));
    while !Path::new(&started).exists() && parent.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let ran = report(&["--estimate", "--format", "json", "-p", &parent.id().to_string()]);
    need!(ran.code() == Some(0), ran.stderr);
    let notes = ran.json()["notes"].to_string();
    let child = format!("-p {}", folder.read("started").trim());
    assert!(notes.contains(&child), "{child}: {notes}");
}

/// Whenever it comes, also between sampling and counting.
#[test]
fn a_signal_ends_the_command_of_one_run_too() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, ONCE, &[]) else { return };
    for delay in [0, 350, 500, 800] {
        let started = folder.file(&format!("started-{delay}"));
        let asked = ["report", "--estimate", "--duration", "0.3", "--", &work, "serve", &started];
        let mut tool = start(&mut command(asked));
        let serves = || std::fs::read_to_string(&started).is_ok_and(|pid| pid.ends_with('\n'));
        until(
            || serves() || tool.try_wait().unwrap().is_some(),
            || "the command does not start".to_owned(),
        );
        std::thread::sleep(Duration::from_millis(delay));
        if tool.try_wait().unwrap().is_none() {
            send(&tool, Signal::SIGTERM);
        }
        let ran = ended(tool);
        let pid = std::fs::read_to_string(&started).unwrap_or_default();
        need!(!pid.is_empty(), ran.stderr);
        assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "{delay} ms: it goes on");
        let is_ended = ran.code() == Some(143) || ran.status.signal().is_some();
        assert!(is_ended || ran.code() == Some(0), "{delay} ms: {:?} {}", ran.code(), ran.stderr);
        assert!(ran.stderr.contains("serve"), "{delay} ms: its report is missing: {}", ran.stderr);
    }
}

#[test]
fn a_command_that_ends_before_its_duration_is_said_to() {
    let _busy = busy();
    for command in [&["true"][..], &["sleep", "0.2"]] {
        let ran = report(&[&["--estimate", "--duration", "60", "--"], command].concat());
        assert!(ran.stderr.contains("ended"), "{}", ran.stderr);
        assert!(ran.stderr.contains("without --duration"), "{}", ran.stderr);
    }
}
