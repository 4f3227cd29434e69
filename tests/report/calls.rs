//! Mispredicted indirect calls in an estimate: the stall is sampled in the callee, the cause is the call.

use super::{compiled, report};
use crate::support::files::Folder;
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

#[test]
fn what_mispredicted_calls_cost_is_theirs_though_it_is_sampled_in_the_callees() {
    let _alone = alone();
    let folder = Folder::new();
    let Some(calls) = compiled(&folder, CALLS, &[]) else { return };
    let seconds = |order: &str| -> Option<f64> {
        let ran = run(program(&calls).args([order, ROUNDS]));
        ran.stdout.trim().parse().ok()
    };
    assert_holds("mispredicted calls are Bad Speculation", || {
        // One target is predicted by every processor.
        let (Some(random), Some(one)) = (seconds("random"), seconds("one")) else {
            return Trial::Unsettled("no times".to_owned());
        };
        let truth = 1.0 - one / random;
        let ran = report(&["--estimate", "--format", "json", "--", &calls, "random", ROUNDS]);
        if ran.code() != Some(0) {
            return Trial::Unsettled(ran.stderr);
        }
        judged(&ran.json()["estimate"], truth)
    });
}

fn judged(estimate: &Value, truth: f64) -> Trial {
    if truth < 0.3 || estimate["covered"].as_f64().is_none_or(|share| share < 0.7) {
        return Trial::Unsettled(format!("{truth}: {estimate:#}"));
    }
    let part = &estimate["program"]["parts"]["bad_speculation"];
    let [low, high] = ["low", "high"].map(|key| part[key].as_f64().expect("a number"));
    let names = |row: &&Value| row["name"].as_str().is_some_and(|name| name.starts_with('f'));
    let callees: Vec<&Value> =
        estimate["functions"].as_array().expect("rows").iter().filter(names).collect();
    // Where it is sampled, it may be that.
    let may = |row: &&Value| row["parts"]["bad_speculation"]["high"].as_f64() > Some(0.1);
    // Up to 0.1 beside it, as the time of a run varies; all would say nothing.
    let is_it = (low - 0.1..=high + 0.1).contains(&truth) && high - low < 0.8;
    claim(is_it && callees.iter().all(may), || format!("{truth}: {part:#} {callees:#?}")).into()
}
