//! Where the time goes: hot functions and blocks of real programs, as a user asks for them.

#![allow(clippy::print_stderr)]

use isa::code::{Location, read_location};
use profile::hot::{Filter, Profile};
use profile::session::load_recording;
use profile::symbols::Search;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

fn tdtool(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tdtool")).args(arguments).output().expect("tdtool starts")
}

/// The program, compiled with lines; `None`, said aloud, without a compiler.
fn program(folder: &Path, flags: &[&str]) -> Option<PathBuf> {
    compiled(folder, PROGRAM, flags)
}

fn compiled(folder: &Path, text: &str, flags: &[&str]) -> Option<PathBuf> {
    let (source, binary) = (folder.join("work.c"), folder.join("work"));
    std::fs::write(&source, text).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-g"]).args(flags).arg("-o").arg(&binary).arg(&source);
    match gcc.status() {
        Ok(status) if status.success() => Some(binary),
        other => {
            eprintln!("skipped: gcc makes no program here ({other:?})");
            None
        }
    }
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn share(report: &serde_json::Value, name: &str) -> f64 {
    let rows = report["functions"].as_array().expect("functions");
    let row = rows.iter().find(|row| row["name"] == name);
    row.and_then(|row| row["share"].as_f64()).unwrap_or(0.0)
}

/// Records the program with the CPU clock.
fn record(folder: &Path, binary: &Path, more: &[&str]) -> Option<String> {
    let session = folder.join("run.tds").to_str().expect("a name").to_owned();
    let binary = binary.to_str().expect("a name");
    let arguments = [&["record", "-o", &session], more, &["--", binary, "150"]].concat();
    let output = tdtool(&arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("cannot sample") {
        eprintln!("skipped: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(session)
}

#[test]
fn a_function_that_does_three_times_the_work_has_three_quarters_of_the_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = program(folder.path(), &[]) else { return };
    let Some(session) = record(folder.path(), &binary, &[]) else { return };
    let report = json(&tdtool(&["report", &session, "--format", "json"]));
    let (heavy, light) = (share(&report, "heavy"), share(&report, "light"));
    let samples = report["sampled"]["samples"].as_f64().expect("samples");
    // 3 : 1 by construction; five standard errors of so many samples.
    let error = 5.0 * (0.75 * 0.25 / samples).sqrt() + 0.02;
    let found = heavy / (heavy + light);
    assert!((found - 0.75).abs() < error, "{found} ± {error} of {samples}: {report:#}");
    assert_eq!(report["functions"][0]["module"], "work");
    assert!(report["functions"][0]["file"].as_str().is_some_and(|f| f.ends_with("work.c")));
    let block = &report["blocks"][0];
    assert_eq!((&block["function"], &block["loop_depth"]), (&"heavy".into(), &1.into()));
    assert!(block["start"].as_str().is_some_and(|a| a.starts_with("0x")));
}

#[test]
fn stripped_code_gives_functions_without_names_and_no_wrong_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = program(folder.path(), &["-s"]) else { return };
    let Some(session) = record(folder.path(), &binary, &[]) else { return };
    let report = json(&tdtool(&["report", &session, "--format", "json"]));
    let rows = report["functions"].as_array().expect("functions");
    let own: Vec<_> = rows.iter().filter(|r| r["module"] == "work").collect();
    assert!(own[0]["share"].as_f64().is_some_and(|s| s > 0.5), "{report:#}");
    assert!(own.iter().all(|r| r["name"].as_str().is_some_and(|n| n.starts_with(".text+"))));
}

#[test]
fn a_program_that_was_rebuilt_since_is_not_annotated() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = program(folder.path(), &["-Wl,--build-id"]) else { return };
    let Some(session) = record(folder.path(), &binary, &[]) else { return };
    if program(folder.path(), &["-Wl,--build-id", "-O0"]).is_none() {
        return;
    }
    let output = tdtool(&["report", &session]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("it has changed since"), "{text}");
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
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = compiled(folder.path(), SWITCH, &[]) else { return };
    let Some(session) = record(folder.path(), &binary, &[]) else { return };
    let file = std::fs::read(&binary).expect("the program");
    let by_number: Vec<(u64, u64)> = (0..)
        .map_while(|number| read_location(&file, &Location::Function("heavy".into(), number)).ok())
        .map(|block| (block.start, block.start + block.bytes.len() as u64))
        .collect();
    let recording = load_recording(Path::new(&session)).expect("a recording");
    let mut profile = Profile::new(&recording, &Filter::default(), Search::default());
    let index = profile.functions.iter().position(|f| f.name == "heavy").expect("heavy is hot");
    let annotated = profile.annotate(index);
    let hot: Vec<_> = annotated.blocks.iter().map(|b| (b.block.start, b.block.end)).collect();
    assert_eq!(hot, by_number);
    assert!(hot.len() > 12, "the cases of the switch are blocks: {hot:x?}");
    assert!(annotated.blocks.iter().all(|b| !b.unresolved), "its jump table is found");
}

#[test]
fn folded_stacks_alone_print_no_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = program(folder.path(), &FRAMES) else { return };
    let Some(session) = record(folder.path(), &binary, &["-g"]) else { return };
    let folded = folder.path().join("folded");
    let output = tdtool(&["report", &session, "--folded", folded.to_str().expect("a name")]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let stacks = std::fs::read_to_string(folded).expect("folded stacks");
    assert!(stacks.lines().any(|line| line.contains(";main;heavy ")), "{stacks}");
}

#[test]
fn callers_need_chains_and_are_found_in_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = program(folder.path(), &FRAMES) else { return };
    let Some(session) = record(folder.path(), &binary, &[]) else { return };
    let refused = tdtool(&["report", &session, "--callers", "heavy"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("record with -g"));
    let Some(session) = record(folder.path(), &binary, &["-g"]) else { return };
    let folded = folder.path().join("folded");
    let name = folded.to_str().expect("a name");
    let output = tdtool(&["report", &session, "--callers", "heavy", "--folded", name]);
    let text = String::from_utf8_lossy(&output.stdout);
    let callers = text.split("Callers of heavy").nth(1).expect("callers");
    assert!(callers.lines().nth(1).is_some_and(|line| line.ends_with(" main")), "{callers}");
    let folded = std::fs::read_to_string(folded).expect("folded stacks");
    assert!(folded.lines().any(|line| line.contains(";main;heavy ")), "{folded}");
}

#[test]
fn the_hottest_block_is_measured_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = program(folder.path(), &[]) else { return };
    let Some(session) = record(folder.path(), &binary, &[]) else { return };
    // A neighbour may keep the block from being measured for a while.
    for _ in 0..5 {
        let arguments = ["report", &session, "--measure", "--blocks", "1", "--format", "json"];
        let report = json(&tdtool(&arguments));
        let measured = &report["blocks"][0]["measured"];
        if measured["status"] == "unstable" {
            continue;
        }
        // imul and add, dependent: 3 + 1 cycles on all Intel since Nehalem and AMD Zen
        // (uops.info); compilers may unroll it.
        let cycles = measured["cycles"].as_f64().expect("cycles");
        let steps = (cycles / 4.0).round();
        assert!(steps >= 1.0 && (cycles / 4.0 - steps).abs() < 0.1, "{measured:#}");
        return;
    }
    eprintln!("skipped: the core was shared all the time");
}

/// A loop whose block takes long, and nested ones whose innermost is too hot to be counted.
const COUNTED: &str = r#"
#include <stdlib.h>
static char space[1 << 19];
__attribute__((noinline)) void fill(long n) {
    for (long i = 0; i < n; i++) {
        char *to = space;
        long count = sizeof space;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(i) : "memory");
    }
}
__attribute__((noinline)) unsigned nested(long n, unsigned x) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < 3000; j++) {
            x = x * 1664525u + 1013904223u;
            __asm__ volatile("" : "+r"(x));
        }
    return x;
}
int main(int argc, char **argv) {
    fill(atol(argv[1]));
    return nested(atol(argv[2]), argc) == 1;
}
"#;

/// A report with counts of [`COUNTED`]; `None`, said aloud, where it cannot be made.
fn counted(arguments: [&str; 2]) -> Option<serde_json::Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, binary) = (folder.path().join("counted.c"), folder.path().join("counted"));
    std::fs::write(&source, COUNTED).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-o"]).arg(&binary).arg(&source);
    if !gcc.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: gcc makes no program here");
        return None;
    }
    let binary = binary.to_str().expect("UTF-8");
    counts_of(&["--", binary, arguments[0], arguments[1]])
}

/// A report with counts; `None`, said aloud, where it cannot be made.
fn counts_of(whom: &[&str]) -> Option<serde_json::Value> {
    let options = ["report", "--counts", "--blocks", "2", "--format", "json"];
    let run = tdtool(&[&options, whom].concat());
    let errors = String::from_utf8_lossy(&run.stderr);
    if errors.contains("breakpoints") || errors.contains("nothing can be sampled") {
        eprintln!("skipped: {errors}");
        return None;
    }
    Some(json(&run))
}

/// The hottest block of a function.
fn block<'r>(report: &'r serde_json::Value, function: &str) -> Option<&'r serde_json::Value> {
    report["blocks"].as_array()?.iter().find(|b| b["function"] == function)
}

#[test]
fn every_entry_of_a_block_is_counted() {
    let Some(report) = counted(["9000", "1"]) else { return };
    let block = block(&report, "fill").expect("the block that takes the time");
    // The loop runs as often as the argument says.
    assert_eq!(block["entries"].as_f64(), Some(9000.0), "{block}");
    assert_eq!(block["entries_error"].as_f64(), Some(0.0), "{block}");
    assert!(block["ns_per_entry"].as_f64().is_some_and(|ns| ns > 0.0), "{block}");
}

#[test]
fn a_block_that_is_too_hot_to_be_counted_follows_from_its_loops() {
    // Windows are too few where a neighbour leaves the program no time.
    for _ in 0..3 {
        let Some(report) = counted(["1", "40000"]) else { return };
        let block = block(&report, "nested").expect("the innermost loop");
        let Some(entries) = block["entries"].as_f64() else {
            let how = block["entries_how"].as_str().unwrap_or_default();
            assert!(how.starts_with("not known"), "{block}");
            continue;
        };
        // 40,000 times 3,000: every turn of the outer loop is as any other.
        assert!((entries / 1.2e8 - 1.0).abs() <= 0.001, "{block}");
        assert!(block["entries_error"].as_f64().is_some_and(|e| e < 0.1), "{block}");
        return;
    }
    panic!("three runs, and none told how often the loop runs");
}

/// An inner loop of 1 to 6,000 turns by chance, or of 1 and 1,000 in turn, on as many threads as asked
/// for. Says how often it has run.
const UNEVEN: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static long outer;
static int kind;
__attribute__((noinline)) void *uneven(void *number) {
    unsigned chance = 12345 + (unsigned)(long)number, x = chance;
    long all = 0;
    for (long i = 0; i < outer; i++) {
        chance = chance * 1103515245u + 12345u;
        long turns = kind ? (i % 2 ? 1000 : 1) : 1 + (chance >> 8) % 6000;
        all += turns;
        for (long j = 0; j < turns; j++) {
            x = x * 1664525u + 1013904223u;
            __asm__ volatile("" : "+r"(x));
        }
    }
    return (void *)all;
}
int main(int argc, char **argv) {
    pthread_t threads[8];
    int number = atoi(argv[3]);
    long all = 0;
    kind = atoi(argv[1]);
    outer = atol(argv[2]);
    for (long i = 0; i < number; i++) pthread_create(&threads[i], 0, uneven, (void *)i);
    for (long i = 0; i < number; i++) {
        void *result;
        pthread_join(threads[i], &result);
        all += (long)result;
    }
    FILE *told = fopen(argv[4], "w");
    fprintf(told, "%ld\n", all);
    fclose(told);
}
"#;

/// How far [`UNEVEN`]'s count by tdtool is from its own, in times of the error beside it.
fn uneven(arguments: [&str; 3]) {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["-O1", "-pthread"];
    let Some(binary) = compiled(folder.path(), UNEVEN, &flags) else { return };
    let (binary, told) = (binary.display().to_string(), folder.path().join("told"));
    let mut seen = Vec::new();
    // One interval of twenty does not hold the truth; three in a row do not one time in 8,000.
    for _ in 0..3 {
        let [kind, outer, threads] = arguments;
        let path = told.to_str().expect("UTF-8");
        let Some(report) = counts_of(&["--", &binary, kind, outer, threads, path]) else { return };
        let truth: f64 =
            std::fs::read_to_string(&told).expect("told").trim().parse().expect("a number");
        let block = block(&report, "uneven").expect("the inner loop");
        let (entries, error) = (block["entries"].as_f64(), block["entries_error"].as_f64());
        if let (Some(entries), Some(error)) = (entries, error) {
            let off = (entries / truth - 1.0).abs();
            assert!(off <= 3.0 * error + 0.01, "{off} ± {error}: {block}");
            if off <= error {
                return;
            }
        }
        seen.push((truth, entries, error));
    }
    panic!("{seen:?}");
}

#[test]
fn loops_of_uneven_length_are_within_their_error() {
    uneven(["0", "40000", "1"]);
}

#[test]
fn long_and_short_loops_in_turn_are_within_their_error() {
    uneven(["1", "200000", "1"]);
}

#[test]
fn loops_of_two_threads_are_within_their_error() {
    uneven(["0", "20000", "2"]);
}

#[test]
fn a_child_of_the_command_is_counted_from_its_first_instruction() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = compiled(folder.path(), COUNTED, &[]) else { return };
    // The shell forks, since it has something left to do.
    let script = format!("{} 9000 1; true", binary.display());
    let Some(report) = counts_of(&["--", "sh", "-c", &script]) else { return };
    let block = block(&report, "fill").expect("the block that takes the time");
    assert_eq!(block["entries"].as_f64(), Some(9000.0), "{block}");
    assert_eq!(block["entries_error"].as_f64(), Some(0.0), "{block}");
}

/// Fills memory until it is told to end, and tells how often it has, a second.
const RATE: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <time.h>
static char space[1 << 22];
static volatile sig_atomic_t over;
static void end(int signal) { over = 1; }
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
__attribute__((noinline)) long fill(void) {
    long n = 0;
    for (; !over; n++) {
        char *to = space;
        long count = sizeof space;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(n) : "memory");
    }
    return n;
}
int main(void) {
    signal(SIGTERM, end);
    double begin = now();
    long n = fill();
    printf("%f\n", n / (now() - begin));
}
"#;

#[test]
fn entries_of_a_live_process_are_those_of_a_second() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = compiled(folder.path(), RATE, &[]) else { return };
    let mut seen = Vec::new();
    // The window is a part of the program's life: a neighbour may have slowed down the other.
    for _ in 0..6 {
        let program = Command::new(&binary).stdout(std::process::Stdio::piped()).spawn();
        let program = program.expect("it starts");
        let pid = program.id().to_string();
        let report = counts_of(&["-p", &pid, "--duration", "1"]);
        let ended = Command::new("kill").arg(&pid).status().expect("kill");
        let output = program.wait_with_output().expect("it ends");
        let Some(report) = report else { return };
        assert!(ended.success());
        let told = String::from_utf8_lossy(&output.stdout);
        let rate: f64 = told.trim().parse().expect("its own count");
        let block = block(&report, "fill").expect("the block that takes the time");
        let entries = block["entries"].as_f64().expect("counted");
        assert!(block["entries_how"].as_str().is_some_and(|how| how.starts_with("a second")));
        if (entries / rate - 1.0).abs() < 0.3 {
            return;
        }
        seen.push((entries, rate));
    }
    panic!("entries by tdtool and by the program itself: {seen:?}");
}

#[test]
fn a_folder_of_perf_record_threads_is_refused_with_its_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    // As it writes it: a perf.data file named `data`, and one for each thread.
    std::fs::write(folder.path().join("data"), b"PERFILE2").expect("written");
    let output = tdtool(&["report", folder.path().to_str().expect("UTF-8")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("record without --threads"), "{text}");
}

#[test]
fn recordings_cannot_be_counted_and_the_remedy_is_named() {
    let output = tdtool(&["report", "--counts", "some.data"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("--counts") && text.contains("-- COMMAND"), "{text}");
}
