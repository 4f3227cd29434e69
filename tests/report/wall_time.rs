//! What the wall time goes to outside of a program's own code.

use super::{compiled, json};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use serde_json::Value;

/// Page faults; small system calls, so many; sleep.
const SOURCE: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) static void touch(long rounds) {
    for (long n = 0; n < rounds; n++) {
        volatile char *area = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (long at = 0; at < 4 << 20; at += 4096) area[at] = 1;
        munmap((void *)area, 4 << 20);
    }
}
__attribute__((noinline)) static void pass(long rounds) {
    int ends[2];
    char byte = 0;
    if (pipe(ends)) exit(1);
    for (long n = 0; n < rounds; n++)
        if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1) exit(1);
}
int main(int count, char **words) {
    long rounds = atol(words[2]);
    if (!strcmp(words[1], "touch")) touch(rounds);
    else if (!strcmp(words[1], "pass")) pass(rounds);
    else for (long n = 0; n < rounds; n++) usleep(10000);
    return 0;
}
"#;

fn share(row: &Value) -> f64 {
    row["share"].as_f64().expect("a share")
}

fn rows(document: &Value) -> Vec<Value> {
    document["wall_time"].as_array().cloned().unwrap_or_default()
}

fn row<'a>(rows: &'a [Value], kind: &str) -> Option<&'a Value> {
    rows.iter().find(|row| row["kind"] == kind)
}

/// Whether the kernel was sampled, as not every system permits.
fn has_kernel(document: &Value) -> bool {
    document["sampled"]["samples"].as_u64() >= Some(50) && document["sampled"]["kernel"].is_number()
}

fn is_sound(rows: &[Value]) {
    let sum: f64 = rows.iter().map(share).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{rows:#?}");
    for row in rows {
        let of = |key: &str| row[key].as_f64().expect("a number");
        assert!(of("low") <= of("share") && of("share") <= of("high") + 1e-9, "{row:#}");
    }
}

#[test]
fn kernel_time_is_divided_by_how_it_was_entered() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, SOURCE, &[]) else { return };
    for (mode, rounds, kind, other, name) in [
        ("touch", "200", "page_faults", "system_calls", "touch"),
        ("pass", "400000", "system_calls", "page_faults", "write"),
    ] {
        let document = json(&["--", &program, mode, rounds]);
        need!(
            has_kernel(&document),
            format!("the kernel was not sampled: {}", document["sampled"])
        );
        let rows = rows(&document);
        is_sound(&rows);
        let of = |kind: &str| row(&rows, kind).map_or(0.0, share);
        assert!(of(kind) > of("own_code") && of(kind) > of(other), "{rows:#?}");
        let found = row(&rows, kind).expect("a row");
        let from = found["from"].as_array().expect("user code");
        let names: Vec<&str> = from.iter().filter_map(|one| one["name"].as_str()).collect();
        assert!(names.iter().any(|one| one.contains(name)), "{found:#}");
        assert!(found["advice"].as_str().is_some_and(|said| said.contains(name)), "{found:#}");
        let verdict = document["conclusion"]["verdict"].as_str().unwrap_or_default();
        assert!(verdict.contains(name), "{verdict}");
    }
}

#[test]
fn an_estimate_counts_the_system_calls() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, SOURCE, &[]) else { return };
    let evidence = folder.path().join("evidence.json");
    let evidence = evidence.to_str().expect("UTF-8");
    let document = json(&["--estimate", "--evidence", evidence, "--", &program, "pass", "400000"]);
    need!(has_kernel(&document), format!("the kernel was not sampled: {}", document["sampled"]));
    let rows = rows(&document);
    let calls: Vec<f64> = row(&rows, "system_calls")
        .and_then(|row| row["from"].as_array())
        .into_iter()
        .flatten()
        .filter_map(|from| from["calls"].as_f64())
        .collect();
    need!(!calls.is_empty(), format!("the functions of the calls were not analysed: {rows:#?}"));
    // Loading the program reads and writes a little, too.
    assert!(calls.iter().all(|calls| (400_000.0..400_100.0).contains(calls)), "{rows:#?}");
    let again = json(&[evidence]);
    assert_eq!(again["wall_time"], document["wall_time"]);
}

#[test]
fn a_program_that_sleeps_waits() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, SOURCE, &[]) else { return };
    let document = json(&["--", &program, "sleep", "30"]);
    let rows = rows(&document);
    need!(!rows.is_empty(), format!("nothing was sampled: {}", document["sampled"]));
    is_sound(&rows);
    let waits = row(&rows, "waiting").expect("a row");
    assert!(share(waits) > 0.5 && waits["source"] == "counted", "{rows:#?}");
}
