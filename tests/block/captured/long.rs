//! Loops that run further than they are followed.

use super::{CALLS, as_loop, measured, notes, traced};
use crate::block::{block, sandbox};
use crate::support::files::{Folder, text};
use crate::support::tools::gcc;
use crate::support::trial::{Trial, assert_holds, claim};

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
    let Some(captured) =
        traced(block([&*format!("{}:total@0", text(&program)), "--quick", "--budget", "50", "--"]))
    else {
        return;
    };
    assert!(captured.stdout.contains(" at entry "), "{}", captured.stdout);
}

#[test]
fn a_long_loop_is_left_after_the_iterations_whose_memory_is_known() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), LONG, &["-O1"], "program") else { return };
    let Some(_busy) = sandbox() else { return };
    let place = format!("{}:total@0", text(&program));
    let asked = [&*place, "--quick", "--budget", "50", "--format", "json", "--entry", "1"];
    let Some(captured) = as_loop(&asked) else { return };
    let notes = notes(&captured);
    let iterations = notes.split(" iterations with the program's").next().unwrap();
    let iterations: u64 = iterations.rsplit(' ').next().unwrap().parse().unwrap_or(0);
    assert!((2..=1024).contains(&iterations), "{notes}");
    assert!(notes.contains("rsi is set"), "{notes}");
}

/// A multiplication of 3 cycles (uops.info, all cores since Nehalem and Zen) in each of 400,000,000 iterations,
/// of which the capture has some hundred: start and end of a run of those took a tenth of it.
const CHAIN: &str = r#"
long f(long first, long count);
__asm__(".globl f\n.type f,@function\nf: mov %rdi,%rax\n"
    "1: imul %rax,%rax\n sub $1,%rsi\n jne 1b\n ret\n.size f,.-f\n");
int main(void) { return f(3, 400000000) == 1; }
"#;

#[test]
fn a_loop_longer_than_its_capture_takes_as_long_as_its_iterations() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    assert_holds("400,000,000 multiplications take 3 cycles each", || {
        let Some(captured) = measured(CHAIN, &folder) else { return Trial::Holds };
        let notes = notes(&captured);
        assert!(notes.contains("rsi is set"), "{notes}");
        let Some(cycles) = captured["throughput"]["cycles"].as_f64() else {
            return Trial::Unsettled(captured["reason"].to_string());
        };
        claim((cycles - 3.0).abs() < 0.15, || format!("{cycles}")).into()
    });
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
    assert_holds("it runs to its end", || {
        let Some(captured) = measured(&source, &folder) else { return Trial::Holds };
        let notes = notes(&captured);
        if notes.contains("its end was not reached") {
            // Not in time, beside others.
            return Trial::Unsettled(notes);
        }
        assert!(notes.contains("2000 iterations"), "{notes}");
        // 16,000 bytes on 4 or 5 pages, and the stack.
        let pages = captured["pages"].as_array().unwrap().len();
        claim((5..=6).contains(&pages), || format!("{pages}")).into()
    });
}

/// Its end is known to memory only, and 400,000 iterations away; a function that it may call it never calls.
const ENDED_BY_MEMORY: &str = r#"
long f(long first, long *numbers);
static long a[400001];
__asm__("g: ret\n.globl f\n.type f,@function\nf: mov %rdi,%rax\n"
    "1: imul %rax,%rax\n add $8,%rsi\n cmpq $-1,(%rsi)\n je 3f\n"
    "2: cmpq $0,(%rsi)\n jne 1b\n ret\n3: call g\n jmp 2b\n.size f,.-f\n");
int main(void) {
    for (long i = 0; i < 400000; i++) a[i] = 1;
    return f(3, a) == 1;
}
"#;

#[test]
fn a_loop_whose_end_was_not_reached_is_ended_by_a_counter() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    // A multiplication takes 3 cycles (uops.info, all cores since Nehalem and Zen).
    assert_holds("multiplications of a loop without an end in sight take 3 cycles each", || {
        let Some(captured) = measured(ENDED_BY_MEMORY, &folder) else { return Trial::Holds };
        let notes = notes(&captured);
        assert!(notes.contains("a counter at its start"), "{captured}");
        let Some(cycles) = captured["throughput"]["cycles"].as_f64() else {
            return Trial::Unsettled(captured["reason"].to_string());
        };
        claim((cycles - 3.0).abs() < 0.2, || format!("{cycles}")).into()
    });
}
