//! How the interactive screens begin and end: the terminal is as it was, the status that of the
//! command.

use super::DRAWN;
use crate::support::files::{Folder, zen4_intervals};
use crate::support::pty::Pty;
use crate::support::run::{TDTOOL, tdtool};
use crate::support::wait::until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::Path;

#[test]
fn the_terminal_is_given_back_on_signals() {
    for (signal, status) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129), (Signal::SIGINT, 130)] {
        let mut pty = Pty::start(&[&zen4_intervals()], &[]);
        pty.wait_for(DRAWN);
        assert!(pty.look(vt100::Screen::alternate_screen));
        pty.signal(signal);
        assert_eq!(pty.end().code(), Some(status), "{signal}");
        pty.assert_restored();
    }
}

#[test]
fn a_measured_command_is_ended_with_us_and_its_output_is_in_a_pane_and_printed_on_leaving() {
    for end in ["key", "signal"] {
        let script = "echo scribbled; echo scribbled >&2; sleep 61.5";
        let mut pty = Pty::start(&["--", "sh", "-c", script], &[]);
        pty.wait_for("interval 1");
        pty.wait_for("output of the command");
        let screen = pty.text();
        let pane = screen.lines().skip_while(|l| !l.contains("output of the command"));
        assert_eq!(pane.filter(|l| l.trim() == "scribbled").count(), 2, "{screen}");
        let children = format!("/proc/{0}/task/{0}/children", pty.pid());
        let before = fs::read_to_string(&children).unwrap_or_default();
        if end == "key" {
            pty.types("q");
            assert_eq!(pty.end().code(), Some(0));
        } else {
            pty.signal(Signal::SIGTERM);
            assert_eq!(pty.end().code(), Some(143));
        }
        pty.assert_restored();
        // What it printed last may still be on its way to the screen.
        let is_output = |line: &&str| line.trim() == "scribbled";
        pty.wait_until("output", |s| s.contents().lines().filter(is_output).count() == 2);
        for pid in before.split_whitespace() {
            let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(!state.contains("(sh)"), "the command still runs: {state}");
        }
    }
}

#[test]
fn the_commands_status_is_ours_when_it_has_ended() {
    let mut pty = Pty::start(&["--", "sh", "-c", "exit 7"], &[]);
    // With a PMU the tree; without one that the command was too short for samples, or the few that it had.
    let ends = ["wall", "No samples were taken", "estimate top-down without a PMU"];
    let is_over = |text: &str| ends.iter().any(|end| text.contains(end));
    pty.wait_until("end", |s| !s.contents().contains("measuring") && is_over(&s.contents()));
    pty.types("q");
    assert_eq!(pty.end().code(), Some(7));
    let mut pty = Pty::start(&["--", "./no-such-program"], &[]);
    pty.wait_for("cannot start ./no-such-program");
    pty.types("q");
    assert_eq!(pty.end().code(), Some(127));
}

#[test]
fn where_there_is_no_terminal_it_is_the_report() {
    let file = tdtool([zen4_intervals()]).succeeded();
    let report = tdtool(["report", &zen4_intervals()]);
    assert_eq!(file.stdout, report.stdout);
    assert_eq!(tdtool(["--", "sh", "-c", "exit 7"]).code(), Some(7));
    assert_eq!(tdtool([""; 0]).code(), Some(2), "nothing to report on is wrong usage");
}

#[test]
fn a_file_that_is_no_recording_is_an_error_and_not_an_empty_screen() {
    let folder = Folder::new();
    let mut pty = Pty::start(&[&folder.write("file", "hello\n")], &[]);
    pty.wait_for("error:");
    assert_eq!(pty.end().code(), Some(1));
    pty.assert_restored();
    assert!(pty.text().contains("no recorded counts found"), "{}", pty.text());
}

/// The only child of a process, once it has one.
fn child_of(pid: Pid) -> Pid {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let mut found = None;
    until(
        || {
            let text = fs::read_to_string(&children).unwrap_or_default();
            found = text.split_whitespace().next().and_then(|word| word.parse().ok());
            found.is_some()
        },
        || "the shell has no child".to_owned(),
    );
    Pid::from_raw(found.expect("it was found"))
}

fn is_stopped(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[test]
fn stopped_from_outside_or_by_a_key_it_comes_back_with_fg_raw_and_drawn() {
    need!(Path::new("/proc/self/task").exists(), "no /proc");
    for stop in [Some(Signal::SIGTSTP), Some(Signal::SIGSTOP), None] {
        let mut shell = Pty::shell();
        shell.wait_for("shell>");
        shell.types(&format!("{} {}\n", TDTOOL, zen4_intervals()));
        shell.wait_for(DRAWN);
        let program = child_of(shell.pid());
        match stop {
            Some(signal) => kill(program, signal).expect("sent"),
            None => shell.types("\x1a"),
        }
        until(|| is_stopped(program), || format!("{stop:?}: it does not stop"));
        if stop != Some(Signal::SIGSTOP) {
            shell.assert_restored();
        }
        // The shell's line settings, whichever they are, are not the program's.
        shell.types("stty sane; echo a$((1+1))b\n");
        shell.wait_for("a2b");
        shell.types("fg\n");
        shell.wait_until("the picture again", |screen| {
            screen.alternate_screen() && screen.contents().contains(DRAWN)
        });
        until(|| shell.is_raw(), || format!("{stop:?}: typed letters are shown"));
        shell.types("?");
        shell.wait_for("Keys of the tree");
        shell.types("qq");
        shell.assert_restored();
        // What is typed before it may be lost as the terminal is given back.
        shell.wait_until("the shell's prompt", |screen| {
            screen.contents().trim_end().ends_with("shell>")
        });
        shell.types("exit\n");
        shell.end();
    }
}

#[test]
fn it_stops_and_comes_back_as_other_programs_do() {
    let mut pty = Pty::start(&[&zen4_intervals()], &[]);
    pty.wait_for(DRAWN);
    pty.signal(Signal::SIGSTOP);
    pty.signal(Signal::SIGCONT);
    pty.types("?");
    pty.wait_for("Keys of the tree");
    pty.types("qq");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_restored();
}
