//! `tdtool record` and the reports made of its sessions, a killed recording included.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn tdtool(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tdtool")).args(args).output().expect("tdtool starts")
}

fn report(session: &str) -> Value {
    let output = tdtool(&["report", "--format", "json", session]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {error}"))
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn a_session_shows_what_was_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path(folder.path(), "s.tds");
    let recorded = tdtool(&["record", "-o", &file, "--", "sh", "-c", "echo ours; exit 3"]);
    assert_eq!(recorded.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&recorded.stdout), "ours\n");
    let report = report(&file);
    assert_eq!(report["source"], "session");
    assert_eq!(report["command"][0], "sh");
    for name in ["wall_ms", "task_clock_ms", "page_faults"] {
        assert!(report["software"][name].as_f64().is_some_and(|v| v > 0.0), "{name}: {report}");
    }
}

/// The session grows with every interval; when a few are in it, the recorder is killed.
#[test]
fn a_killed_recording_keeps_its_whole_intervals() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path(folder.path(), "s.tds");
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_tdtool"))
        .args(["record", "-I", "20", "-o", &file, "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("tdtool starts");
    let chunks = || {
        let text = std::fs::read(&file).unwrap_or_default();
        text.windows(12).filter(|w| *w == b"\"task-clock\"").count()
    };
    while chunks() < 4 {
        std::thread::yield_now();
    }
    recorder.kill().expect("killed");
    recorder.wait().expect("ended");
    let report = report(&file);
    assert!(report["software"]["wall_ms"].as_f64().is_some_and(|ms| ms >= 60.0), "{report}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("end"), "the missing end is told: {notes}");
    let intervals = tdtool(&["report", "--format", "json", "-I", "20", &file]);
    let lines = String::from_utf8_lossy(&intervals.stdout).lines().count();
    assert!(lines >= 4, "{lines} intervals");
}

#[test]
fn a_command_that_does_not_start_leaves_the_old_session_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path(folder.path(), "s.tds");
    assert!(tdtool(&["record", "-o", &file, "--", "true"]).status.success());
    let before = std::fs::read(&file).expect("the session");
    let failed = tdtool(&["record", "-o", &file, "--", "./no-such-program"]);
    assert_eq!(failed.status.code(), Some(127));
    assert_eq!(std::fs::read(&file).expect("the session"), before);
    // A recording that works puts the old one aside, as perf does.
    assert!(tdtool(&["record", "-o", &file, "--", "true"]).status.success());
    assert_eq!(std::fs::read(format!("{file}.old")).expect("the old session"), before);
}

#[test]
fn a_full_disk_is_told() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: no /dev/full here");
        return;
    }
    let full = tdtool(&["record", "-o", "/dev/full", "--", "true"]);
    assert_eq!(full.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&full.stderr).contains("/dev/full"));
}

#[test]
fn a_report_that_fails_leaves_the_old_one_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path(folder.path(), "r.json");
    std::fs::write(&file, "old").expect("written");
    let failed = tdtool(&["report", "-o", &file, "--", "./no-such-program"]);
    assert_eq!(failed.status.code(), Some(127));
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "old");
}
