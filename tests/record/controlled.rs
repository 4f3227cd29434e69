//! A control pipe that the recorded program itself writes to.

use super::busy::{iterations, record, sampling, session, shell};
use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{program, tdtool};
use crate::support::shown;

fn pipe(folder: &Folder, name: &str) -> String {
    let path = folder.file(name);
    assert!(program("mkfifo").arg(&path).end_limited().expect("mkfifo").success());
    path
}

/// Three programs of different names; counting is on for the second one. The shell goes on when that is acknowledged.
#[test]
fn only_what_runs_between_enable_and_disable_is_sampled() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let (control, ack) = (pipe(&folder, "ctl"), pipe(&folder, "ack"));
    let shell_path = std::fs::canonicalize("/bin/sh").expect("a shell");
    for name in ["before", "inside", "after"] {
        std::fs::copy(&shell_path, folder.file(name)).expect("copied");
    }
    let work = iterations(300_000);
    let run = |name: &str| format!("'{}' -c '{work}'", folder.file(name));
    let tell =
        |word: &str| format!("echo {word} > '{control}'; read answer < '{ack}'; echo $answer");
    let script = [run("before"), tell("enable"), run("inside"), tell("disable"), run("after")];
    let session = session(&folder);
    let option = format!("fifo:{control},{ack}");
    let recorded =
        record(&session, &["-g", "--control", &option], &shell(&script.join("; "))).succeeded();
    assert_eq!(recorded.stdout, "ack\nack\n");
    let folded = tdtool(["report", text(&session), "--folded", "-"]).succeeded().stdout;
    let of = |name: &str| folded.lines().filter(|line| line.starts_with(name)).count();
    assert!(of("inside;") > 0 && of("before;") + of("after;") == 0, "{folded}");
    let shown = tdtool(["report", text(&session)]).succeeded().stdout;
    assert!(shown.contains("enabled 1 time"), "{shown}");
}

#[test]
fn what_is_no_pipe_or_cannot_be_run_once_is_refused() {
    let folder = Folder::new();
    let (file, control) = (folder.write("file", ""), pipe(&folder, "ctl"));
    let asked = [
        &["report", "--control", &file, "--", "true"][..],
        &["report", "--control", &control, "--estimate", "--", "true"],
        &["report", "--control", "fd:x", "--", "true"],
    ];
    assert_shown!("control_refused", shown::each(&asked, &folder));
}
