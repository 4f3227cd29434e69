//! Call chains by unwind tables: programs without frame pointers and without symbols, deep recursion, signals;
//! against what perf prints of the same recording.

use super::report;
use crate::record::busy::sampling;
use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{Ran, command, program, run};
use crate::support::tools::{gcc, tool};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// No frame pointers: the callers of `leaf` are `deep` a number of times, `aligned` (whose frame is found through
/// another register than the stack pointer), a signal's handler in `main`, and a comparison that the C library calls.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile unsigned sink;
__attribute__((noinline)) unsigned leaf(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++) x = x * 1664525u + 1013904223u;
    return x;
}
unsigned deep(unsigned d, unsigned n, unsigned x);
unsigned (*volatile again)(unsigned, unsigned, unsigned) = deep;
__attribute__((noinline)) unsigned deep(unsigned d, unsigned n, unsigned x) {
    return d ? again(d - 1, n, x + 1) * 3 + 1 : leaf(n, x) + 1;
}
__attribute__((noinline)) unsigned aligned(unsigned n, unsigned x) {
    char pad[128] __attribute__((aligned(64)));
    char *more = __builtin_alloca(n % 100 + 16);
    memset(pad, (int)x, sizeof pad);
    memset(more, (int)x, 16);
    return leaf(n, x + pad[x % 64]) + more[x % 16];
}
__attribute__((noinline)) void handler(int number) { sink += leaf(3000000, number); }
__attribute__((noinline)) int compare(const void *a, const void *b) {
    unsigned x = leaf(4000, *(const unsigned *)a), y = leaf(4000, *(const unsigned *)b);
    return (x > y) - (x < y);
}
int main(int argc, char **argv) {
    unsigned deepest = argc > 1 ? atoi(argv[1]) : 30, x = 1, all[100];
    signal(SIGUSR1, handler);
    for (int round = 0; round < 40; round++) {
        x += deep(deepest, 3000000, x) + aligned(3000000, x);
        raise(SIGUSR1);
        for (int i = 0; i < 100; i++) all[i] = x * i;
        qsort(all, 100, sizeof *all, compare);
    }
    printf("%u\n", x + sink);
}
"#;

fn compiled(folder: &Folder, more: &[&str]) -> Option<PathBuf> {
    let mut arguments = vec!["-O2", "-fomit-frame-pointer"];
    arguments.extend(more);
    gcc(folder.path(), PROGRAM, &arguments, "work")
}

/// Folded stacks of user mode without the thread's name; kernel frames and what perf adds to names are left out.
fn user(lines: impl Iterator<Item = (Vec<String>, u64)>) -> BTreeMap<String, u64> {
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for (names, samples) in lines {
        let names: Vec<&str> =
            names.iter().map(|name| name.split("@@").next().unwrap_or(name)).collect();
        *all.entry(names.join(";")).or_default() += samples;
    }
    all
}

fn folded(recording: &Path) -> BTreeMap<String, u64> {
    let text = report(&[text(recording), "--folded", "-"]).succeeded().stdout;
    let line = |line: &str| {
        let (stack, samples) = line.rsplit_once(' ').expect("stack and samples");
        let names = stack.split(';').skip(1).map(str::to_owned).collect();
        (names, samples.parse().expect("a number"))
    };
    user(text.lines().map(line))
}

/// The same by `perf script`.
fn by_perf(recording: &Path) -> BTreeMap<String, u64> {
    let arguments = ["script", "--no-inline", "--max-stack", "1000", "-F", "ip,sym", "-i"];
    let script = run(program("perf").args(arguments).arg(recording)).succeeded().stdout;
    let mut chains: Vec<Vec<String>> = vec![Vec::new()];
    for line in script.lines() {
        match line.split_whitespace().nth(1) {
            Some(name) => chains.last_mut().expect("one").insert(0, name.to_owned()),
            None => chains.push(Vec::new()),
        }
    }
    user(chains.into_iter().filter(|chain| !chain.is_empty()).map(|chain| (chain, 1)))
}

#[test]
fn chains_of_perfs_recording_are_those_that_perf_prints() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, &[]) else { return };
    let data = folder.path().join("perf.data");
    let mut perf = program("perf");
    perf.args(["record", "-F", "2000", "--call-graph", "dwarf", "-e", "cpu-clock:u", "-o"]);
    match perf.arg(&data).arg("--").arg(&work).run_limited().map(Ran::from) {
        Ok(ran) if ran.status.success() => {}
        other => {
            eprintln!("skipped: perf cannot record here: {other:?}");
            return;
        }
    }
    let (ours, theirs) = (folded(&data), by_perf(&data));
    // The dynamic linker and other libraries: perf finds their symbols elsewhere, or not at all.
    let of_program = |chains: BTreeMap<String, u64>| -> BTreeMap<String, u64> {
        let names = ["leaf", "deep", "aligned"];
        let ends = |stack: &str| stack.rsplit(';').next().is_some_and(|name| names.contains(&name));
        let mut kept = BTreeMap::new();
        for (stack, samples) in chains.into_iter().filter(|(stack, _)| ends(stack)) {
            // From `main` inwards, without the C library's functions, which need debug files.
            let frames = stack.split(';').skip_while(|name| *name != "main");
            let own = ["main", "leaf", "deep", "aligned", "compare", "handler"];
            let frames: Vec<&str> = frames.filter(|name| own.contains(name)).collect();
            *kept.entry(frames.join(";")).or_default() += samples;
        }
        kept
    };
    let (ours, theirs) = (of_program(ours), of_program(theirs));
    assert_eq!(ours, theirs);
    let all: u64 = ours.values().sum();
    assert!(all > 100, "{ours:?}");
    let deep = format!("main;{}leaf", "deep;".repeat(31));
    for stack in [&deep, "main;aligned;leaf", "main;handler;leaf", "main;compare;leaf"] {
        assert!(ours.contains_key(stack), "{stack}: {ours:?}");
    }
}

/// Records with tdtool; the folded stacks and the note of `--callers`.
fn recorded(
    folder: &Folder,
    work: &Path,
    how: &str,
    deepest: &str,
) -> (BTreeMap<String, u64>, String) {
    let session = folder.path().join("run.tds");
    let record =
        ["record", "-F", "999", "--buffer", "4096", "--call-graph", how, "-o", text(&session)];
    run(command(record).args(["--", text(work), deepest])).succeeded();
    let shown = report(&[text(&session), "--callers", "main"]);
    (folded(&session), format!("{}{}", shown.stdout, shown.stderr))
}

#[test]
fn stripped_programs_without_frame_pointers_have_whole_chains() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, &["-Wl,--build-id=none"]) else { return };
    let Some(listing) = tool("nm", &[text(&work)]) else { return };
    let Some(_) = tool("strip", &[text(&work)]) else { return };
    let (chains, _) = recorded(&folder, &work, "dwarf", "30");
    // Functions of stripped files are called by file and address.
    let named = |symbol: &str| {
        let line = listing.lines().find(|line| line.ends_with(&format!(" {symbol}")));
        let start = line.and_then(|line| line.split(' ').next()).expect(symbol);
        format!("work+{:#x}", u64::from_str_radix(start, 16).expect("an address"))
    };
    let (main, deep, leaf) = (named("main"), named("deep"), named("leaf"));
    let recursion = format!("{main};{}{leaf}", format!("{deep};").repeat(31));
    assert!(chains.keys().any(|stack| stack.ends_with(&recursion)), "{chains:#?}");
    let (handler, compare) = (named("handler"), named("compare"));
    let has = |inside: &str| {
        let ends = format!("{inside};{leaf}");
        chains.keys().any(|stack| stack.contains(&format!("{main};")) && stack.ends_with(&ends))
    };
    assert!(has(&handler) && has(&compare), "{chains:#?}");
}

#[test]
fn a_stack_that_is_deeper_than_its_copy_is_told() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, &[]) else { return };
    let (chains, shown) = recorded(&folder, &work, "dwarf,1024", "1000");
    assert!(shown.contains("1024"), "{shown}");
    let cut =
        chains.keys().any(|stack| stack.starts_with("deep;deep;") && stack.ends_with(";leaf"));
    assert!(cut, "what is known of them is shown: {chains:#?}");
}

#[test]
fn how_chains_are_recorded_is_checked() {
    for wrong in ["dwarf,", "dwarf,7", "dwarf,65536", "lbr,8", "fp,8"] {
        let refused = run(&mut command(["record", "--call-graph", wrong, "-o", "x", "--", "true"]));
        assert_eq!(refused.code(), Some(2), "{wrong}: {}", refused.stderr);
    }
}

/// Only a PMU records calls.
#[test]
fn chains_by_branch_records_say_what_they_need() {
    let folder = Folder::new();
    let session = folder.file("lbr.tds");
    let ran = run(&mut command(["record", "--call-graph", "lbr", "-o", &session, "--", "true"]));
    if ran.code() == Some(3) {
        for part in ["by branch records", "--call-graph dwarf"] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
    let both = ["record", "--call-graph", "lbr", "--branches", "-o", &session, "--", "true"];
    assert_eq!(run(&mut command(both)).code(), Some(2));
}

/// Two levels of inlined functions: of a caller, and of the function with the samples.
const INLINED: &str = r#"
#include <stdio.h>
static volatile unsigned rounds = 3000000;
static inline __attribute__((always_inline)) unsigned step(unsigned x) {
    // Long, so that samples are of it although they are of the instruction after the one that took the time.
    for (int k = 0; k < 4; k++) x = (x * 1664525u + 1013904223u) ^ x >> 7;
    return x;
}
static inline __attribute__((always_inline)) unsigned repeat(unsigned x) {
    for (unsigned i = 0, n = rounds; i < n; i++) x = step(x);
    return x;
}
__attribute__((noinline)) unsigned leaf(unsigned x) { return repeat(x) ^ 5; }
static inline __attribute__((always_inline)) unsigned inner(unsigned x) { return leaf(x) * 3; }
static inline __attribute__((always_inline)) unsigned outer(unsigned x) { return inner(x + 1) + 5; }
__attribute__((noinline)) unsigned holder(unsigned x) { return outer(x) ^ 77; }
int main(void) {
    unsigned x = 1;
    for (int round = 0; round < 60; round++) x = holder(x);
    printf("%u\n", x);
}
"#;

#[test]
fn inlined_functions_are_frames_of_call_chains() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = gcc(folder.path(), INLINED, &["-O2", "-g"], "work") else { return };
    let (chains, _) = recorded(&folder, &work, "dwarf", "0");
    let whole = "main;holder;outer (inlined);inner (inlined);leaf;repeat (inlined);step (inlined)";
    assert!(chains.keys().any(|stack| stack.ends_with(whole)), "{chains:#?}");
    let session = folder.file("run.tds");
    let plain = report(&[&session, "--folded", "-", "--no-inline"]).succeeded().stdout;
    assert!(plain.contains(";main;holder;leaf ") && !plain.contains("inlined"), "{plain}");
    let callers = report(&[&session, "--callers", "leaf"]).succeeded().stdout;
    assert!(callers.contains("inner (inlined)"), "{callers}");
    let callers = report(&[&session, "--callers", "inner"]).succeeded().stdout;
    assert!(callers.contains("outer (inlined)"), "{callers}");
    // Trees, of the same chains as the stacks: each function one level below the one that it calls, or is called by.
    let rows = |option: &str, name: &str| -> Vec<String> {
        let text = report(&[&session, option, name]).succeeded().stdout;
        let tree = text
            .split(&format!("ers of {name}\n"))
            .nth(1)
            .or_else(|| text.split(&format!("ees of {name}\n")).nth(1));
        let rows = tree.expect("a tree").lines().take_while(|line| line.starts_with("  "));
        // Share and samples before it.
        rows.map(|line| line.get(20..).unwrap_or_default().to_owned()).collect()
    };
    let callers = rows("--callers", "leaf");
    let expected = ["inner (inlined)", "  outer (inlined)", "    holder", "      main"];
    assert_eq!(callers.get(..4), Some(&expected.map(String::from)[..]), "{callers:?}");
    let callees = rows("--callees", "holder");
    let expected = ["outer (inlined)", "  inner (inlined)", "    leaf", "      repeat (inlined)"];
    assert_eq!(callees.get(..4), Some(&expected.map(String::from)[..]), "{callees:?}");
}

/// The frames of each address that has samples, as addr2line has them.
#[test]
fn inlined_functions_are_those_of_addr2line() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = gcc(folder.path(), INLINED, &["-O2", "-g", "-no-pie"], "work") else { return };
    let (chains, _) = recorded(&folder, &work, "dwarf", "0");
    let recording = profile::session::load_recording(&folder.path().join("run.tds")).expect("it");
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for sample in crate::profile::samples(&recording) {
        let address = format!("{:#x}", sample.ip.expect("an address"));
        let Some(listed) = tool("addr2line", &["-fi", "-e", text(&work), &address]) else { return };
        // Function and line of each frame, the innermost first.
        let mut names: Vec<&str> = listed.lines().step_by(2).collect();
        names.reverse();
        if names[0] == "leaf" {
            *expected.entry(names.join(";")).or_default() += 1;
        }
    }
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, samples) in &chains {
        let Some((_, inner)) = stack.split_once("inner (inlined);") else { continue };
        let user = inner
            .split(';')
            .take_while(|name| ["leaf", "repeat (inlined)", "step (inlined)"].contains(name));
        let names: Vec<&str> = user.map(|name| name.trim_end_matches(" (inlined)")).collect();
        // Samples in the kernel have other addresses.
        if names.len() == inner.split(';').count() {
            *found.entry(names.join(";")).or_default() += samples;
        }
    }
    assert_eq!(found, expected);
}
