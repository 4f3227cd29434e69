//! Programs to sample, and recordings of them.

use crate::support::files::{Folder, text};
use crate::support::run::{self, Ran, run};
use pmu::sampling::ability;
use profile::session::load;
use std::env::current_exe;
use std::hint::black_box;
use std::path::{Path, PathBuf};

/// Work for some tenths of a second.
const WORK: &str = "40000000";

/// Whether the kernel opens perf events for us.
pub fn sampling() -> bool {
    ability().is_ok()
}

/// Our own busy program: this one, doing what the variable says (see `busy_program`).
pub fn busy_command(threads: usize) -> Vec<String> {
    let us = current_exe().expect("a path").display().to_string();
    let (work, count) = (format!("BUSY_WORK={WORK}"), format!("BUSY_THREADS={threads}"));
    let (_, here) = module_path!().split_once("::").expect("a module");
    let test = format!("{here}::busy_program");
    ["env", &work, &count, &us, "--exact", &test].map(str::to_owned).to_vec()
}

#[inline(never)]
fn spin(work: u64) -> u64 {
    (0..work).fold(1, |x, i| black_box(x ^ i.wrapping_mul(0x9e37_79b9)))
}

/// No test: what [`busy_command`] starts.
#[test]
fn busy_program() {
    let number = |name| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let (Some(work), Some(threads)) = (number("BUSY_WORK"), number("BUSY_THREADS")) else { return };
    let all: Vec<_> = (0..threads).map(|_| std::thread::spawn(move || spin(work))).collect();
    all.into_iter().for_each(|t| {
        black_box(t.join().expect("joined"));
    });
}

/// Where a test keeps its session.
pub fn session(folder: &Folder) -> PathBuf {
    folder.path().join("s.tds")
}

/// `tdtool record` with these options and command.
pub fn record(session: &Path, options: &[&str], command: &[String]) -> Ran {
    let mut record = run::command(["record", "-o", text(session)]);
    record.args(options);
    if !command.is_empty() {
        record.arg("--").args(command);
    }
    run(&mut record)
}

/// CPU seconds that were counted beside the samples.
pub fn task_clock(session: &Path) -> f64 {
    let session = load(session).expect("a session");
    let whole = session.software.iter().find(|s| s.interval.is_none()).expect("the whole run");
    whole.values["task-clock"].expect("a task clock") * 1e-3
}

/// A command that runs a script.
pub fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// A shell's loop of `n` iterations.
pub fn iterations(n: u32) -> String {
    format!("i=0; while [ $i -lt {n} ]; do i=$((i+1)); done")
}
