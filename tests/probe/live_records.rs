//! `tdtool count -p PID --branches --values --loads`: what is recorded of a live process, which is as it was afterwards.

use super::attached::Live;
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::trial::{Trial, assert_holds, claim};
use serde_json::Value;

/// Three threads that walk lists and arrays of their own, with a timer's signals: a pointer chase, a stride of 24, a
/// random branch, and a loop of five trips.
const PROGRAM: &str = r#"
#include <stdint.h>
struct node { struct node *next; uint64_t key, rest[6]; };
static struct node nodes[4093];
static uint64_t table[4096];
__attribute__((noipa)) uint64_t chase(struct node *p, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) { sum += p->key + 0x12345678; p = p->next; }
    return sum;
}
__attribute__((noipa)) uint64_t stride(uint64_t *a, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) sum += a[(3 * i) & 4095] ^ 0x12345678;
    return sum;
}
__attribute__((noipa)) uint64_t toss(long n, uint64_t x) {
    uint64_t all = 0;
    for (long i = 0; i < n; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        if (x & 0x100) { all += 0x12345678; __asm__ volatile("" : "+r"(all)); } else { all ^= i + 0x23456789; __asm__ volatile("" : "+r"(all)); }
        #pragma GCC unroll 1
        for (int k = 0; k < 5; k++) { all += 0x34567890; __asm__ volatile("" : "+r"(all)); }
    }
    return all;
}
void on(int number) { ticks++; }
static uint64_t all(uint64_t seed) {
    return chase(nodes + seed, 3000) ^ stride(table, 2000 + seed) ^ toss(20000, seed + 88172645463325252ul);
}
static void *work(void *seed) {
    uint64_t first = all((uint64_t)seed);
    while (!over) {
        if (all((uint64_t)seed) != first) wrong++;
        rounds++;
    }
    return 0;
}
int main(void) {
    pthread_t threads[2];
    struct itimerval often = {{0, 1000}, {0, 1000}};
    struct sigaction action = {.sa_handler = on, .sa_flags = SA_RESTART};
    for (long i = 0; i < 4093; i++) {
        nodes[i * 1201 % 4093].next = &nodes[(i + 1) * 1201 % 4093];
        nodes[i].key = i * i;
    }
    signal(SIGTERM, end);
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)(i + 1));
    work((void *)5);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return done();
}
"#;

/// Reasons why a load has no probe at the addresses that a process happens to have (src/probe/plan/choose.rs).
const NO_ROOM: [&str; 3] = ["no jump fits", "no free address", "probes of other blocks"];

fn maps(pid: i32) -> String {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    // A heap or an arena may grow at any time.
    maps.lines().filter(|line| line.contains(" r-x") || line.contains("tdtool")).collect()
}

fn rows<'a>(document: &'a Value, of: &str, function: &str) -> Vec<&'a Value> {
    let all = document[of].as_array().unwrap().iter();
    all.filter(|row| row["function"] == function).collect()
}

#[test]
fn threads_go_on_while_branches_values_and_loads_are_recorded() {
    let _busy = busy();
    let folder = Folder::new();
    for options in [["-pie", "-O2"], ["-no-pie", "-O1"]] {
        let options = [&options[..], &["-fno-tree-vectorize"]].concat();
        let Some(live) = Live::start(&folder, PROGRAM, &options) else { return };
        let pid = live.pid().to_string();
        let arguments = ["count", "-p", &pid, "--seconds", "0.3", "--functions"];
        let further =
            ["chase,stride,toss", "--branches", "--values", "--loads", "--format", "json"];
        let mut is_possible = true;
        assert_holds("records of a live process", || {
            // A trial before may have left memory that stays mapped.
            let before = maps(live.pid());
            let ran = tdtool(arguments.iter().chain(&further));
            if ran.stderr.contains("cannot trace") {
                eprintln!("skipped: {}", ran.stderr);
                is_possible = false;
                return Trial::Holds;
            }
            let document = ran.succeeded().json();
            live.assert_restored(0);
            let notes = document["notes"].to_string();
            let stays = notes.contains("stay mapped in it");
            let after = maps(live.pid());
            assert!(stays || after == before, "{before}\n{after}\n{notes}");
            let runs: Vec<&Value> =
                document["cost"].as_array().unwrap().iter().map(|c| &c["run"]).collect();
            let expected =
                ["counts", "branches", "values", "addresses of loads", "latencies of loads"];
            assert_eq!(runs, expected, "{notes}");
            // Every second time, by construction, less what a history knows of numbers that repeat from call to call;
            // a loop's five trips would be one in six.
            let tossed = rows(&document, "branches", "toss").into_iter().filter_map(|row| {
                let share = row["mispredicted"]["value"].as_f64()? / row["executions"].as_f64()?;
                (row["mispredicted"]["seen"].as_u64()? > 1000).then_some(share)
            });
            let tossed = tossed.fold(0.0, f64::max);
            let kinds = |function: &str| -> Vec<String> {
                let all = rows(&document, "loads", function).into_iter();
                all.map(|row| row["class"]["kind"].as_str().unwrap_or("?").to_owned()).collect()
            };
            let strides = rows(&document, "loads", "stride");
            let stride = strides.iter().any(|row| row["class"]["stride"] == 24);
            let constant = |row: &&Value| {
                let all = row["registers"].as_array().into_iter().flatten();
                all.into_iter()
                    .any(|r| r["kind"] == "constant" && r["regions"][0]["region"] == "live")
            };
            let values = rows(&document, "values", "stride").iter().any(constant);
            let timed = document["loads"].as_array().unwrap().iter();
            let timed = timed.filter(|row| row["latency"]["samples"].as_u64() > Some(0)).count();
            let is_chase = kinds("chase").iter().any(|kind| kind == "pointer_chase");
            let all = (0.3..=0.6).contains(&tossed) && stride && values && timed > 0;
            // Where it has room for a probe depends on addresses.
            let chase = rows(&document, "loads", "chase");
            let reasons: Vec<String> = chase.iter().map(|row| row["reasons"].to_string()).collect();
            let has_no_room = |why: &String| NO_ROOM.iter().any(|reason| why.contains(reason));
            let all = all && (is_chase || reasons.iter().any(has_no_room));
            claim(all, || format!("{tossed} {stride} {values} {is_chase} {timed}: {document}"))
                .into()
        });
        live.end();
        if !is_possible {
            return;
        }
    }
}

#[test]
fn a_run_without_probes_is_none_of_a_process() {
    assert_eq!(tdtool(["count", "-p", "1", "--plain"]).code(), Some(2));
}
