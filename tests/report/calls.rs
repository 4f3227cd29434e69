//! Mispredicted indirect calls in an estimate: the stall is sampled in the callee, the cause is the call.

use super::{compiled, report};
use crate::support::files::{Folder, root};
use crate::support::quiet::alone;
use crate::support::run::{program, run};
use crate::support::trial::{Trial, assert_holds, claim};
use serde_json::Value;

/// Calls of one of four functions, at random, or of the first; prints the processor time of the calls.
const CALLS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define OF(name, what) __attribute__((noinline)) static long name(long x) { return what; }
OF(f0, x + 3) OF(f1, x ^ 5) OF(f2, x - 7) OF(f3, x * 3)
static long (*volatile table[4])(long) = { f0, f1, f2, f3 };
static unsigned char order[1 << 20];
__attribute__((noinline)) static long calls(long rounds) {
    long sum = 0;
    for (long r = 0; r < rounds; r++)
        for (long i = 0; i < sizeof order; i++) sum = table[order[i]](sum);
    return sum;
}
int main(int count, char **arguments) {
    unsigned long x = 88172645463325252ul;
    int is_random = !strcmp(arguments[1], "random");
    for (long i = 0; i < sizeof order; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        order[i] = is_random ? x >> 40 & 3 : 0;
    }
    clock_t start = clock();
    long sum = calls(atol(arguments[2]));
    printf("%f\n", (double)(clock() - start) / CLOCKS_PER_SEC);
    return sum == 1;
}
"#;

/// Rounds of a million calls.
const ROUNDS: &str = "40";

/// Seconds of the calls in this order.
fn seconds(calls: &str, order: &str) -> Option<f64> {
    run(program(calls).args([order, ROUNDS])).stdout.trim().parse().ok()
}

/// The estimate of calls at random, with these options, and the true share of what their mispredictions cost: one target is
/// predicted by every processor.
fn trial(calls: &str, options: &[&str], judged: fn(&Value, f64) -> Trial) -> Trial {
    let (Some(random), Some(one)) = (seconds(calls, "random"), seconds(calls, "one")) else {
        return Trial::Unsettled("no times".to_owned());
    };
    let truth = 1.0 - one / random;
    let asked = ["--estimate", "--format", "json", "--", calls, "random", ROUNDS];
    let ran = report(&[options, &asked].concat());
    if ran.code() != Some(0) {
        return Trial::Unsettled(ran.stderr);
    }
    let estimate = &ran.json()["estimate"];
    if truth < 0.3 || estimate["covered"].as_f64().is_none_or(|share| share < 0.7) {
        return Trial::Unsettled(format!("{truth}: {estimate:#}"));
    }
    judged(estimate, truth)
}

/// The ends of Bad Speculation.
fn ends(of: &Value) -> (f64, f64) {
    let part = &of["parts"]["bad_speculation"];
    let [low, high] = ["low", "high"].map(|key| part[key].as_f64().expect("a number"));
    (low, high)
}

/// Up to 0.1 beside the interval, as the time of a run varies.
fn holds((low, high): (f64, f64), truth: f64) -> bool {
    (low - 0.1..=high + 0.1).contains(&truth)
}

#[test]
fn what_mispredicted_calls_cost_is_theirs_though_it_is_sampled_in_the_callees() {
    let _alone = alone();
    let folder = Folder::new();
    let Some(calls) = compiled(&folder, CALLS, &[]) else { return };
    assert_holds("mispredicted calls are Bad Speculation", || trial(&calls, &[], judged));
}

fn judged(estimate: &Value, truth: f64) -> Trial {
    let names = |row: &&Value| row["name"].as_str().is_some_and(|name| name.starts_with('f'));
    let callees: Vec<&Value> =
        estimate["functions"].as_array().expect("rows").iter().filter(names).collect();
    // Where it is sampled, it may be that.
    let may = |row: &&Value| ends(row).1 > 0.1;
    let (low, high) = ends(&estimate["program"]);
    // All would say nothing.
    let is_it = holds((low, high), truth) && high - low < 0.8;
    claim(is_it && callees.iter().all(may), || {
        format!("{truth}: {:#} {callees:#?}", estimate["program"])
    })
    .into()
}

/// Where the self-test knows nothing of branches, the number is modelled all the same, at 11 to 40 cycles each.
#[test]
fn calls_of_a_processor_that_nothing_is_known_of_have_neither_none_nor_all_of_the_time() {
    let _alone = alone();
    let folder = Folder::new();
    let Some(calls) = compiled(&folder, CALLS, &[]) else { return };
    let known =
        std::fs::read(root().join("tests/processors/self-tests/zen4.json")).expect("a file");
    let mut known: Value = serde_json::from_slice(&known).expect("JSON");
    let cycles = known["cycles"].as_object_mut().expect("times");
    cycles.retain(|name, _| name.starts_with("mix") || name.contains("nop"));
    let file = folder.write("self-test.json", known.to_string());
    assert_holds("unknown predictors widen Bad Speculation", || {
        trial(&calls, &["--self-test-from", &file], |estimate, truth| {
            let (low, high) = ends(&estimate["program"]);
            let is_in = holds((low, high), truth);
            claim(is_in && low > 0.05, || format!("{truth}: {:#}", estimate["program"])).into()
        })
    });
}
