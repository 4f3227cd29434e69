//! Ctrl-C and SIGTERM while recordings are read, and before a command is counted: the end comes at once, is
//! said, and leaves nothing behind.

use crate::support::files::Folder;
use crate::support::run::{Ran, TDTOOL, command, ended, send, start, tdtool};
use crate::support::shown;
use crate::support::wait::until;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs;

/// Sends the signal as soon as tdtool catches it, and waits for its end.
fn interrupted(arguments: &[&str], signal: Signal) -> Ran {
    let mut child = start(&mut command(arguments));
    let status = format!("/proc/{}/status", child.id());
    // `SigCgt` of proc_pid_status(5): signal n is bit n - 1.
    let catches = || {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal as i32 - 1) & 1 == 1)
    };
    until(
        || catches() || child.try_wait().unwrap().is_some(),
        || "it catches no signal".to_owned(),
    );
    if child.try_wait().unwrap().is_none() {
        send(&child, signal);
        until(|| child.try_wait().unwrap().is_some(), || "it goes on".to_owned());
    }
    ended(child)
}

#[test]
fn a_signal_while_a_recording_is_read_ends_that_and_says_so() {
    let folder = Folder::new();
    let counts = folder.write("counts.txt", "1\n4005b0-4005c8:7\n1\n4005c8->4005dc:7\n");
    // It waits for a reader, which never comes.
    let pipe = folder.file("pipe");
    mkfifo(pipe.as_str(), Mode::S_IRWXU).unwrap();
    let asked = ["branches", &counts, "--binary", TDTOOL, "-o", &pipe];
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let ran = interrupted(&asked, signal);
        assert_eq!(ran.code(), Some(code), "{}", ran.stderr);
        assert!(ran.stderr.contains("error: interrupted"), "{}", ran.stderr);
        assert!(ran.stderr.contains("counts.txt"), "{}", ran.stderr);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
}

/// tdtool itself is so large that its analysis takes longer than the signal.
#[test]
fn a_signal_while_functions_are_analysed_ends_the_count() {
    let folder = Folder::new();
    let output = folder.file("counts.json");
    let long = [TDTOOL, "workload", "run", "dependent-adds", "--seconds", "1000"];
    let asked = ["count", "--format", "json", "-o", &output, "--"];
    let ran = interrupted(&[&asked[..], &long].concat(), Signal::SIGTERM);
    need!(ran.code() != Some(1), ran.stderr);
    assert_eq!(ran.code(), Some(143), "{}", ran.stderr);
    let document: serde_json::Value = serde_json::from_str(&folder.read("counts.json")).unwrap();
    assert_eq!(document["interrupted"], 15);
    assert!(document["notes"].to_string().contains("interrupted"), "{document:#}");
}

/// Ctrl-C twice, as `timeout` sends it, too: the command ignores the first and is ended by the second.
#[test]
fn a_second_signal_is_not_noted_again() {
    let folder = Folder::new();
    let session = folder.file("a.session");
    let script = "trap '' INT; kill -INT $PPID; sleep 0.3; kill -INT $PPID; exec sleep 5";
    for asked in [&["report", "--no-code"][..], &["record", "--no-samples", "-o", &session]] {
        let ran = tdtool(asked.iter().chain(&["--", "sh", "-c", script]));
        assert_eq!(ran.code(), Some(130), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("note:  interrupted").count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn a_recording_that_is_not_there_is_named_with_how_to_make_it() {
    let folder = Folder::new();
    folder.write("perf.data", "");
    let absent = folder.file("perf.dat");
    let asked = [&["branches", &absent][..], &["loads", &absent], &["prefetch", &absent]];
    assert_shown!("no_such_recording", shown::each(&asked, &folder));
}
