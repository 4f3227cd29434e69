//! `tdtool block PROGRAM:FUNCTION -- ARGS`: the values of the running program.

use super::{block, command, json, sandbox};
use crate::probe::line;
use crate::probe::programs::{CALLER, LOOP, program};
use crate::support::files::{Folder, text};
use crate::support::run::{ended, send, start, tdtool};
use crate::support::tools::gcc;
use crate::support::trial::{Trial, assert_holds, claim};
use crate::support::wait::until;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::Path;

/// Number 1, 2, 6, 7, 8 in encodings: rcx, rdx, rsi, rdi, r8.
fn registers(document: &Value) -> Vec<u64> {
    let all = &document["values"]["registers"];
    [1, 2, 6, 7, 8].iter().map(|number| all[number].as_u64().unwrap()).collect()
}

fn notes(document: &Value) -> String {
    document["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
fn a_block_starts_with_the_registers_of_its_running_program() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let Some(_busy) = sandbox() else { return };
    let (account, saved) = (folder.file("account"), folder.file("values.json"));
    // The first block of the loop: the load and the branch that follows the lowest bit.
    let place = format!("{}:sums+1", text(&program));
    // Call 3 begins after 10 + 11 + 12 entries, and has 13 trips.
    let values = ["--entry", "34", "--save-values", &saved, "--", &account, "9", "noise"];
    let (options, arguments) = values.split_at(4);
    let quick = ["--quick", "--budget", "3000", "--format", "json"];
    let captured = block([&[&*place][..], &quick, options, arguments].concat());
    if captured.stderr.contains("cannot trace") {
        eprintln!("skipped: {}", captured.stderr);
        return;
    }
    // The program's own output does not mix with the document.
    assert!(captured.stderr.contains("noise"), "{}", captured.stderr);
    let captured = captured.json();
    let [a, trips, b] = line(&account, 3)[..] else { panic!("three numbers") };
    let expected = registers(&captured);
    assert_eq!((expected[0], &expected[2..]), (0, &[trips, a, b][..]), "{captured}");
    let notes = notes(&captured);
    assert!(notes.contains("captured at entry 34 of the block"), "{notes}");
    assert!(notes.contains("13 more trips") && notes.contains("2 pages"), "{notes}");
    // The loop of several blocks ran as in the program, its memory and branches included.
    assert!(notes.contains("13 iterations with the program's registers, memory"), "{notes}");
    // Without the program: the same from the file, also for the dependency analysis.
    let again = json(&[&place, "--registers", &saved]);
    assert_eq!(registers(&again), expected);
    let deps = tdtool(["deps", &place, "--registers", &saved]);
    assert!(deps.status.success(), "{}", deps.stderr);
    folder.write("values.json", r#"{"schema":"tdtool.block/1"}"#);
    let wrong = block([&*place, "--registers", &saved]);
    assert!(wrong.stderr.contains("cannot read the captured values"), "{}", wrong.stderr);
}

#[test]
fn what_cannot_be_captured_is_an_error_with_its_remedy() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let options = ["-shared", "-fPIC"];
    let Some(library) = gcc(folder.path(), LOOP, &options, "libsums.so") else { return };
    let (own, loaded) = (format!("{}:sums", text(&program)), format!("{}:sums", text(&library)));
    let account = folder.file("account");
    for (arguments, code, word) in [
        (&["90", "--", "x"][..], 2, "PROGRAM:FUNCTION -- ARGS"),
        (&[&*loaded, "--entry", "1"], 2, "-- COMMAND"),
        (&["--asm", "nop", "--", "x"], 2, "cannot be used with"),
        (&[&*own, "--entry", "0"], 2, "--entry"),
        (&[&*own, "--", &*account, "0"], 1, "never entered"),
        (&[&*loaded, "--", "true"], 1, "not mapped"),
        (&[&*loaded, "--", "/nowhere/x"], 127, "cannot start"),
    ] {
        let output = block(arguments);
        if output.stderr.contains("cannot trace") {
            eprintln!("skipped: {}", output.stderr);
            return;
        }
        assert_eq!(output.code(), Some(code), "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(word), "{arguments:?}: {}", output.stderr);
    }
}

/// A loop of three blocks, as a whole: call c has 10 + c trips, so call 36 has entries 991 to 1036
/// and the next start of the loop after entry 1000 is that of call 37.
#[test]
fn a_loop_of_several_blocks_runs_with_the_values_of_its_program() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let place = |end: &str| format!("{}:{end}", text(&program));
    let listed = block(["--list", &place("sums"), "--format", "json"]).json();
    let (found, blocks) = (&listed["loops"][0], &listed["blocks"]);
    assert_eq!((&found["head"], &found["blocks"]), (&1.into(), &serde_json::json!([1, 2, 3])));
    assert_eq!(found["start"], blocks[1]["start"]);
    let alone = block([&*place("sums@0")]);
    assert_eq!(alone.code(), Some(2), "{}", alone.stderr);
    assert!(alone.stderr.contains("-- ARGS"), "{}", alone.stderr);
    assert!(block([&*place("sums@1")]).stderr.contains("no loop @1"));
    let Some(_busy) = sandbox() else { return };
    let account = folder.file("account");
    for name in ["sums@0".to_owned(), format!("sums@{}", found["start"].as_str().unwrap())] {
        let options = ["--quick", "--budget", "50", "--format", "json", "--", &account, "80"];
        let captured = block([&[&*place(&name)][..], &options].concat());
        if captured.stderr.contains("cannot trace") {
            eprintln!("skipped: {}", captured.stderr);
            return;
        }
        let captured = captured.json();
        let notes = notes(&captured);
        assert!(notes.contains("captured at entry 1037 of the block"), "{notes}");
        assert!(notes.contains("47 iterations with the program's registers"), "{notes}");
        assert_eq!(registers(&captured)[2], 47, "{captured}");
        assert!(captured["block"]["name"].as_str().unwrap().contains("@0, a loop of 3 blocks"));
    }
}

/// By hand (the symbol at the loop's head hides how often it is entered from outside): 10 to 89 trips, so the 40th of 80 executions has the median, after 10 + 11 + … + 48 = 1131
/// entries of the block; 5 % of the executions have 13 trips or fewer, 95 % 85 or fewer.
#[test]
fn a_typical_execution_has_the_median_of_all_trips() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let Some(_busy) = sandbox() else { return };
    let place = format!("{}:sums@0", text(&program));
    let account = folder.file("account");
    let options = ["--typical", "--quick", "--budget", "50", "--format", "json"];
    let values = ["--executions", "3", "--", &account, "80"];
    let captured = block([&[&*place][..], &options, &values].concat());
    if captured.stderr.contains("cannot trace") {
        eprintln!("skipped: {}", captured.stderr);
        return;
    }
    let captured = captured.json();
    let notes = notes(&captured);
    let chosen = "chosen: execution 40 of the loop (entry 1132 of 3960 of the block) with 49 \
                  iterations, the median; 5-95 %: 13-85, of 80 executions";
    assert!(notes.contains(chosen), "{notes}");
    assert!(notes.contains("captured at entry 1132 of the block"), "{notes}");
    assert_eq!(registers(&captured)[2], 49, "{captured}");
    // Not the first block of a loop.
    let place = format!("{}:sums+2", text(&program));
    let captured = block([&[&*place][..], &options, &values].concat()).json();
    let notes = self::notes(&captured);
    assert!(notes.contains("no typical execution was chosen: the block is not"), "{notes}");
}

/// Each run has 100 trips more in each call than the run before.
const OTHERWISE: &str = r#"
int main(int count, char **arguments) {
    FILE *out = fopen(arguments[1], "w"), *file = fopen(arguments[2], "a+");
    fseek(file, 0, SEEK_END);
    long runs = ftell(file);
    fputc('x', file);
    fclose(file);
    for (long c = 0; c < 80; c++) call(out, 100 * runs + c);
    return 0;
}
"#;

#[test]
fn without_the_same_execution_in_each_run_the_usual_one_is_captured() {
    let folder = Folder::new();
    let source = [CALLER, LOOP, OTHERWISE].concat();
    let Some(program) = gcc(folder.path(), &source, &["-O1"], "program") else { return };
    let Some(_busy) = sandbox() else { return };
    let (account, runs) = (folder.file("account"), folder.file("runs"));
    let place = format!("{}:sums@0", text(&program));
    let options = ["--typical", "--quick", "--budget", "50", "--format", "json"];
    let captured = block([&[&*place][..], &options, &["--", &account, &runs]].concat());
    if captured.stderr.contains("cannot trace") {
        eprintln!("skipped: {}", captured.stderr);
        return;
    }
    let notes = notes(&captured.json());
    assert!(notes.contains("no typical execution was chosen"), "{notes}");
    assert!(notes.contains("values captured at entry"), "{notes}");
}

/// Adds up a million numbers.
const LONG: &str = r#"
__asm__(".globl total\n.type total,@function\ntotal: xor %eax,%eax\n"
    "1: add (%rdi),%rax\n add $8,%rdi\n cmp %rsi,%rdi\n jne 1b\n ret\n.size total,.-total\n");
long total(long *first, long *end);
static long a[1000000];
int main(void) { return total(a, a + 1000000) != 0; }
"#;

#[test]
fn a_program_without_arguments_is_run_by_an_empty_list() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), LONG, &["-O1"], "program") else { return };
    let Some(_busy) = sandbox() else { return };
    let captured =
        block([&*format!("{}:total@0", text(&program)), "--quick", "--budget", "50", "--"]);
    if captured.stderr.contains("cannot trace") {
        eprintln!("skipped: {}", captured.stderr);
        return;
    }
    assert!(captured.stdout.contains("values captured at entry"), "{}", captured.stdout);
}

#[test]
fn a_long_loop_is_left_after_the_iterations_whose_memory_is_known() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), LONG, &["-O1"], "program") else { return };
    let Some(_busy) = sandbox() else { return };
    let place = format!("{}:total@0", text(&program));
    let captured =
        block([&*place, "--quick", "--budget", "50", "--format", "json", "--entry", "1"]);
    if captured.stderr.contains("cannot trace") {
        eprintln!("skipped: {}", captured.stderr);
        return;
    }
    let captured = captured.json();
    let notes = notes(&captured);
    let iterations = notes.split(" iterations with the program's").next().unwrap();
    let iterations: u64 = iterations.rsplit(' ').next().unwrap().parse().unwrap_or(0);
    assert!((2..=1024).contains(&iterations), "{notes}");
    assert!(notes.contains("; rsi is set to leave after them"), "{notes}");
}

/// Runs a program of `source` and measures loop 0 of its function `f` with the values it has there; `None`
/// where that is not possible here.
fn measured(source: &str, folder: &Folder) -> Option<Value> {
    let program = gcc(folder.path(), source, &["-O1"], "program")?;
    let place = format!("{}:f@0", text(&program));
    let captured = block([&*place, "--quick", "--budget", "50", "--format", "json", "--", "x"]);
    if captured.stderr.contains("cannot trace") {
        eprintln!("skipped: {}", captured.stderr);
        return None;
    }
    Some(captured.json())
}

/// Main: calls a function 300 times with 2,000 numbers.
const CALLS: &str = r#"
long f(long *first, long *end);
static long a[2000];
int main(void) {
    long sum = 0;
    for (long i = 0; i < 2000; i++) a[i] = 3 * i;
    for (int c = 0; c < 300; c++) sum += f(a, a + 2000);
    return sum == 1;
}
"#;

/// A multiplication of 3 cycles (uops.info, all cores since Nehalem and Zen) in each of 20,000 iterations,
/// of which the capture has some hundred: start and end of a run of those took a tenth of it.
const CHAIN: &str = r#"
long f(long first, long count);
__asm__(".globl f\n.type f,@function\nf: mov %rdi,%rax\n"
    "1: imul %rax,%rax\n sub $1,%rsi\n jne 1b\n ret\n.size f,.-f\n");
int main(void) { return f(3, 20000) == 1; }
"#;

#[test]
fn a_loop_longer_than_its_capture_takes_as_long_as_its_iterations() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    assert_holds("20,000 multiplications take 3 cycles each", || {
        let Some(captured) = measured(CHAIN, &folder) else { return Trial::Holds };
        let notes = notes(&captured);
        assert!(notes.contains("rsi is set to leave after them, long against short"), "{notes}");
        let Some(cycles) = captured["throughput"]["cycles"].as_f64() else {
            return Trial::Unsettled(captured["reason"].to_string());
        };
        claim((cycles - 3.0).abs() < 0.15, || format!("{cycles}")).into()
    });
}

/// Two exits compare the same; no more than some thousand of its 200,000 iterations are counted.
const SEVERAL: &str = r#"
long f(char *first, char *end);
static char a[200000];
__asm__(".globl f\n.type f,@function\nf: xor %eax,%eax\n"
    "1: testb $1,(%rdi)\n je 2f\n inc %rax\n"
    "2: inc %rdi\n cmp %rdi,%rsi\n jne 1b\n ret\n.size f,.-f\n");
int main(void) { return f(a, a + 200000) != 0; }
"#;

#[test]
fn a_long_loop_of_several_blocks_is_ended_earlier_and_its_path_is_listed() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    let Some(program) = gcc(folder.path(), SEVERAL, &["-O1"], "program") else { return };
    let place = format!("{}:f@0", text(&program));
    let options = ["--budget", "50", "--format", "json", "--against", &place, "--", "x"];
    let pair = block([&[&*place][..], &options].concat());
    if pair.stderr.contains("cannot trace") {
        eprintln!("skipped: {}", pair.stderr);
        return;
    }
    let pair = pair.json();
    for side in ["a", "b"] {
        let captured = &pair[side];
        let notes = notes(captured);
        assert!(notes.contains("rsi is set to leave after them"), "{captured}");
        // All numbers are even: `inc rax` is on no path.
        let lines = captured["block"]["instructions"].as_array().unwrap();
        let first =
            |line: &Value| line["text"].as_str().unwrap().split(' ').next().map(str::to_owned);
        let names: Vec<_> = lines.iter().filter_map(first).collect();
        assert_eq!(names, ["test", "je", "inc", "cmp", "jne"], "{captured}");
        // They are of one path, so that its bounds are known.
        let verdict = captured["hierarchy"]["verdict"].as_str().unwrap();
        assert!(!verdict.contains("several"), "{verdict}");
    }
}

/// Its memory is on more pages than were accessed while it was followed; its end is known to the program
/// only by a bound in memory.
#[test]
fn a_loop_that_was_not_followed_to_its_end_runs_to_it() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    let source = [
        CALLS,
        r#"__asm__(".globl f\n.type f,@function\nf: xor %eax,%eax\n mov %rsi,-8(%rsp)\n"
        "1: add (%rdi),%rax\n add $8,%rdi\n cmp -8(%rsp),%rdi\n jne 1b\n ret\n.size f,.-f\n");"#,
    ]
    .concat();
    let Some(captured) = measured(&source, &folder) else { return };
    let notes = notes(&captured);
    assert!(notes.contains("2000 iterations with the program's registers"), "{notes}");
    // 16,000 bytes on 4 or 5 pages, and the stack.
    let pages = captured["pages"].as_array().unwrap().len();
    assert!((5..=6).contains(&pages), "{pages}");
}

/// 4,800 bytes between two jumps, or before the only one.
#[test]
fn a_loop_longer_than_a_block_may_be_runs_whole() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    for jump in ["test %rdi,%rdi\\n jz 2f", ""] {
        let source = [
            CALLS,
            r#"__asm__(".globl f\n.type f,@function\nf: xor %eax,%eax\n mov $20,%ecx\n1:"#,
            jump,
            r#"\n .rept 1200\n add $0x11,%rax\n .endr\n dec %ecx\n jnz 1b\n2: ret\n.size f,.-f\n");"#,
        ]
        .concat();
        assert_holds("all of the loop's code runs", || {
            let Some(captured) = measured(&source, &folder) else { return Trial::Holds };
            // On a busy machine it may not be timed at all.
            let Some(cycles) = captured["throughput"]["cycles"].as_f64() else {
                return Trial::Unsettled(captured["reason"].to_string());
            };
            let notes = notes(&captured);
            assert!(notes.contains("20 iterations with the program's registers"), "{notes}");
            // 1,200 dependent additions of a cycle each. Without all of its code it left at once.
            assert!(cycles > 600.0, "{captured}");
            Trial::Holds
        });
    }
}

/// The table lies on three pages, of which the code names the first.
#[test]
fn data_behind_an_address_in_the_code_is_that_of_the_program() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    let source = [
        CALLS,
        r#"__asm__(".section .rodata\n .balign 4096\ntable: .rept 1200\n .quad 1\n .endr\n .quad 0\n.text\n"
        ".globl f\n.type f,@function\nf: xor %eax,%eax\n mov %rsi,%rcx\n"
        "1: lea table(%rip),%rdx\n"
        "2: add (%rdx),%rax\n add $8,%rdx\n cmpq $0,(%rdx)\n jne 2b\n"
        "sub $8000,%rcx\n cmp %rdi,%rcx\n jae 1b\n ret\n.size f,.-f\n");"#,
    ]
    .concat();
    let Some(captured) = measured(&source, &folder) else { return };
    let notes = notes(&captured);
    assert!(notes.contains("iterations with the program's registers"), "{notes}");
}

/// The carry flag from before the loop is part of its sum: flags are not taken over.
#[test]
fn a_run_that_ends_unlike_the_program_is_refused() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    let source = [
        CALLS,
        r#"__asm__(".globl f\n.type f,@function\nf: xor %eax,%eax\n mov $50,%ecx\n stc\n"
        "1: adc $0,%rax\n dec %ecx\n jnz 1b\n ret\n.size f,.-f\n");"#,
    ]
    .concat();
    let Some(captured) = measured(&source, &folder) else { return };
    let reason = format!("{} {}", captured["reason"], notes(&captured));
    assert!(reason.contains("it does not end as in the program"), "{captured}");
}

/// A program that says its process id and waits, stopped or not.
const WAITING: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(int count, char **arguments) {
    FILE *out = fopen(arguments[1], "w");
    fprintf(out, "%d\n", getpid());
    fclose(out);
    for (;;) pause();
}
void sums(void) {}
"#;

#[test]
fn nothing_is_left_of_the_program_when_tdtool_is_ended() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), WAITING, &["-O1"], "waiting") else { return };
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let account = folder.write("account", "");
        let child = start(&mut command([&*format!("{}:sums", text(&program)), "--", &account]));
        let mut pid = String::new();
        until(
            || {
                pid = folder.read("account").trim().to_owned();
                !pid.is_empty() || std::fs::metadata(format!("/proc/{}/exe", child.id())).is_err()
            },
            || "the program did not start".to_owned(),
        );
        send(&child, signal);
        let ended = ended(child);
        assert_ne!(ended.code(), Some(0));
        if pid.is_empty() {
            eprintln!("skipped: {}", ended.stderr);
            return;
        }
        // A zombie has no command line, and is gone once it is waited for.
        let line = format!("/proc/{pid}/cmdline");
        let gone =
            || !Path::new(&line).exists() || std::fs::read(&line).is_ok_and(|l| l.is_empty());
        until(gone, || format!("{pid} is still there"));
    }
}
