//! Recordings that end early or lose records: signals, a killed recorder, full rings and disks.

use super::busy::{iterations, record, sampling, session, shell, task_clock};
use crate::profile::samples;
use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{Ran, TDTOOL, command, program};
use crate::support::wait::until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use profile::session::{has_samples, load, load_recording};
use std::fs;
use std::process::Stdio;

#[test]
fn a_killed_recorder_leaves_its_samples() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    let endless = ["--", "sh", "-c", "while :; do :; done"];
    let mut recorder = command(["record", "-o", text(&session)])
        .args(endless)
        .stderr(Stdio::null())
        .start_limited()
        .expect("tdtool starts");
    until(|| has_samples(&session).unwrap_or(false), || "no sample".to_owned());
    recorder.kill().expect("killed");
    recorder.wait().expect("ended");
    let recording = load_recording(&session).expect("readable");
    let pid = samples(&recording)[0].pid.expect("a process");
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("it still runs");
    let notes = recording.notes.join("\n");
    assert!(notes.contains("end"), "the missing end is reported: {notes}");
}

#[test]
fn what_was_recorded_before_a_signal_is_kept() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    for (signal, number, options) in [("-INT", 2, &[][..]), ("-TERM", 15, &["-q"])] {
        let folder = Folder::new();
        let session = session(&folder);
        // The recorder is the shell's parent; the signal it gets it hands on.
        let script = format!("{}; kill {signal} $PPID; while :; do :; done", iterations(100_000));
        let Ran { status, stderr, .. } = record(&session, options, &shell(&script));
        assert_eq!(status.code(), Some(128 + number), "{stderr}");
        assert_eq!(stderr.contains("note:  interrupted"), options.is_empty(), "{stderr}");
        let recording = load_recording(&session).expect("a recording");
        assert!(samples(&recording).len() > 10, "{stderr}");
        let end = load(&session).expect("a session").end.expect("an end");
        assert_eq!(end["interrupted"], number);
        assert!(recording.notes.iter().all(|n| !n.contains("stopped before")));
    }
}

#[test]
fn lost_records_are_counted_and_reported() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    // The recorder stops while its ring of 4 KiB takes some 70 samples, and many more come.
    let script = format!(
        "kill -STOP $PPID; {}; kill -CONT $PPID; {}",
        iterations(200_000),
        iterations(1000)
    );
    // Losses are what is left where nothing else is to be said.
    let options = ["-q", "--buffer", "4", "-F", "5000", "-e", "cpu-clock"];
    let Ran { status, stderr, .. } = record(&session, &options, &shell(&script));
    assert!(status.success(), "{stderr}");
    let is_loss = |line: &str| {
        line.contains("records lost") || line.contains("throttled") || line.starts_with("try:")
    };
    assert!(stderr.lines().all(is_loss), "{stderr}");
    let recording = load_recording(&session).expect("a recording");
    assert!(recording.lost > 100, "{} lost: {stderr}", recording.lost);
    assert!(stderr.contains("records lost") && stderr.contains("--buffer"), "{stderr}");
    let expected = task_clock(&session) * 5000.0;
    let all = (samples(&recording).len() as u64 + recording.lost) as f64;
    assert!((0.8..1.2).contains(&(all / expected)), "{all} of {expected}");
}

/// A file system of 512 KiB in a mount namespace of its own. Records come in chunks of half a ring:
/// a small one, so that several fit before the disk is full.
#[test]
fn a_disk_that_fills_up_keeps_what_was_written_and_the_command_goes_on() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let [small, done, kept] = ["small", "done", "s.tds"].map(|name| folder.file(name));
    fs::create_dir(&small).expect("a folder");
    let script = format!(
        "mount -t tmpfs -o size=512k none {small} || exit 99\n\
         {TDTOOL} record -e cpu-clock -F 20000 --buffer 64 -o {small}/s -- sh -c '{}; echo > {done}'\n\
         status=$?; cp {small}/s {kept}; exit $status",
        iterations(3_000_000)
    );
    let output = program("unshare").args(["-m", "sh", "-c", &script]).run_limited();
    let went_on = || fs::exists(&done).expect("known");
    let mounted = output.as_ref().is_ok_and(|o| o.status.code() != Some(99)) && went_on();
    need!(mounted, "no file system can be mounted here");
    let Ran { status, stderr, .. } = output.expect("unshare").into();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.matches("error:").count(), 1, "{stderr}");
    assert!(stderr.contains("No space left"), "{stderr}");
    assert!(went_on(), "the command went on");
    let recording = load_recording(&session(&folder)).expect("readable");
    assert!(samples(&recording).len() > 100, "{}", samples(&recording).len());
}
