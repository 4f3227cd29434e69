//! Where the time goes: hot functions and blocks of real programs, as a user asks for them.

use super::{compiled, json, report};
use crate::support::files::Folder;
use crate::support::quiet::{alone, busy};
use crate::support::run::tdtool;
use crate::support::trial::{Trial, assert_holds, claim};
use isa::program::{Location, read_location};
use profile::files::SearchPaths;
use profile::hot::{Filter, Profile};
use profile::session::load_recording;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Two functions: one does three times the work of the other.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) unsigned light(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++) x = x * 1664525u + 1013904223u;
    return x;
}
__attribute__((noinline)) unsigned heavy(unsigned n, unsigned x) {
    for (unsigned i = 0; i < 3 * n; i++) x = x * 1664525u + 1013904223u;
    return x;
}
int main(int argc, char **argv) {
    unsigned rounds = atoi(argv[1]), x = 0;
    for (unsigned i = 0; i < rounds; i++) x += light(1000000, i) + heavy(1000000, i);
    printf("%u\n", x);
}
"#;

/// Without a frame of its own a function's caller is not in the chain, and gcc gives leaf functions
/// none when it optimises.
const FRAMES: [&str; 2] = ["-O0", "-fno-omit-frame-pointer"];

fn share(report: &Value, name: &str) -> f64 {
    let rows = report["functions"].as_array().expect("functions");
    let row = rows.iter().find(|row| row["name"] == name);
    row.and_then(|row| row["share"].as_f64()).unwrap_or(0.0)
}

/// Compiles the source with these flags.
fn build(folder: &Folder, flags: &[&str]) -> Option<String> {
    compiled(folder, PROGRAM, flags)
}

/// Records the program with the CPU clock; `None`, with a message, where that cannot be.
fn record(folder: &Folder, program: &str, more: &[&str]) -> Option<String> {
    let session = folder.file("run.tds");
    let arguments = [&["record", "-o", &session], more, &["--", program, "150"]].concat();
    let recorded = tdtool(arguments);
    if recorded.stderr.contains("cannot sample") {
        eprintln!("skipped: {}", recorded.stderr);
        return None;
    }
    recorded.succeeded();
    Some(session)
}

#[test]
fn a_function_that_does_three_times_the_work_has_three_quarters_of_the_samples() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = build(&folder, &[]) else { return };
    let Some(session) = record(&folder, &program, &[]) else { return };
    let report = json(&[&session]);
    let (heavy, light) = (share(&report, "heavy"), share(&report, "light"));
    let samples = report["sampled"]["samples"].as_f64().expect("samples");
    // 3 : 1 by construction; five standard errors of so many samples.
    let error = 5.0 * (0.75 * 0.25 / samples).sqrt() + 0.02;
    let found = heavy / (heavy + light);
    assert!((found - 0.75).abs() < error, "{found} ± {error} of {samples}: {report:#}");
    assert_eq!(report["functions"][0]["module"], "work");
    assert!(report["functions"][0]["file"].as_str().is_some_and(|f| f.ends_with("source.c")));
    let block = &report["blocks"][0];
    assert_eq!((&block["function"], &block["loop_depth"]), (&"heavy".into(), &1.into()));
    assert!(block["start"].as_str().is_some_and(|a| a.starts_with("0x")));
    // Its only loop has nearly all of the function.
    let own = &report["loops"][0];
    let share = own["share"].as_f64().expect("a share");
    assert!(own["function"] == "heavy" && share > 0.9 * heavy, "{own} of {heavy}");
}

#[test]
fn stripped_code_gives_functions_without_names_and_no_wrong_ones() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = build(&folder, &["-s"]) else { return };
    let Some(session) = record(&folder, &program, &[]) else { return };
    let report = json(&[&session]);
    let rows = report["functions"].as_array().expect("functions");
    let own: Vec<_> = rows.iter().filter(|r| r["module"] == "work").collect();
    assert!(own[0]["share"].as_f64().is_some_and(|s| s > 0.5), "{report:#}");
    assert!(own.iter().all(|r| r["name"].as_str().is_some_and(|n| n.starts_with("work+0x"))));
}

#[test]
fn a_program_that_was_rebuilt_since_is_not_annotated() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = build(&folder, &["-Wl,--build-id"]) else { return };
    let Some(session) = record(&folder, &program, &[]) else { return };
    if build(&folder, &["-Wl,--build-id", "-O0"]).is_none() {
        return;
    }
    let output = report(&[&session]);
    let text = &output.stdout;
    assert!(text.contains("changed"), "{text}");
    assert!(!text.contains("heavy"), "{text}");
}

/// A loop with a jump table, and a call that does not come back in its midst.
const SWITCH: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) unsigned heavy(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++) {
        switch (x % 11) {
        case 0: x += 77; break;
        case 1: x ^= i; break;
        case 2: x = x * 3 + 1; break;
        case 3: x -= i; break;
        case 4: if (n == 12345) abort(); x += 5; break;
        case 5: x = x * 7 + i; break;
        case 6: x ^= 0x5bd1e995; break;
        case 7: x += x >> 3; break;
        case 8: x = x * 13 + 2; break;
        case 9: x ^= x << 5; break;
        default: x += 11;
        }
    }
    return x;
}
int main(int argc, char **argv) {
    unsigned rounds = atoi(argv[1]), x = 0;
    for (unsigned i = 0; i < rounds; i++) x += heavy(1000000, i);
    printf("%u\n", x);
}
"#;

#[test]
fn blocks_of_the_report_are_those_that_the_block_profiler_counts() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, SWITCH, &[]) else { return };
    let Some(session) = record(&folder, &program, &[]) else { return };
    let file = fs::read(&program).expect("the program");
    let by_number: Vec<(u64, u64)> = (0..)
        .map_while(|number| read_location(&file, &Location::Function("heavy".into(), number)).ok())
        .map(|block| (block.start, block.start + block.bytes.len() as u64))
        .collect();
    let recording = load_recording(Path::new(&session)).expect("a recording");
    let mut profile =
        Profile::new(&recording, &Filter::default(), SearchPaths::default()).expect("read");
    let index = profile.functions.iter().position(|f| f.name == "heavy").expect("heavy is hot");
    let annotated = profile.annotate(index);
    let hot: Vec<_> = annotated.blocks.iter().map(|b| (b.block.start, b.block.end)).collect();
    assert_eq!(hot, by_number);
    assert!(hot.len() > 12, "the cases of the switch are blocks: {hot:x?}");
    assert!(annotated.blocks.iter().all(|b| !b.unresolved), "its jump table is found");
}

#[test]
fn folded_stacks_alone_print_no_report() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = build(&folder, &FRAMES) else { return };
    let Some(session) = record(&folder, &program, &["-g"]) else { return };
    let output = report(&[&session, "--folded", &folder.file("folded")]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let stacks = folder.read("folded");
    assert!(stacks.lines().any(|line| line.contains(";main;heavy ")), "{stacks}");
}

#[test]
fn callers_need_chains_and_are_found_in_them() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = build(&folder, &FRAMES) else { return };
    let Some(session) = record(&folder, &program, &[]) else { return };
    let refused = report(&[&session, "--callers", "heavy"]);
    assert!(!refused.status.success());
    assert!(refused.stderr.contains("-g"), "{}", refused.stderr);
    let Some(session) = record(&folder, &program, &["-g"]) else { return };
    let name = folder.file("folded");
    let output = report(&[&session, "--callers", "heavy", "--folded", &name]);
    let text = &output.stdout;
    let callers = text.split("Callers of heavy").nth(1).expect("callers");
    assert!(callers.lines().nth(1).is_some_and(|line| line.ends_with(" main")), "{callers}");
    let folded = folder.read("folded");
    assert!(folded.lines().any(|line| line.contains(";main;heavy ")), "{folded}");
}

#[test]
fn the_hottest_block_is_measured_in_isolation() {
    let _quiet = alone();
    let folder = Folder::new();
    let Some(program) = build(&folder, &[]) else { return };
    let Some(session) = record(&folder, &program, &[]) else { return };
    assert_holds("the loop takes 4 cycles, or a multiple", || {
        let report = json(&[&session, "--measure", "--blocks", "1"]);
        let measured = &report["blocks"][0]["measured"];
        if measured["status"] == "unstable" {
            return Trial::Unsettled("contention".into());
        }
        // imul and add, dependent: 3 + 1 cycles on all Intel since Nehalem and AMD Zen
        // (uops.info); compilers may unroll it.
        let cycles = measured["cycles"].as_f64().expect("cycles");
        let steps = (cycles / 4.0).round();
        let holds = steps >= 1.0 && (cycles / 4.0 - steps).abs() < 0.1;
        claim(holds, || measured.to_string()).into()
    });
}
