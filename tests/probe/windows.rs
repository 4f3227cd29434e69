//! Windows of live processes that make it hard to begin, to end, or to leave nothing behind.

use super::attached::{Live, counted, is_restored};
use super::attached_programs::THREADS;
use super::counts::with_signals;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{command, ended, program, send, start};
use crate::support::tools::gcc;
use crate::support::wait::until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use probe::count::{Counts, Unprobed, Wanted, count_process};
use probe::facts::functions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A child of vfork(2) for the first byte of input, which ends with the second. Another thread computes.
const VFORK: &str = r#"
static void *starts(void *none) {
    char byte;
    int status;
    if (read(0, &byte, 1) != 1) return 0;
    pid_t child = vfork();
    if (!child) {
        if (read(0, &byte, 1) != 1) _exit(8);
        _exit(7);
    }
    while (waitpid(child, &status, 0) != child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) wrong++;
    return 0;
}
int main(void) {
    pthread_t thread;
    signal(SIGTERM, end);
    pthread_create(&thread, 0, starts, 0);
    unsigned long first = both(3);
    while (!over) check(3, first);
    pthread_join(thread, 0);
    return done();
}
"#;

/// One child of vfork(2) after another, most of the time.
const STORM: &str = r#"
int main(void) {
    signal(SIGTERM, end);
    unsigned long first = both(3);
    while (!over) {
        int status;
        check(3, first);
        pid_t child = vfork();
        if (!child) {
            for (volatile int i = 0; i < 200000; i++) {}
            _exit(7);
        }
        while (waitpid(child, &status, 0) != child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) wrong++;
    }
    return done();
}
"#;

/// A child that is no thread, has the same memory and computes, for a byte of input. It is not traced with
/// its parent.
const UNTRACED: &str = r#"
#include <sched.h>
#include <sys/prctl.h>
static char stack[1 << 16];
static int child(void *none) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    unsigned long first = both(3);
    while (!over) check(3, first);
    _exit(0);
}
static void *starts(void *none) {
    char byte;
    if (read(0, &byte, 1) == 1) clone(child, stack + sizeof stack, CLONE_VM | CLONE_UNTRACED | SIGCHLD, 0);
    return 0;
}
int main(void) {
    pthread_t thread;
    signal(SIGTERM, end);
    pthread_create(&thread, 0, starts, 0);
    unsigned long first = both(3);
    while (!over) check(3, first);
    return done();
}
"#;

/// A function that is never called.
const SPARE: &str = r#"
__attribute__((noipa, used)) unsigned long spare(unsigned long x) { return x * 77 + 5; }
int main(void) {
    signal(SIGTERM, end);
    unsigned long first = both(3);
    while (!over) check(3, first);
    return done();
}
"#;

/// Traces the process of its argument, and lets it run.
const TRACER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>
int main(int count, char **arguments) {
    puts(ptrace(PTRACE_SEIZE, atoi(arguments[1]), 0, 0) ? "no" : "yes");
    fflush(stdout);
    for (;;) pause();
}
"#;

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The children of all threads of a process.
fn children(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |task: std::fs::DirEntry| read(task.path().join("children").to_str().unwrap());
    let all: String = tasks.map(of).collect();
    all.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// Whether a thread of a process is traced.
fn is_traced(pid: i32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let status = |task: std::fs::DirEntry| read(task.path().join("status").to_str().unwrap());
    let of = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        line.is_some_and(|pid| pid.trim() != "0")
    };
    tasks.map(status).any(of)
}

/// Counts until `meanwhile` is over, which begins when the code is patched; `None`, with a message, where
/// tracing is not permitted.
fn until_done(live: &Live, wanted: &[Wanted], meanwhile: impl FnOnce() + Send) -> Option<Counts> {
    let over = AtomicBool::new(false);
    let is_over = || over.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until(|| is_over() || !is_restored(live.pid(), &live.file), || "no probe".to_owned());
            if !is_over() {
                meanwhile();
                // The end of the window.
                kill(Pid::this(), Signal::SIGINT).unwrap();
            }
        });
        let long = Duration::from_secs(300);
        let counts = with_signals(|signals| {
            let counts = count_process(live.pid(), wanted, long, signals, &mut |_, _| {});
            over.store(true, Ordering::SeqCst);
            counts
        });
        over.store(true, Ordering::SeqCst);
        counts
    })
}

/// Writes a byte to the program's input.
fn tell(live: &Live) {
    live.running.as_ref().unwrap().stdin.as_ref().unwrap().write_all(b"x").unwrap();
}

#[test]
fn a_parent_in_vfork_is_not_waited_for() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, VFORK, &[]) else { return };
    let wanted = live.wanted(["part", "tight", "check"]);
    let meanwhile = || {
        tell(&live);
        until(|| !children(live.pid()).is_empty(), || "it does not fork".to_owned());
    };
    let Some(counts) = until_done(&live, &wanted, meanwhile) else { return };
    assert!(!counts.remains, "{:?}", counts.notes);
    live.assert_restored(0);
    // The child waits for the second byte, and its parent for the child.
    let [child] = children(live.pid())[..] else { panic!("the child has ended") };
    assert!(!is_traced(live.pid()) && !is_traced(child), "it is left");
    tell(&live);
    live.end();
}

#[test]
fn one_vfork_after_another_is_no_reason_to_refuse() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, STORM, &[]) else { return };
    let wanted = live.wanted(["part", "check"]);
    for round in 0..40 {
        let Some(counts) = counted(live.pid(), &wanted, Duration::from_millis(5)) else {
            panic!("refused in round {round}");
        };
        assert!(!counts.remains, "{:?}", counts.notes);
        live.assert_restored(round);
    }
    live.end();
}

#[test]
fn an_untraced_child_with_the_same_memory_is_stopped_too() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, UNTRACED, &[]) else { return };
    let wanted = live.wanted(["part", "tight", "check"]);
    let meanwhile = || {
        tell(&live);
        until(|| !children(live.pid()).is_empty(), || "it has no child".to_owned());
    };
    let Some(counts) = until_done(&live, &wanted, meanwhile) else { return };
    assert!(!counts.remains, "{:?}", counts.notes);
    live.assert_restored(0);
    let [child] = children(live.pid())[..] else { panic!("one child") };
    assert!(!is_traced(live.pid()) && !is_traced(child), "it is left");
    live.end();
}

#[test]
fn what_cannot_be_stopped_at_the_end_keeps_its_probes_and_it_is_said() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, UNTRACED, &[]) else { return };
    let Some(tracer) = gcc(folder.path(), TRACER, &[], "tracer") else { return };
    let wanted = live.wanted(["part", "tight", "check"]);
    let mut tracing = None;
    let meanwhile = || {
        tell(&live);
        until(|| !children(live.pid()).is_empty(), || "it has no child".to_owned());
        let child = children(live.pid())[0];
        let mut running = start(program(text(&tracer)).arg(child.to_string()));
        let mut line = String::new();
        BufReader::new(running.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        tracing = Some((running, child, line.trim() == "yes"));
    };
    let Some(counts) = until_done(&live, &wanted, meanwhile) else { return };
    let (mut running, child, is_traced) = tracing.unwrap();
    if is_traced {
        assert!(counts.remains, "{:?}", counts.notes);
        assert!(counts.notes.iter().any(|note| note.contains("PROBES REMAIN")), "{counts:?}");
        assert!(!is_restored(live.pid(), &live.file));
    }
    running.kill().unwrap();
    running.wait().unwrap();
    kill(Pid::from_raw(child), Signal::SIGKILL).unwrap();
    // The next one takes them back.
    until(|| children(live.pid()).iter().all(|c| has_ended(*c)), || "it runs".to_owned());
    let counts = counted(live.pid(), &wanted, Duration::from_millis(20)).unwrap();
    assert!(counts.functions[0].as_ref().unwrap().blocks[0].count.clone().unwrap() > 0);
    assert_eq!(counts.notes.iter().any(|note| note.contains("earlier run")), is_traced);
    live.assert_restored(1);
    live.end();
}

fn has_ended(pid: i32) -> bool {
    matches!(super::attached::state_of(format!("/proc/{pid}").as_ref()), 'Z' | 'X')
}

#[test]
fn probes_of_a_tdtool_that_was_killed_are_taken_back_by_the_next() {
    let _busy = busy();
    let folder = Folder::new();
    for options in [["-pie", "-O2"], ["-no-pie", "-O1"]] {
        let Some(live) = Live::start(&folder, THREADS, &options) else { return };
        let pid = live.pid().to_string();
        let arguments = ["count", "--seconds", "300", "-p", &pid];
        let mut counting = start(&mut command(arguments));
        let is_patched = || !is_restored(live.pid(), &live.file);
        until(
            || is_patched() || counting.try_wait().unwrap().is_some(),
            || "it is not patched".to_owned(),
        );
        if counting.try_wait().unwrap().is_some() {
            eprintln!("skipped: {}", ended(counting).stderr);
            return;
        }
        // It stands still until all probes are in place.
        let before = live.ticks();
        until(|| live.ticks() > before + 1, || "it does not go on".to_owned());
        send(&counting, Signal::SIGKILL);
        ended(counting);
        until(|| !is_traced(live.pid()), || "it is still traced".to_owned());
        assert!(is_patched(), "the probes stay");
        // Of other functions, too.
        let wanted = live.wanted(["part", "check"]);
        let window = Duration::from_millis(100);
        let counts = counted(live.pid(), &wanted, window).unwrap();
        let ran = |counts: &Counts| {
            counts.functions[0].as_ref().unwrap().blocks[0].count.clone().unwrap() > 0
        };
        // On a busy machine nothing of it may run in a window.
        until(
            || ran(&counts) || ran(&counted(live.pid(), &wanted, window).unwrap()),
            || "it is not counted".to_owned(),
        );
        let note = counts.notes.iter().find(|note| note.contains("earlier run"));
        assert!(note.is_some_and(|note| !note.starts_with('0')), "{:?}", counts.notes);
        live.assert_restored(0);
        live.end();
    }
}

#[test]
fn a_process_is_not_stopped_before_everything_is_planned() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, SPARE, &[]) else { return };
    let wanted = live.wanted(["part", "spare"]);
    let mut plans = 0;
    let mut progress = |done, all| {
        assert!(!is_traced(live.pid()), "{done} of {all}");
        if done < all {
            return;
        }
        plans += 1;
        if plans == 1 {
            // What was planned for is not there any more: its code in memory changes.
            let path = format!("/proc/{}/mem", live.pid());
            let memory = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            let maps = read(&format!("/proc/{}/maps", live.pid()));
            let first = maps.lines().find(|line| line.ends_with(text(&live.file))).unwrap();
            let base = u64::from_str_radix(first.split_once('-').unwrap().0, 16).unwrap();
            memory.write_all_at(&[0xcc], base + wanted[1].range.start).unwrap();
        }
    };
    let window = Duration::from_millis(50);
    let counts =
        with_signals(|signals| count_process(live.pid(), &wanted, window, signals, &mut progress));
    let Some(counts) = counts else { return };
    assert_eq!(plans, 2, "it is planned anew");
    assert!(counts.functions[0].as_ref().unwrap().blocks[0].count.clone().unwrap() > 0);
    let why = counts.functions[1].as_ref().unwrap_err();
    assert_eq!(*why, Unprobed::Differs { is_left: false }.into());
    live.end();
}

/// All functions of this program: their analysis takes a while.
fn many() -> Vec<Wanted> {
    let path = std::env::current_exe().unwrap().canonicalize().unwrap();
    let all = functions(&path).unwrap().into_iter();
    all.map(|named| Wanted { path: path.clone(), range: named.range }).collect()
}

#[test]
fn a_process_that_ends_while_it_is_analysed() {
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, SPARE, &[]) else { return };
    let (pid, mut live) = (live.pid(), Some(live));
    let mut progress = |_, _| {
        if let Some(live) = live.take() {
            live.end();
        }
    };
    let window = Duration::from_millis(5);
    let found = with_signals(|signals| {
        Ok(count_process(pid, &many(), window, signals, &mut progress).unwrap_err())
    });
    let error = found.unwrap();
    if error.kind() != tma::error::ErrorKind::NotPossible {
        assert!(error.to_string().contains("has ended"), "{error}");
    }
}

#[test]
fn an_analysis_is_interrupted_by_a_signal() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, SPARE, &[]) else { return };
    let mut is_first = true;
    let mut progress = |_, _| {
        if std::mem::take(&mut is_first) {
            kill(Pid::this(), Signal::SIGINT).unwrap();
        }
    };
    let window = Duration::from_secs(300);
    let counts =
        with_signals(|signals| count_process(live.pid(), &many(), window, signals, &mut progress));
    let Some(counts) = counts else { return };
    assert_eq!(counts.interrupted, Some(libc::SIGINT));
    assert!(counts.functions.iter().all(Result::is_err));
    assert!(!is_traced(live.pid()));
    live.assert_restored(0);
    live.end();
}

#[test]
fn help_says_which_options_repeat_the_output() {
    let help = crate::support::run::tdtool(["count", "--help"]).succeeded().stdout;
    let says = |option: &str| {
        let of = help.split(&format!("--{option}")).nth(1).unwrap();
        of.split("\n      --").next().unwrap().contains("repeated")
    };
    assert!(["branches", "hot", "plain", "loads"].iter().all(|option| says(option)), "{help}");
}
