//! Basic blocks: `tdtool block` as a process, and the measurer as a library.

mod assembly;
mod assumptions;
mod batch;
mod batch_files;
mod batch_limits;
mod bounds;
mod captured;
mod document;
mod explained;
mod hostile;
mod known;
mod known_list;
mod loops;
mod options;
mod parsers;
mod pmu;
mod predicted;
mod programs;
mod refused;
mod sources;
mod text_report;
mod values;
mod verdict;
mod what_if;

use crate::support::quiet::{alone, busy};
use crate::support::run::{self, Ran, run, tdtool_reading};
use bench::{BlockMeasurer, Measurement, Options, Status};
use isa::code::{Block, parse_hex};
use serde_json::Value;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::{LazyLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// `tdtool block` with these arguments, not yet started.
pub fn command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = run::command(["block"]);
    command.args(arguments);
    command
}

/// Runs it.
pub fn block(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    run(&mut command(arguments))
}

/// Runs it with `input` on standard input.
pub fn block_reading(arguments: &[&str], input: &[u8]) -> Ran {
    tdtool_reading([&["block"], arguments].concat(), input)
}

/// The JSON document of a quick measurement.
pub fn json(arguments: &[&str]) -> Value {
    json_reading(arguments, b"")
}

/// The same with `input` on standard input.
pub fn json_reading(arguments: &[&str], input: &[u8]) -> Value {
    let quick = ["--quick", "--budget", "50", "--format", "json"];
    block_reading(&[arguments, &quick].concat(), input).json()
}

/// Whether a document notes nothing but facts of the core that are not known, and how a loop was run.
pub fn notes_core_alone(document: &Value) -> bool {
    let notes = document["notes"].as_array().unwrap();
    let of_the_core = ["table", "by features", "measured as a loop"];
    let expected = |note: &str| of_the_core.iter().any(|part| note.contains(part));
    notes.iter().all(|note| expected(note.as_str().unwrap()))
}

/// The block's bytes in a document.
pub fn hex(document: &Value) -> &str {
    document["block"]["hex"].as_str().unwrap()
}

/// Leave to measure blocks beside other tests, for what does not depend on a time; `None`, with a
/// word, where the sandbox cannot run.
pub fn sandbox() -> Option<RwLockReadGuard<'static, ()>> {
    runs_blocks().then(busy)
}

/// The same without other tests beside it, for judging times.
pub fn quiet_sandbox() -> Option<RwLockWriteGuard<'static, ()>> {
    runs_blocks().then(alone)
}

fn runs_blocks() -> bool {
    static REFUSAL: LazyLock<Option<String>> = LazyLock::new(|| {
        let tried = block(["90", "--quick", "--budget", "1"]);
        (tried.code() != Some(0)).then_some(tried.stderr)
    });
    if let Some(why) = &*REFUSAL {
        eprintln!("skipped: no sandbox here: {why}");
    }
    REFUSAL.is_none()
}

/// The default measurement, with no patience for contention: tests try again.
pub fn thorough() -> Options {
    Options { budget: Duration::from_millis(300), ..Options::default() }
}

/// Screening, likewise.
pub fn quick() -> Options {
    Options { budget: Duration::from_millis(50), ..Options::quick() }
}

/// The block of these bytes.
pub fn decode(hex: &str) -> Block {
    Block::decode(&parse_hex(hex).unwrap()).unwrap()
}

/// One measurement.
pub fn measure(measurer: &mut BlockMeasurer, hex: &str) -> Measurement {
    measurer.measure(&decode(hex)).unwrap()
}

/// The report of a block that must run. Contention may keep the worker from the processor for so
/// long that it is given up: then it is tried again.
pub fn measured(measurer: &mut BlockMeasurer, hex: &str) -> Measurement {
    let mut report = measure(measurer, hex);
    for _ in 0..4 {
        if report.reason.as_deref() != Some("another process occupied the core") {
            break;
        }
        report = measure(measurer, hex);
    }
    let ran = matches!(report.status, Status::Ok | Status::Unstable);
    assert!(ran, "{hex}: {:?} {:?}", report.reason, report.location);
    report
}

/// The first measurement that the tool vouches for.
pub fn settled(measurer: &mut BlockMeasurer, hex: &str) -> Option<Measurement> {
    (0..3).map(|_| measured(measurer, hex)).find(|report| report.status == Status::Ok)
}
