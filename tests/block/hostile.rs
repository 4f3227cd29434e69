//! Blocks that mean harm: each may lose its own measurement and nothing else.
//!
//! After every one of them a healthy block must have the same pages and values as before, and an instruction the time that
//! is known of it where the tool vouches for one.

use super::{command, measure, measured, sandbox};
use crate::support::files::Folder;
use crate::support::random::Random;
use crate::support::run::run;
use bench::{BlockMeasurer, Measurement, Options, Status};
use isa::code::Block;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, gettid};
use proptest::prelude::*;
use std::cell::RefCell;
use std::fs;
use std::time::Duration;

const HEALTHY: &str = "488b03 4801c1 48890b"; // mov rax,[rbx]; add rcx,rax; mov [rbx],rcx

/// Screening that waits for nothing.
pub fn impatient() -> BlockMeasurer {
    BlockMeasurer::new(Options { budget: Duration::from_millis(20), ..Options::quick() })
}

/// The report of the healthy block, before anything hostile and after: one that two others repeat, since a busy machine
/// may stop the search for initial values early.
pub fn healthy(measurer: &mut BlockMeasurer) -> Measurement {
    let mut all: Vec<Measurement> = Vec::new();
    loop {
        let next = measured(measurer, HEALTHY);
        let alike = |m: &&Measurement| (&m.pages, &m.values) == (&next.pages, &next.values);
        if all.iter().filter(alike).count() == 2 || all.len() == 16 {
            return next;
        }
        all.push(next);
    }
}

/// What must be the same after a hostile block as before it. A busy machine may stop the search for initial values early,
/// or spoil a time: pages and values are tried three times, the time until one that is vouched for is right.
pub fn assert_healthy(measurer: &mut BlockMeasurer, before: &Measurement, hostile: &str) {
    let mut seen = Vec::new();
    let is_same = (0..3).any(|_| {
        let after = healthy(measurer);
        let same = (&after.pages, &after.values) == (&before.pages, &before.values);
        seen.push((after.pages, after.values));
        same
    });
    assert!(is_same, "after {hostile}: {seen:?}, before {:?}", (&before.pages, &before.values));
    // imul rax,rbx: 3 cycles on AMD Zen and on Intel since Haswell (uops.info).
    let mut wrong = Vec::new();
    for _ in 0..24 {
        let known = measured(measurer, "480fafc3");
        match known.throughput.filter(|_| known.status == Status::Ok) {
            Some(time) if (time.cycles / 3.0 - 1.0).abs() < 0.05 => return,
            Some(time) => wrong.push(time.cycles),
            None => {}
        }
    }
    assert!(wrong.is_empty(), "after {hostile}: imul rax,rbx takes {wrong:?} cycles");
}

#[test]
fn a_hostile_block_loses_its_own_measurement_and_nothing_else() {
    let Some(_busy) = sandbox() else { return };
    let mut measurer = impatient();
    let before = healthy(&mut measurer);
    assert_eq!(before.pages.len(), 1);
    for hex in hostile() {
        let report = measure(&mut measurer, hex);
        eprintln!("{:8} {hex}: {:?}", report.status.word(), report.reason);
        assert_ne!(report.status, Status::Rejected, "{hex}: never ran");
        assert_healthy(&mut measurer, &before, hex);
    }
    // More than the harness has room for: twice, or at all.
    for size in [50_000, 90_000, 200_000, 300_000] {
        measurer.measure(&Block::decode(&vec![0x90; size]).unwrap()).unwrap();
        assert_healthy(&mut measurer, &before, "a very long block");
    }
}

/// Passed by the decoder, and hostile all the same: `hex,what`.
const HOSTILE: &str = include_str!("hostile.csv");

/// The blocks of that list.
fn hostile() -> impl Iterator<Item = &'static str> {
    HOSTILE.lines().skip(1).map(|row| row.split(',').next().unwrap_or_default())
}

/// Known blocks between hostile ones, in random order: each has the result that it has alone. More rows and times:
/// tests/figures/hostile_rows.py.
#[test]
fn known_rows_between_hostile_ones_are_as_in_a_clean_batch() {
    let Some(_busy) = sandbox() else { return };
    // Dependent and independent sums, a load, a pointer in memory, a store, a division, vectors, x87, a stack.
    let known = [
        "4801d8",
        "4801d84801d9",
        "488b03",
        "488b0b488b11",
        "48890b",
        "31d248f7f1",
        "c5fc58c1",
        "d9e1",
        "5058",
        "488d4301",
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut rows: Vec<&str> = hostile().filter(|hex| !hex.contains("f3a")).collect();
    rows.extend(std::iter::repeat_n(known, 12).flatten());
    for at in (1..rows.len()).rev() {
        rows.swap(at, random.below(at as u64 + 1) as usize);
    }
    let folder = Folder::new();
    let results = |name: &str, rows: &[&str]| {
        folder.write(name, format!("hex\n{}\n", rows.join("\n")));
        let out = format!("out-{name}");
        let batch = ["--quick", "--budget", "50", "--no-sentinel", "--batch", name, "-o", &out];
        run(command(batch).current_dir(folder.path())).succeeded();
        let text = folder.read(&out);
        // A block, and whether and with how many pages it ran.
        let row = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            let ran = matches!(fields[1], "ok" | "unstable");
            (fields[0].to_owned(), ran, fields.last().map(|pages| (*pages).to_owned()))
        };
        text.lines().skip(1).map(row).collect::<Vec<_>>()
    };
    let clean = results("clean.csv", &known);
    assert!(clean.iter().all(|(_, ran, _)| *ran), "{clean:?}");
    let mixed = results("mixed.csv", &rows);
    assert_eq!(mixed.len(), rows.len());
    for row in mixed.iter().filter(|row| known.contains(&row.0.as_str())) {
        assert!(clean.contains(row), "{row:?}, alone {clean:?}");
    }
}

#[test]
fn a_worker_killed_from_outside_is_replaced() {
    let Some(_busy) = sandbox() else { return };
    let mut measurer = impatient();
    let before = healthy(&mut measurer);
    let thread = gettid();
    let list = format!("/proc/self/task/{thread}/children");
    let Ok(children) = fs::read_to_string(list) else { return };
    let mut killed = 0;
    for child in children.split_whitespace() {
        let child = Pid::from_raw(child.parse().unwrap());
        kill(child, Signal::SIGKILL).unwrap();
        killed += 1;
    }
    assert_eq!(killed, 1, "one worker a thread");
    // The block at hand may be lost; none after it is.
    measure(&mut measurer, HEALTHY);
    assert_healthy(&mut measurer, &before, "a kill");
}

#[test]
fn a_batch_of_random_bytes_leaves_no_trace_on_its_healthy_rows_or_its_folder() {
    let Some(_busy) = sandbox() else { return };
    let folder = Folder::new();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut rows = String::from("hex\n");
    for _ in 0..40 {
        let (bytes, size) = (random.next().to_le_bytes(), 2 + random.below(7) as usize);
        rows += &bytes[..size].iter().map(|b| format!("{b:02x}")).collect::<String>();
        rows += "\n488b034801c148890b\n";
    }
    folder.write("in.csv", rows);
    let batch = ["--quick", "--budget", "50", "--batch", "in.csv", "-o", "out.csv"];
    run(command(batch).current_dir(folder.path())).succeeded();
    let out = folder.read("out.csv");
    let healthy: Vec<_> = out.lines().filter(|l| l.starts_with("488b034801c148890b,")).collect();
    assert_eq!(healthy.len(), 40);
    // On a busy machine one may have no time at all, nor pages.
    let (late, healthy): (Vec<&str>, Vec<&str>) =
        healthy.into_iter().partition(|row| row.rsplit(',').next() == Some("0"));
    assert!(late.len() <= 10, "{late:#?}");
    for row in healthy {
        let status = row.split(',').nth(1).unwrap();
        assert!(matches!(status, "ok" | "unstable") && row.ends_with(",1"), "{row}");
    }
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["in.csv", "out.csv"]);
}

/// Whatever the bytes are, the host process gets an answer, and so does the next block.
#[test]
fn random_bytes_never_harm_the_host_or_the_next_block() {
    let Some(_busy) = sandbox() else { return };
    let mut measurer = impatient();
    let before = healthy(&mut measurer);
    let measurer = RefCell::new(measurer);
    let bytes = proptest::collection::vec(any::<u8>(), 1..24);
    proptest!(ProptestConfig::with_cases(64), |(bytes in bytes)| {
        if let Ok(block) = Block::decode(&bytes) {
            let mut measurer = measurer.borrow_mut();
            measurer.measure(&block).unwrap();
            assert_healthy(&mut measurer, &before, &block.hex());
        }
    });
}
