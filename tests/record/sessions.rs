//! `tdtool record` and the reports made of its sessions, a killed recording included.

use super::busy::{busy_command, record, sampling, session, shell, task_clock};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::{Ran, command, start, tdtool};
use crate::support::wait::until;
use profile::session::has_samples;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

fn report(session: &str) -> Value {
    tdtool(["report", "--format", "json", session]).json()
}

#[test]
fn a_session_shows_what_was_recorded() {
    let folder = Folder::new();
    let file = folder.file("s.tds");
    let recorded = tdtool(["record", "-o", &file, "--", "sh", "-c", "echo ours; exit 3"]);
    assert_eq!(recorded.code(), Some(3));
    assert_eq!(recorded.stdout, "ours\n");
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
    let folder = Folder::new();
    let file = folder.file("s.tds");
    let mut record = command(["record", "-I", "20", "-o", &file, "--", "cat"]);
    let mut recorder = start(record.stdin(Stdio::piped()));
    let chunks = || {
        let text = fs::read(&file).unwrap_or_default();
        text.windows(12).filter(|w| *w == b"\"task-clock\"").count()
    };
    until(|| chunks() >= 4, || "no four intervals".to_owned());
    recorder.kill().expect("killed");
    recorder.wait().expect("ended");
    let report = report(&file);
    assert!(report["software"]["wall_ms"].as_f64().is_some_and(|ms| ms >= 60.0), "{report}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("end"), "the missing end is reported: {notes}");
    let intervals = tdtool(["report", "--format", "json", "-I", "20", &file]);
    let lines = intervals.stdout.lines().count();
    assert!(lines >= 4, "{lines} intervals");
}

#[test]
fn a_command_that_does_not_start_leaves_the_old_session_alone() {
    let folder = Folder::new();
    let file = folder.file("s.tds");
    assert!(tdtool(["record", "-o", &file, "--", "true"]).status.success());
    let before = fs::read(&file).expect("the session");
    let failed = tdtool(["record", "-o", &file, "--", "./no-such-program"]);
    assert_eq!(failed.code(), Some(127));
    assert_eq!(fs::read(&file).expect("the session"), before);
    // A recording that works puts the old one aside, as perf does, and says so.
    let said = tdtool(["record", "-o", &file, "--", "true"]).succeeded().stderr;
    assert_eq!(fs::read(format!("{file}.old")).expect("the old session"), before);
    let note = format!("note:  the file that was {file} before is {file}.old now\n");
    assert!(said.contains(&note) && !failed.stderr.contains(".old"), "{said}");
}

#[test]
fn a_full_disk_is_reported() {
    need!(Path::new("/dev/full").exists(), "no /dev/full here");
    let full = tdtool(["record", "-o", "/dev/full", "--", "true"]);
    assert_eq!(full.code(), Some(1));
    assert!(full.stderr.contains("/dev/full"));
}

#[test]
fn a_report_that_fails_leaves_the_old_one_alone() {
    let folder = Folder::new();
    let file = folder.file("r.json");
    folder.write("r.json", "old");
    let failed = tdtool(["report", "-o", &file, "--", "./no-such-program"]);
    assert_eq!(failed.code(), Some(127));
    assert_eq!(folder.read("r.json"), "old");
}

#[test]
fn counting_alone_writes_no_samples() {
    let folder = Folder::new();
    let session = session(&folder);
    let Ran { status, stderr, .. } = record(&session, &["--no-samples"], &busy_command(1));
    assert!(status.success(), "{stderr}");
    assert!(!has_samples(&session).expect("a session"));
    assert!(task_clock(&session) > 0.0);
}

#[test]
fn a_session_cut_off_anywhere_is_a_marked_gap_or_one_clear_error() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let stderr = record(&session(&folder), &["-e", "cpu-clock"], &busy_command(1)).stderr;
    let whole = fs::read(session(&folder)).expect(&stderr);
    for part in [0, 10, 200, whole.len() / 3, whole.len() * 2 / 3, whole.len() - 1] {
        let cut = folder.write("cut.tds", &whole[..part]);
        let Ran { status, stdout: out, stderr: err } = tdtool(["report", &cut]);
        if status.success() {
            assert_eq!(out.matches("ends early").count(), 1, "{part}: {out}");
        } else {
            assert_eq!(status.code(), Some(1), "{part}: {err}");
            assert_eq!(err.matches("error:").count(), 1, "{part}: {err}");
            assert!(err.contains("try:"), "{part}: {err}");
        }
    }
}

#[test]
fn a_recording_without_a_single_sample_says_so() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    // A sample a second: true(1) is done long before.
    let stderr =
        record(&session(&folder), &["-e", "cpu-clock", "-F", "1"], &shell("exit 0")).stderr;
    need!(!has_samples(&session(&folder)).expect(&stderr), "the first sample came at once");
    let out = tdtool(["report", &folder.file("s.tds")]).stdout;
    assert!(!out.contains("Hot code"), "{out}");
}

/// Without a name each session gets one of its own, and is not replaced.
#[test]
fn sessions_without_a_name_are_all_kept() {
    let folder = Folder::new();
    for quiet in [&[][..], &["-q"]] {
        let mut record = command([&["record"], quiet, &["--", "true"]].concat());
        let ran = crate::support::run::run(record.current_dir(folder.path())).succeeded();
        let notes: Vec<&str> =
            ran.stderr.lines().filter(|line| line.starts_with("note:")).collect();
        let named = |line: &&&str| line.contains(" tdtool-20");
        assert_eq!(notes.iter().filter(named).count(), 1, "{}", ran.stderr);
        assert!(quiet.is_empty() || notes.len() == 1, "{}", ran.stderr);
    }
    let sessions = fs::read_dir(folder.path()).expect("a folder").flatten();
    let is_session = |name: &str| name.starts_with("tdtool-20") && name.ends_with(".tds");
    let names = sessions.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert_eq!(names.filter(|name| is_session(name)).count(), 2);
}
