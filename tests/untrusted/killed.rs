//! A recorder that is killed: what it leaves of the session, and what becomes of the command.

use crate::record::busy::sampling;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::command;
use crate::support::wait::until;
use profile::session::{has_samples, load_recording};
use std::fs;
use std::process::Stdio;

/// As docs/reference/session.md says: the command goes on, to its end.
#[test]
fn the_command_of_a_killed_recorder_goes_on() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let (session, go, done) = (folder.path().join("s.tds"), folder.file("go"), folder.file("done"));
    let script =
        format!("while [ ! -e {go} ]; do :; done; echo 7 > {done}.part; mv {done}.part {done}");
    let mut recorder = command(["record", "-o", text(&session), "--", "sh", "-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .expect("tdtool starts");
    until(|| has_samples(&session).unwrap_or(false), || "no sample".to_owned());
    recorder.kill().expect("killed");
    recorder.wait().expect("ended");
    fs::write(&go, "").unwrap();
    until(|| fs::exists(&done).unwrap_or(false), || "the command did not go on".to_owned());
    assert_eq!(folder.read("done"), "7\n");
    let notes = load_recording(&session).expect("readable").notes.join("\n");
    assert!(notes.contains("stopped before its end"), "{notes}");
}
