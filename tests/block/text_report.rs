//! The text of a block's report: addresses, notes and remedies fit what was measured.

use super::{block, decode, json, sandbox, thorough};
use crate::support::files::{Folder, text};
use crate::support::tools::{gcc, tool};
use bench::{Measurement, Status};
use engine::block::{Measurer, Notes};
use engine::core_model::CoreModel;
use report::render::block::{Style, render};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tma::Core;

/// A loop, and a jump to code before its function.
const JUMPS: &str = r#"__asm__("before: nop\n"
    ".globl odd\n.type odd,@function\nodd: xor %eax,%eax\n"
    "1: inc %rax\n cmp $9,%rax\n jl 1b\n test %edi,%edi\n je before\n jmp after\n.size odd,.-odd\n"
    "after: ret\n");
    int main(void) { return 0; }"#;

#[test]
fn a_programs_block_has_the_addresses_that_objdump_shows() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), JUMPS, &["-O1"], "program") else { return };
    let Some(dump) = tool("objdump", &["-d", "-M", "intel", text(&program)]) else { return };
    let Some(_busy) = sandbox() else { return };
    // `1131:  7c f7   jl     112a <odd+0x2>`: the address before the bytes, the target before its name.
    let shown = |address: &str| {
        let of = |line: &&str| line.trim_start().starts_with(&format!("{address}:"));
        dump.lines().find(of).unwrap_or_else(|| panic!("{address}: {dump}"))
    };
    for place in ["odd+0", "odd+1", "odd+2"] {
        let document = json(&[&format!("{}:{place}", text(&program))]);
        for line in document["block"]["instructions"].as_array().unwrap() {
            let address = line["address"].as_str().unwrap().trim_start_matches("0x");
            let (dumped, said) = (shown(address), line["text"].as_str().unwrap());
            if said.starts_with('j') {
                let target = dumped.split(" <").next().unwrap().rsplit(' ').next().unwrap();
                assert!(said.ends_with(&format!(" 0x{target}")), "{said}: {dumped}");
            }
        }
    }
    // Each of two blocks has its own.
    let of = |number: u32| format!("{}:odd+{number}", text(&program));
    let quick = ["--quick", "--budget", "50", "--format", "json"];
    let pair = block([&[&*of(0), "--against", &of(1)], &quick[..]].concat()).json();
    for (name, number) in [("a", 0), ("b", 1)] {
        let alone = json(&[&of(number)]);
        assert_eq!(pair[name]["block"]["instructions"], alone["block"]["instructions"], "{name}");
    }
}

#[test]
fn a_block_without_a_program_has_offsets_and_no_addresses() {
    let Some(_busy) = sandbox() else { return };
    // dec ecx; jne to seven bytes before it.
    let document = json(&["ffc975f5"]);
    let lines = document["block"]["instructions"].as_array().unwrap();
    assert_eq!(lines[1]["text"], "jne short -7", "{document}");
    assert!(lines.iter().all(|line| line.get("address").is_none()), "{document}");
}

/// A multiplication in a loop.
const LOOP: &str = "480fafc3 ffc9 75f8";

/// A note on the time.
const NOTE: &str = "misses are not in this number";

/// A measurement that is cancelled as soon as `now` says so of its step, with a note of its time, and what is shown.
fn cancelled(now: impl Fn(&str) -> bool + Sync) -> (Measurement, String) {
    let options = thorough();
    let progress = options.progress.clone();
    let model = CoreModel::new(Arc::new(Core::default()), None).unwrap();
    let mut measurer = Measurer::new(options, &model);
    let ended = AtomicBool::new(now(""));
    if now("") {
        progress.cancel();
    }
    let mut report = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !now(&progress.step()) && !ended.load(Relaxed) {
                std::thread::sleep(Duration::from_micros(50));
            }
            progress.cancel();
        });
        let report = measurer.measure(&decode(LOOP), true).unwrap();
        ended.store(true, Relaxed);
        report
    });
    let of_time = vec![NOTE.to_owned()];
    Notes { of_time, ..Notes::default() }.enter(&mut report);
    let shown = render(&report, &Style { ascii: true, ..Style::default() });
    (report, shown)
}

#[test]
fn an_interrupted_measurement_says_what_there_is_and_nothing_of_what_there_is_not() {
    let Some(_busy) = sandbox() else { return };
    let (report, shown) = cancelled(|_| true);
    assert_eq!((report.status, report.reason.as_deref()), (Status::Failed, Some("interrupted")));
    assert!(shown.starts_with("interrupted") && !shown.contains("failed"), "{shown}");
    assert!(report.notes.iter().all(|note| !note.contains("loop")), "{:?}", report.notes);
    // While it is explained: the time and some bounds, and no verdict of those. The thread may come too late.
    let of = |_| cancelled(|step| step == "bounds");
    let in_time = |(report, _): &(Measurement, String)| {
        report.status == Status::Ok && report.hierarchy.bound().is_none()
    };
    let Some((report, shown)) = (0..10).map(of).find(in_time) else {
        eprintln!("skipped: no thread beside the measurement");
        return;
    };
    assert!(shown.contains("interrupted") && !shown.contains("<-"), "{shown}");
    assert_eq!(report.notes[0], NOTE);
}

/// A division by what it leaves: the loop's own values divide by 0 or overflow, copies do not.
#[test]
fn times_of_copies_are_not_said_to_be_the_loops() {
    let Some(_busy) = sandbox() else { return };
    let document = json(&["--asm", "a: div rbx; dec ecx; jne a"]);
    let notes = document["notes"].to_string();
    if document["headline"] != "loop" && document["status"] != "failed" {
        assert!(notes.contains("division"), "{notes}");
    }
}
