//! The live collector on the machine at hand, whatever it can count: commands start, end and fail
//! as they would without us, and what any kernel counts is there.

use crate::support::child::Limited as _;
use crate::support::files::Folder;
use crate::support::run::{TDTOOL, program, usual_signals};
use pmu::machine::Machine;
use pmu::{Command, Exit, Measurement, Progress, Request, Target, perf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tma::{ErrorKind, Result};

/// One measurement at a time in a process: signals are the process's.
fn measuring() -> MutexGuard<'static, ()> {
    static MEASURING: Mutex<()> = Mutex::new(());
    let guard = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    usual_signals().expect("signals as in a terminal");
    guard
}

fn measure(argv: &[&str]) -> Result<Measurement> {
    let _measuring = measuring();
    let machine = Machine::detect();
    let mut request = Request::new(&machine, Vec::new(), Target::Command);
    let argv = argv.iter().map(Into::into).collect();
    request.command = Some(Command { argv, ..Command::default() });
    perf::measure(&request, &mut |_| {})
}

fn shell(script: &str) -> Measurement {
    measure(&["sh", "-c", script]).expect("measured")
}

#[test]
fn the_exit_status_and_the_signal_are_the_commands_own() {
    assert_eq!(shell("exit 0").exit, Some(Exit::Status(0)));
    assert_eq!(shell("exit 7").exit, Some(Exit::Status(7)));
    assert_eq!(shell("kill -9 $$").exit, Some(Exit::Signal(9)));
    assert_eq!(shell("kill -9 $$").exit.map(Exit::code), Some(137));
}

#[test]
fn a_parent_that_ignores_sigchld_costs_no_exit_status() {
    // env(1) of GNU coreutils 8.31 and later starts a program with a signal ignored.
    let ignoring = |command: &[&str]| {
        let env = program("env").arg("--ignore-signal=CHLD").args(command).run_limited();
        env.ok().and_then(|output| output.status.code())
    };
    need!(ignoring(&["true"]) == Some(0), "no env --ignore-signal here");
    let status = |command: &[&str]| ignoring(&[&[TDTOOL, "report", "--"], command].concat());
    assert_eq!(status(&["sh", "-c", "exit 3"]), Some(3));
    // The command is started as it would be without us: bit 16 of SigIgn is SIGCHLD (17).
    let ignored = "SigIgn:.*[13579bdf]....$";
    assert_eq!(status(&["grep", "-q", ignored, "/proc/self/status"]), Some(0));
}

#[test]
fn a_command_that_cannot_start_is_distinguished_from_one_that_fails() {
    let missing = measure(&["surely-no-such-program"]).expect_err("no such program");
    assert_eq!(missing.kind(), ErrorKind::CommandNotFound);
    assert!(missing.remedy().expect("a remedy").contains("PATH"), "{missing:?}");
    let root = measure(&["/"]).expect_err("a folder");
    assert!(root.cause().expect("a cause").contains("directory"), "{root:?}");
    let folder = Folder::new();
    let plain = measure(&[&folder.write("text", "")]).expect_err("not executable");
    assert_eq!(plain.kind(), ErrorKind::CommandNotExecutable);
}

#[test]
fn time_and_faults_are_counted_on_every_machine() {
    let measured = shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    let clock = measured.software.task_clock.expect("a task clock");
    assert!(clock > 0.0 && clock <= 1.1 * measured.software.wall.as_secs_f64(), "{clock}");
    assert!(measured.software.page_faults.expect("faults") > 0.0);
}

#[test]
fn the_command_gets_ordinary_signal_handling() {
    // Rust ignores SIGPIPE and we catch SIGINT; neither may be inherited through exec.
    assert_eq!(shell("kill -PIPE $$; exit 0").exit, Some(Exit::Signal(libc::SIGPIPE)));
    let blocked = "grep SigBlk /proc/self/status | tr -d '[:alpha:][:space:]:0' | grep -q .";
    assert_eq!(shell(blocked).exit, Some(Exit::Status(1)));
}

#[test]
fn a_signal_for_us_ends_the_command_and_still_gives_a_measurement() {
    // The command sends it to its parent, which is us, and waits to get it back.
    let measured = shell("kill -INT $PPID; exec sleep 60");
    assert_eq!(measured.interrupted, Some(libc::SIGINT));
    assert_eq!(measured.exit, Some(Exit::Signal(libc::SIGINT)));
    assert!(measured.software.task_clock.is_ok());
}

#[test]
fn a_process_that_ends_ends_its_measurement() {
    let _measuring = measuring();
    let machine = Machine::detect();
    let mut child = program("cat").stdin(Stdio::piped()).start_limited().expect("cat starts");
    let pid = i32::try_from(child.id()).expect("a pid");
    let mut request = Request::new(&machine, Vec::new(), Target::Process(pid));
    request.interval = Some(Duration::from_millis(20));
    // The first interval shows that counting has begun; then the process is let go.
    let measured = perf::measure(&request, &mut |p| {
        if matches!(p, Progress::Interval(_)) {
            drop(child.stdin.take());
        }
    });
    let _ = child.wait();
    assert_eq!(measured.expect("measured").exit, None);
}

#[test]
fn a_process_that_does_not_exist_is_an_error() {
    let _measuring = measuring();
    let machine = Machine::detect();
    // Beyond the kernel's largest process id, 2^22 (linux/threads.h).
    let request = Request::new(&machine, Vec::new(), Target::Process(1 << 23));
    let error = perf::measure(&request, &mut |_| {}).expect_err("no such process");
    assert!(error.what().contains("8388608"), "{error}");
}
