//! Estimates of programs whose threads contend for cache lines: which lines, and how, by recorded addresses. How much
//! that costs depends on the processors.

use super::{compiled, report};
use crate::support::files::Folder;
use crate::support::quiet::{alone, busy};
use crate::support::trial::{Trial, assert_holds, claim};
use serde_json::Value;

/// Two threads that count beside each other in one line, or APART bytes from each other; LOCKED: by locked instructions.
const COUNTERS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#ifndef APART
#define APART 8
#endif
char counters[512] __attribute__((aligned(256)));
static long rounds;
static void *work(void *of) {
    volatile long *own = of;
#ifdef LOCKED
    for (long i = 0; i < rounds; i++) __atomic_fetch_add(own, 1, __ATOMIC_SEQ_CST);
#else
    for (long i = 0; i < rounds; i++) *own += 1;
#endif
    return 0;
}
int main(int count, char **arguments) {
    pthread_t other;
    if (count < 2) return 2;
    rounds = atol(arguments[1]);
    pthread_create(&other, 0, work, counters + APART);
    work(counters);
    pthread_join(other, 0);
    return 0;
}
"#;

/// Iterations of each thread: about a second.
const ROUNDS: &str = "400000000";

/// The estimate; why there is none that says anything.
fn estimated(program: &str) -> Result<Value, String> {
    let ran = report(&["--estimate", "--format", "json", "--", program, ROUNDS]);
    if ran.code() != Some(0) {
        return Err(ran.stderr);
    }
    let document = ran.json();
    let used = document["software"]["cpus_used"].as_f64().unwrap_or(0.0);
    match used > 1.2 {
        true => Ok(document["estimate"].clone()),
        false => Err(format!("it used {used} CPUs: others run")),
    }
}

fn value(parts: &Value, part: &str) -> f64 {
    parts[part]["value"].as_f64().unwrap_or(0.0)
}

#[test]
fn threads_that_write_beside_each_other_share_a_line_falsely() {
    let _busy = busy();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    need!(cpus > 1, "only one CPU");
    let folder = Folder::new();
    let Some(program) = compiled(&folder, COUNTERS, &["-pthread"]) else { return };
    assert_holds("the line that two counters share is named", || {
        let estimate = match estimated(&program) {
            Ok(estimate) => estimate,
            Err(why) => return Trial::Unsettled(why),
        };
        let Some(lines) = estimate["contended_lines"].as_array() else {
            return Trial::Unsettled(format!(
                "no line was shared, or sharing costs nothing: {estimate:#}"
            ));
        };
        let runs = estimate["runs"].as_array().expect("runs");
        assert!(runs.iter().any(|run| run["run"] == "samples on one CPU"), "{runs:#?}");
        let parts = &estimate["program"]["parts"];
        assert!(value(parts, "false_sharing") <= value(parts, "memory_bound") + 1e-9, "{parts:#}");
        let is_it =
            |line: &Value| line["place"] == "counters+0x0" && line["contention"] == "false_sharing";
        claim(lines.iter().any(is_it), || format!("{lines:#?}")).into()
    });
}

#[test]
fn threads_with_lines_of_their_own_do_not_contend() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, COUNTERS, &["-pthread", "-DAPART=256"]) else { return };
    let estimate = match estimated(&program) {
        Ok(estimate) => estimate,
        Err(why) => return println!("skipped: {why}"),
    };
    assert!(estimate.get("contended_lines").is_none(), "{estimate:#}");
    assert_eq!(value(&estimate["program"]["parts"], "false_sharing"), 0.0);
}

/// The estimate of two threads that each add to a counter by locked instructions, and its evidence.
fn of_locked(folder: &Folder, apart: &str) -> Result<(Value, Value), String> {
    let apart = format!("-DAPART={apart}");
    let options = ["-pthread", "-DLOCKED", &apart];
    let program = compiled(folder, COUNTERS, &options).ok_or("no compiler")?;
    let kept = folder.file("evidence.json");
    let asked = ["--estimate", "--format", "json", "--evidence", &kept, "--", &program, "40000000"];
    let ran = report(&asked);
    if ran.code() != Some(0) {
        return Err(ran.stderr);
    }
    let evidence = serde_json::from_str(&folder.read("evidence.json"));
    let (document, evidence): (Value, Value) = (ran.json(), evidence.map_err(|e| e.to_string())?);
    let used = document["software"]["cpus_used"].as_f64().unwrap_or(0.0);
    match used > 1.1 {
        true => Ok((document["estimate"].clone(), evidence)),
        false => Err(format!("it used {used} CPUs: others run")),
    }
}

/// Whether it is made, and used, does not depend on what it shows.
#[test]
fn a_shared_counter_is_compared_with_a_run_on_one_cpu() {
    let _alone = alone();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    need!(cpus > 1, "only one CPU");
    let folder = Folder::new();
    assert_holds("the run on one CPU is made and used", || {
        let (estimate, evidence) = match of_locked(&folder, "0") {
            Ok(found) => found,
            Err(why) => return Trial::Unsettled(why),
        };
        let Some(lines) = evidence["count"]["contended_lines"].as_array() else {
            return Trial::Unsettled(
                "the threads did not take turns where they were recorded".into(),
            );
        };
        let is_it =
            |line: &Value| line["place"] == "counters+0x0" && line["contention"] == "lock_latency";
        let pinned = &evidence["pinned"];
        let is_used = pinned["samples"].as_u64() > Some(0) && pinned.get("failed").is_none();
        claim(lines.iter().any(is_it) && is_used, || format!("{lines:#?} {pinned:#} {estimate:#}"))
            .into()
    });
}

#[test]
fn locked_counters_apart_need_no_run_on_one_cpu() {
    let _alone = alone();
    let folder = Folder::new();
    let (estimate, evidence) = match of_locked(&folder, "256") {
        Ok(found) => found,
        Err(why) => return println!("skipped: {why}"),
    };
    assert!(evidence.get("pinned").is_none(), "{:#}", evidence["pinned"]);
    assert!(estimate.get("contended_lines").is_none(), "{estimate:#}");
}
