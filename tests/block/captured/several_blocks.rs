//! Loops of several blocks.

use super::{CALLS, measured, notes, registers, traced};
use crate::block::{block, sandbox};
use crate::probe::programs::{CALLER, LOOP, program};
use crate::support::files::{Folder, text};
use crate::support::tools::gcc;
use crate::support::trial::{Trial, assert_holds, claim};
use serde_json::Value;

/// Whether the execution whose values are shown is not the one that was asked for: that one could not be timed.
fn is_of_another(notes: &str) -> bool {
    notes.contains("registers and pages are those of entry")
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
    let Some(_busy) = sandbox() else { return };
    let account = folder.file("account");
    for name in ["sums@0".to_owned(), format!("sums@{}", found["start"].as_str().unwrap())] {
        let options = ["--quick", "--budget", "50", "--format", "json", "--", &account, "80"];
        let place = place(&name);
        let asked = [&[&*place][..], &options].concat();
        assert_holds("a loop of several blocks runs as in its program", || {
            let Some(captured) = traced(block(&asked)) else {
                return Trial::Unsettled("this machine lets no process be traced".to_owned());
            };
            let captured = captured.json();
            let notes = notes(&captured);
            assert!(notes.contains("entry 1037 "), "{notes}");
            assert!(captured["block"]["name"].as_str().unwrap().contains("@0"));
            if captured["status"] == "failed" {
                // On a busy machine none may come to its end in time.
                return Trial::Unsettled(captured["reason"].to_string());
            }
            // Or not this one, but another, which the document then names.
            let of_another = is_of_another(&notes);
            let trips = registers(&captured)[2];
            assert_eq!(trips == 47, !of_another, "{captured}");
            if of_another {
                return Trial::Unsettled(notes);
            }
            claim(notes.contains("47 iterations"), || notes).into()
        });
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
    let asked = [&[&*place][..], &options, &values].concat();
    // Beside other work none of the executions may be timed, or not the chosen one: then others stand for it.
    assert_holds("the median of all trips is captured", || {
        let Some(captured) = traced(block(&asked)) else {
            return Trial::Unsettled("this machine lets no process be traced".to_owned());
        };
        let captured = captured.json();
        let notes = notes(&captured);
        for value in
            ["execution 40 ", "entry 1132 of 3960 ", "49 iterations", "13-85", " 80 executions"]
        {
            assert!(notes.contains(value), "{value}: {notes}");
        }
        match captured["status"].as_str() {
            Some("ok") if !is_of_another(&notes) => {
                let trips = registers(&captured)[2];
                claim(trips == 49, || format!("{trips} trips: {captured}")).into()
            }
            _ => Trial::Unsettled(format!("{} {notes}", captured["reason"])),
        }
    });
    // Not the first block of a loop.
    let place = format!("{}:sums+2", text(&program));
    let captured = block([&[&*place][..], &options, &values].concat()).json();
    let notes = notes(&captured);
    assert!(notes.contains("no typical execution"), "{notes}");
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
    let Some(captured) =
        traced(block([&[&*place][..], &options, &["--", &account, &runs]].concat()))
    else {
        return;
    };
    let notes = notes(&captured.json());
    assert!(notes.contains("no typical execution") && notes.contains(" at entry "), "{notes}");
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
    let Some(pair) = traced(block([&[&*place][..], &options].concat())) else { return };
    let pair = pair.json();
    for side in ["a", "b"] {
        let captured = &pair[side];
        let notes = notes(captured);
        assert!(notes.contains("rsi is set"), "{captured}");
        // On a busy machine its samples may disagree.
        need!(captured["throughput"]["cycles"].is_number(), notes);
        // What the program's misses cost is not in the number.
        assert!(notes.contains("--loads"), "{notes}");
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
            r#"\n .rept 1200\n xor $0x11,%rax\n .endr\n dec %ecx\n jnz 1b\n2: ret\n.size f,.-f\n");"#,
        ]
        .concat();
        assert_holds("all of the loop's code runs", || {
            let Some(captured) = measured(&source, &folder) else { return Trial::Holds };
            // On a busy machine it may not be timed at all.
            let Some(cycles) = captured["throughput"]["cycles"].as_f64() else {
                return Trial::Unsettled(captured["reason"].to_string());
            };
            let notes = notes(&captured);
            assert!(notes.contains("20 iterations"), "{notes}");
            // 1,200 dependent operations of a cycle each on every core; additions of constants take less since Golden
            // Cove, which does them when it renames registers. Without all of its code it left at once.
            assert!(cycles > 600.0, "{captured}");
            Trial::Holds
        });
    }
}

/// Calls a function in each of its iterations.
const CALLING: &str = r#"
long f(long count);
__asm__("g: ret\n.globl f\n.type f,@function\nf: mov %rdi,%rcx\n"
    "1: add %rcx,%rax\n call g\n test $1,%rcx\n je 2f\n inc %rax\n2: dec %rcx\n jne 1b\n ret\n.size f,.-f\n");
int main(void) { return f(100000) == 1; }
"#;

#[test]
fn a_loop_with_calls_is_refused_in_words_and_not_measured_as_its_first_block() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    let Some(captured) = measured(CALLING, &folder) else { return };
    assert_eq!(captured["status"], "failed", "{captured}");
    let reason = captured["reason"].as_str().unwrap();
    assert!(reason.contains("`call`") || reason.contains("iteration 1"), "{reason}");
}
