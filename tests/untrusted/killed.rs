//! tdtool is killed: what a recorder leaves of the session, and what becomes of the measured command.

use crate::record::busy::sampling;
use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::command;
use crate::support::tools::gcc;
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
        .start_limited()
        .expect("tdtool starts");
    until(|| has_samples(&session).unwrap_or(false), || "no sample".to_owned());
    recorder.kill().expect("killed");
    recorder.wait().expect("ended");
    fs::write(&go, "").unwrap();
    until(|| fs::exists(&done).unwrap_or(false), || "the command did not go on".to_owned());
    assert_eq!(folder.read("done"), "7\n");
    let notes = load_recording(&session).expect("readable").notes.join("\n");
    assert!(notes.contains("end"), "{notes}");
}

/// Writes its number to `up`, works until there is a file `go`, and then writes `done`.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <unistd.h>
static long table[4096];
__attribute__((noipa)) long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += table[(3 * i) & 4095] ^ 0x1234;
    return sum;
}
__attribute__((noipa)) long never(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += table[(5 * i) & 4095] ^ 0x1234;
    return sum;
}
static void put(const char *name, long value) {
    FILE *file = fopen("part", "w");
    fprintf(file, "%ld\n", value);
    fclose(file);
    rename("part", name);
}
int main(int count, char **arguments) {
    long sum = count > 5 ? never(count) : 0;
    put("up", getpid());
    while (access("go", F_OK)) sum += work(100000);
    put("done", sum != 1);
}
"#;

/// As docs/reference/commands.md says: a command that is counted goes on, one that is captured ends.
#[test]
fn the_command_of_a_killed_measurement_has_the_documented_fate() {
    let _busy = busy();
    for (arguments, goes_on) in [
        (&["report", "--no-code", "--", "./program"][..], true),
        (&["report", "--interval", "50", "--", "./program"], true),
        (&["count", "--functions", "work", "--", "./program"], true),
        (&["block", "./program:never@0", "--", "x"], false),
    ] {
        let folder = Folder::new();
        let Some(_) = gcc(folder.path(), PROGRAM, &["-O1"], "program") else { return };
        let there = |name: &str| fs::exists(folder.path().join(name)).unwrap_or(false);
        let mut tool = command(arguments)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .start_limited()
            .expect("tdtool starts");
        let mut refused = false;
        until(
            || {
                refused = tool.try_wait().expect("a child").is_some();
                refused || there("up")
            },
            || format!("{arguments:?}: the command did not start"),
        );
        need!(!refused, format!("{arguments:?} cannot be measured here"));
        tool.kill().expect("killed");
        tool.wait().expect("ended");
        let process = folder.read("up").trim().to_owned();
        if !goes_on {
            let stat = || fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            // Gone, or a zombie that nobody waits for.
            let ended =
                || stat().rsplit(") ").next().is_none_or(|s| s.is_empty() || s.starts_with('Z'));
            until(ended, || format!("{arguments:?}: the command lives: {}", stat()));
        }
        fs::write(folder.path().join("go"), "").unwrap();
        if goes_on {
            until(|| there("done"), || format!("{arguments:?}: the command did not go on"));
        } else {
            assert!(!there("done"), "{arguments:?}");
        }
    }
}
