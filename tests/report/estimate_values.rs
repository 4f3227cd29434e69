//! Estimates of code that runs in isolation with the values of the program, or need not.

use super::compiled;
use super::estimate::is_sound;
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::trial::{Trial, assert_holds};
use report::documents::estimate::Values;
use serde_json::Value;

/// Divisions whose operands decide on their time, and stores to more memory than any cache has.
const DIVIDE_AND_FILL: &str = r#"
#include <stdlib.h>
#include <sys/mman.h>
__attribute__((noinline)) static unsigned long divide(unsigned long a, unsigned long b) {
    while (b) { unsigned long t = a % b; a = b; b = t; }
    return a;
}
__attribute__((noinline)) static void fill(volatile long *to, long lines, long value) {
    for (long i = 0; i < lines; i++) to[8 * i] = value;
}
int main(int count, char **arguments) {
    long sum = 0, rounds = atol(arguments[1]), bytes = 64 << 20;
    long *all = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    for (long r = 0; r < rounds; r++) {
        fill(all, bytes / 64, r);
        for (long i = 0; i < 100000; i++) sum += divide(123456 + i, 7654321);
    }
    return sum == 1;
}
"#;

#[test]
fn dividers_run_with_values_of_the_program_and_stores_are_evidence() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, DIVIDE_AND_FILL, &[]) else { return };
    assert_holds("divisions have the program's values, stores are evidence", || {
        let ran = super::report(&["--estimate", "--format", "json", "--", &program, "16"]);
        if ran.code() != Some(0) {
            return Trial::Unsettled(ran.stderr);
        }
        divided_and_filled(&ran.json()["estimate"])
    });
}

/// The values that a row was measured with in isolation, if it was.
fn values(row: &Value) -> Option<Values> {
    serde_json::from_value(row["isolated_with"].clone()).ok()
}

/// On a busy machine samples may be few, a block not be timed, a run for values be given up, and loads be left out for time.
fn divided_and_filled(estimate: &Value) -> Trial {
    let of = |name: &str| {
        let rows = estimate["loops"].as_array().expect("rows").iter();
        let mut own = rows.filter(|row| row["name"].as_str().is_some_and(|n| n.starts_with(name)));
        own.next().cloned()
    };
    let (Some(divide), Some(fill)) = (of("divide"), of("fill")) else {
        return Trial::Unsettled(format!("too few samples: {estimate:#}"));
    };
    let (Some(with), Some(filled)) = (values(&divide), values(&fill)) else {
        return Trial::Unsettled(format!("not timed in isolation: {divide:#} {fill:#}"));
    };
    if let Values::MadeUp(Some(why)) = with {
        return Trial::Unsettled(why);
    }
    assert_eq!(with, Values::Own, "{divide:#}");
    assert_ne!(filled, Values::Own, "{fill:#}");
    let runs = estimate["runs"].to_string();
    assert!(runs.contains("1 for values"), "{runs}");
    if !runs.contains("addresses of loads") || fill["reasons"]["loads"].is_string() {
        return Trial::Unsettled(format!("loads were not worth a run: {runs}"));
    }
    assert!(fill["memory"].as_str().is_some_and(|text| text.contains("stride 64")), "{fill:#}");
    // Every store goes to a line of its own, of more than any cache has. What keeps that from being known leaves it
    // possible.
    let part = |name: &str, key: &str| fill["parts"][name][key].as_f64().expect("a number");
    assert!(part("memory_bound", "high") > 0.5, "{fill:#}");
    let told = part("memory_bound", "value") > 0.0 || part("unexplained", "value") > 0.5;
    assert!(told, "{fill:#}");
    Trial::Holds
}

/// Divisions by numbers that differ in size, in a loop that calls what never happens.
const CHECKED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline, cold)) static unsigned long fail(unsigned long n) { return printf("%lu", n); }
__attribute__((noinline)) static unsigned long checked(unsigned long x, long rounds) {
    unsigned long sum = 0;
    for (long i = 0; i < rounds; i++) {
        unsigned long by = (x >> (i & 31)) | 1;
        if (by == 4) sum += fail(sum);
        sum += (x + i) / by;
    }
    return sum;
}
int main(int count, char **arguments) { return checked(~0ul - count, atol(arguments[1])) == 1; }
"#;

#[test]
fn calls_that_never_happen_do_not_keep_a_loop_of_divisions_from_being_known() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, CHECKED, &[]) else { return };
    assert_holds("the loop is measured with its values, and the divider is named", || {
        let ran = super::report(&["--estimate", "--format", "json", "--", &program, "150000000"]);
        if ran.code() != Some(0) {
            return Trial::Unsettled(ran.stderr);
        }
        divided(&ran.json()["estimate"])
    });
}

fn divided(estimate: &Value) -> Trial {
    let rows = estimate["loops"].as_array().expect("rows").iter();
    let mut own = rows.filter(|row| row["name"].as_str().is_some_and(|n| n.starts_with("checked")));
    let Some(row) = own.next() else {
        return Trial::Unsettled(format!("no loop, or too few samples: {estimate:#}"));
    };
    if values(row) != Some(Values::Own) {
        return Trial::Unsettled(format!("not captured: {row:#}"));
    }
    is_sound(row);
    let part = |name: &str, key: &str| row["parts"][name][key].as_f64();
    // What is measured with the program's values is not 0.
    assert!(part("core_bound", "low") > Some(0.0), "{row:#}");
    if !["ports", "dependency"].iter().any(|bound| row["bound"] == **bound) {
        return Trial::Unsettled(format!("its bound is not known: {row:#}"));
    }
    let children = ["divider", "ports_utilization"].map(|name| part(name, "value"));
    assert!(children.iter().any(|value| *value > Some(0.0)), "{row:#}");
    Trial::Holds
}
