//! How often blocks of a program are entered.

use super::{compiled, report};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::shown;
use serde_json::Value;

/// A loop whose block takes long, and nested ones whose innermost is hot.
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

/// A report with counts of [`COUNTED`]; `None`, with a message, where it cannot be made.
fn counted(arguments: [&str; 2]) -> Option<Value> {
    let folder = Folder::new();
    let program = compiled(&folder, COUNTED, &["-O1"])?;
    counts_of(&["--", &program, arguments[0], arguments[1]])
}

/// A report with counts; `None`, with a message, where it cannot be made.
pub fn counts_of(target: &[&str]) -> Option<Value> {
    let options = ["--counts", "--blocks", "2", "--format", "json"];
    let counted = report(&[&options, target].concat());
    let errors = &counted.stderr;
    if errors.contains("nothing can be sampled") {
        eprintln!("skipped: {errors}");
        return None;
    }
    Some(counted.succeeded().json())
}

/// The hottest block of a function.
pub fn hottest<'r>(report: &'r Value, function: &str) -> &'r Value {
    let blocks = report["blocks"].as_array().expect("blocks");
    let found = blocks.iter().find(|block| block["function"] == function);
    found.unwrap_or_else(|| panic!("no block of {function}: {report:#}"))
}

#[test]
fn the_functions_with_most_samples_are_counted_and_the_rest_is_not() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, COUNTED, &["-O1"]) else { return };
    let ran = tdtool(["count", "--hot", "--format", "json", "--", &program, "1", "40000"]);
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    let rows = document["hot"]["functions"].as_array().expect("functions");
    assert_eq!(rows[0]["function"], "nested", "{document:#}");
    let blocks = document["blocks"].as_array().expect("blocks");
    // 40,000 times 3,000, in one block by its probe or from others.
    assert!(blocks.iter().any(|b| b["count"].as_u64() == Some(120_000_000)), "{document:#}");
    let loops = document["loops"].as_array().expect("loops");
    let is_inner = |l: &&Value| l["entries"].as_u64() == Some(40_000);
    let inner = loops.iter().find(is_inner).expect("the inner loop");
    assert_eq!(inner["trips"]["mean"].as_f64(), Some(3_000.0), "{document:#}");
    let costs = document["cost"].as_array().expect("costs");
    assert_eq!(costs[1]["plain"], costs[0]["seconds"], "{document:#}");
}

#[test]
fn every_entry_of_a_block_is_counted() {
    let _busy = busy();
    let Some(report) = counted(["9000", "1"]) else { return };
    let block = hottest(&report, "fill");
    // The loop runs as often as the argument says.
    assert_eq!(block["entries"].as_f64(), Some(9000.0), "{block}");
    assert_eq!(block["entries_error"].as_f64(), Some(0.0), "{block}");
    assert!(block["ns_per_entry"].as_f64().is_some_and(|ns| ns > 0.0), "{block}");
}

#[test]
fn the_innermost_block_of_nested_loops_is_counted() {
    let _busy = busy();
    let Some(report) = counted(["1", "40000"]) else { return };
    let block = hottest(&report, "nested");
    // 40,000 times 3,000.
    assert_eq!(block["entries"].as_f64(), Some(1.2e8), "{block}");
    assert_eq!(block["entries_error"].as_f64(), Some(0.0), "{block}");
}

/// An inner loop of 1 to 6,000 iterations by chance, or of 1 and 1,000 alternately, on as many
/// threads as asked for. Says how often it has run.
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
    FILE *truth = fopen(argv[4], "w");
    fprintf(truth, "%ld\n", all);
    fclose(truth);
}
"#;

/// [`UNEVEN`]'s count by tdtool is the program's own, or as near to it as its error says: threads may end others.
fn assert_counted([kind, outer, threads]: [&str; 3]) {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, UNEVEN, &["-O1", "-pthread"]) else { return };
    let truth = folder.file("truth");
    let target = ["--", &program, kind, outer, threads, &truth];
    let Some(report) = counts_of(&target) else { return };
    let truth: f64 = folder.read("truth").trim().parse().expect("a number");
    let block = hottest(&report, "uneven");
    let (entries, error) = (block["entries"].as_f64(), block["entries_error"].as_f64());
    let off = (entries.expect("counted") - truth).abs();
    assert!(off <= error.expect("known") * truth, "{off} of {truth}: {block}");
}

#[test]
fn loops_of_uneven_length_are_counted() {
    assert_counted(["0", "40000", "1"]);
}

#[test]
fn alternating_long_and_short_loops_are_counted() {
    assert_counted(["1", "200000", "1"]);
}

#[test]
fn loops_of_two_threads_are_counted() {
    assert_counted(["0", "20000", "2"]);
}

#[test]
fn a_child_of_the_command_is_counted_from_its_first_instruction() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, COUNTED, &[]) else { return };
    // The shell forks, since it has something left to do.
    let script = format!("{program} 9000 1; true");
    let Some(report) = counts_of(&["--", "sh", "-c", &script]) else { return };
    let block = hottest(&report, "fill");
    assert_eq!(block["entries"].as_f64(), Some(9000.0), "{block}");
    assert_eq!(block["entries_error"].as_f64(), Some(0.0), "{block}");
}

#[test]
fn recordings_cannot_be_counted_and_the_remedy_is_named() {
    assert_shown!(
        "recordings_cannot_be_counted",
        shown::of(&["report", "--counts", "some.data"], &Folder::new())
    );
}
