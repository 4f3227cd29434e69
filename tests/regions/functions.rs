//! Functions, and static probes of others, as regions.

use super::{marked, permitted, regions, row, rows};
use crate::support::files::{Folder, text};
use crate::support::run::tdtool;
use crate::support::tools::{available, build};

const PROGRAM: &str = r#"
#include "tdtool.h"
#include <setjmp.h>
#include <stdlib.h>
static jmp_buf out;
__attribute__((noipa)) long leaf(long n) {
    long all = 0;
    for (long i = 0; i < n; i++) { all += i * n; __asm__ volatile("" : "+r"(all)); }
    return all;
}
/* Calls for tree(6): 2^7 - 1. */
__attribute__((noipa)) long tree(long n) {
    if (n == 0) return leaf(3);
    long a = tree(n - 1), b = tree(n - 1);
    __asm__ volatile("" : "+r"(b));
    return a + b;
}
/* A jump out of it at every third call. */
__attribute__((noipa)) long leaps(long n) {
    long a = leaf(n);
    if (n % 3 == 0) longjmp(out, 1);
    return a + leaf(n + 1);
}
int main(void) {
    tdtool_begin("main");
    volatile long n = 0;
    volatile long all = tree(6);
    while (n < 9) {
        if (setjmp(out) == 0) all += leaps(n);
        n = n + 1;
    }
    tdtool_end("main");
    return 5;
}
"#;

#[test]
fn functions_are_regions_without_markers_also_if_left_by_a_jump() {
    let folder = Folder::new();
    for options in [&["-O1"][..], &["-O2", "-fno-pie", "-no-pie"]] {
        let Some(program) = marked(&folder, PROGRAM, options) else { return };
        let more = ["--region", "tree", "--region", "leaps"];
        let Some(found) = regions(&program, &more, "") else { return };
        // leaps(0), (3) and (6) are left by longjmp.
        let expected =
            [row("main", [1, 0, 0]), row("main>tree", [127, 126, 0]), row("main>leaps", [9, 0, 3])];
        assert_eq!(rows(&found), expected, "{options:?} {found}");
        assert_eq!(found["not_probed"], serde_json::json!([]));
        let ran = tdtool(["report", "--region", "trees", "--", text(&program)]);
        assert_eq!(ran.code(), Some(1));
        assert!(ran.stderr.contains("`trees`") && ran.stderr.contains("`tree`"), "{}", ran.stderr);
        let options = ["--module", "/no/such.so", "--region", "tree"];
        let ran = tdtool(["report"].iter().chain(&options).chain(&["--", text(&program)]));
        assert_eq!(ran.code(), Some(1));
        let text = &ran.stderr;
        assert!(text.contains("/no/such.so") && text.contains("--module"), "{text}");
    }
}

/// Ways out of one byte, which are jumped to: the padding after them has room for a probe's jump.
#[test]
fn functions_that_end_in_a_short_return_have_times() {
    let source = "__attribute__((noipa)) double divide(long n, double x) {
        while (n--) x = 1.0 / (x + 0.5);
        return x;
    }
    __attribute__((noipa)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    /* What lies after the last function of a program has no padding. */
    __attribute__((noipa)) int last(int n) { return n + 1; }
    int main(void) {
        volatile double all = 0;
        for (int i = 0; i < 20; i++) all = divide(100000, i) + fib(last(9));
        return all > 0 ? 5 : 6;
    }";
    let folder = Folder::new();
    let Some(program) = marked(&folder, source, &["-O2"]) else { return };
    let more = ["--region", "divide", "--region", "fib"];
    let Some(found) = regions(&program, &more, "") else { return };
    assert_eq!(found["not_probed"], serde_json::json!([]));
    let of = |name: &str| {
        let rows = rows(&found);
        rows.into_iter().find(|row| row.0 == name).unwrap_or_else(|| panic!("{name}: {found}"))
    };
    assert_eq!(of("divide"), row("divide", [20, 0, 0]));
    // The compiler unrolls the recursion: how often it calls itself is its choice.
    assert_eq!(of("fib").3, 0, "{found}");
    let all = found["regions"].as_array().unwrap();
    let divide = all.iter().find(|row| row["name"] == "divide").unwrap();
    assert!(divide["time"].as_f64().is_some_and(|time| time > 0.0), "{found}");
}

/// Probes of a C++ runtime or any other library are plain one-byte nops, as sys/sdt.h has them.
#[test]
fn static_probes_of_others_are_ends_of_regions() {
    if !available("gcc") {
        return;
    }
    let folder = Folder::new();
    let probe = |name: &str| {
        format!(
            "__asm__ volatile(\"990: nop\\n.pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n\
             .balign 4\\n.4byte 992f-991f, 994f-993f, 3\\n991: .asciz \\\"stapsdt\\\"\\n992: .balign 4\\n\
             993: .8byte 990b, 0, 0\\n.asciz \\\"mine\\\"\\n.asciz \\\"{name}\\\"\\n.asciz \\\"\\\"\\n\
             994: .balign 4\\n.popsection\");"
        )
    };
    let source = format!(
        "static volatile long sink;\n__attribute__((noipa)) void work(long n) {{ {}\n\
         for (long i = 0; i < n; i++) sink += i * 3;\n{}\nsink = sink + 1000; }}\n\
         int main(void) {{ for (int i = 0; i < 6; i++) work(i); return 5; }}",
        probe("start"),
        probe("stop")
    );
    let Some(program) = build(folder.path(), "gcc", &source, &["-O1"], "mine") else { return };
    let Some(found) = regions(&program, &["--region", "mine:start..mine:stop"], "") else { return };
    assert_eq!(rows(&found), [row("mine:start..mine:stop", [6, 0, 0])], "{found}");
    let ran = tdtool(["report", "--region", "mine:start..mine:end", "--", text(&program)]);
    let Some(ran) = permitted(ran) else { return };
    assert!(ran.stderr.contains("`mine:end`"), "{}", ran.stderr);
}

/// Lines are counted from 1; the first one of the text is the attribute's.
const LINES: &str = "__attribute__((noipa)) long work(long n) {
    long all = n;
    all = all * 7 + n; __asm__ volatile(\"\" : \"+r\"(all));
    for (long i = 0; i < n; i++) __asm__ volatile(\"\" : \"+r\"(all));
    all = all ^ 12345; __asm__ volatile(\"\" : \"+r\"(all));
    return all;
}
int main(void) { for (int i = 0; i < 8; i++) work(i); return 5; }
";

#[test]
fn source_lines_are_ends_of_regions() {
    if !available("gcc") {
        return;
    }
    let folder = Folder::new();
    for options in [&["-g", "-O1"][..], &["-g", "-O0", "-no-pie"]] {
        let Some(program) = build(folder.path(), "gcc", LINES, options, "lines") else { return };
        let file = "source.c";
        let name = format!("{file}:3..5");
        let Some(found) = regions(&program, &["--region", &name], "") else { return };
        assert_eq!(rows(&found), [row(&name, [8, 0, 0])], "{options:?}: {found}");
        let other = format!("{file}:3..77");
        let ran = tdtool(["report", "--region", &other, "--", text(&program)]);
        assert!(ran.stderr.contains("line 77"), "{}", ran.stderr);
    }
}
