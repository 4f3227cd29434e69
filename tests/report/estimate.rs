//! The estimated tree: its document, and that it is never taken for a counted one.

use super::{compiled, report};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::{command, ended, send, start, tdtool};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const PARTS: [&str; 7] = [
    "retiring",
    "bad_speculation",
    "fetch_bandwidth",
    "fetch_latency",
    "core_bound",
    "memory_bound",
    "unexplained",
];

/// What parts consist of.
const CHILDREN: [(&str, &[&str]); 4] = [
    ("bad_speculation", &["branch_mispredicts"]),
    ("fetch_latency", &["icache_misses", "itlb_misses"]),
    ("core_bound", &["divider", "ports_utilization"]),
    ("memory_bound", &["l1_bound", "l2_bound", "l3_bound", "dram_bound", "store_bound"]),
];

/// Children are within their parent, alone and together.
fn are_within(row: &Value) {
    for (parent, children) in CHILDREN {
        let number = |name: &str, key: &str| row["parts"][name][key].as_f64();
        let sum = |key: &str| children.iter().filter_map(|child| number(child, key)).sum::<f64>();
        for key in ["low", "value"] {
            assert!(sum(key) <= number(parent, key).expect("a number") + 1e-6, "{row:#}");
        }
        for child in children {
            let [low, value, high] = ["low", "value", "high"].map(|key| number(child, key));
            assert!(low <= value && value <= high && high <= number(parent, "high"), "{row:#}");
        }
    }
}

/// The parts of the nodes of level 1, Retiring first.
const LEVEL1: [&[&str]; 5] = [
    &["retiring"],
    &["bad_speculation"],
    &["fetch_bandwidth", "fetch_latency"],
    &["core_bound", "memory_bound"],
    &["unexplained"],
];

/// Values within their intervals, which sum to 1; the largest loss that is named, or `undecided`.
pub(super) fn is_sound(row: &Value) {
    let part = |name: &str, key: &str| row["parts"][name][key].as_f64().expect("a number");
    let sum: f64 = PARTS.iter().map(|name| part(name, "value")).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{row:#}");
    for name in PARTS {
        let [low, value, high] = ["low", "value", "high"].map(|key| part(name, key));
        assert!(0.0 <= low && low <= value && value <= high && high <= 1.0, "{row:#}");
        assert!(row["parts"][name]["source"].is_string(), "{row:#}");
    }
    are_within(row);
    if row["parts"]["backend_bound"].is_object() {
        let both = |key: &str| part("core_bound", key) + part("memory_bound", key);
        let [low, value, high] = ["low", "value", "high"].map(|key| part("backend_bound", key));
        assert!((value - both("value")).abs() < 1e-6 && low <= value && value <= high, "{row:#}");
        assert!(low > both("low") - 1e-6 && high < both("high") + 1e-6, "{row:#}");
    }
    let found = row["bottleneck"].as_str().expect("a bottleneck");
    if found != "undecided" {
        let sum = |of: &[&str]| of.iter().map(|name| part(name, "value")).sum::<f64>();
        let own = |name: &str| LEVEL1.into_iter().find(|of| of.contains(&name)).expect("a part");
        // Beside what retires the largest node of level 1, and the largest part of it.
        let of_node = match found {
            "frontend_bound" => sum(LEVEL1[2]),
            "backend_bound" => sum(LEVEL1[3]),
            name => sum(own(name)),
        };
        assert!(LEVEL1[1..].iter().all(|other| sum(other) <= of_node + 1e-9), "{row:#}");
        if PARTS.contains(&found) {
            let beside = own(found).iter().map(|name| part(name, "value"));
            assert!(found != "unexplained" && beside.fold(0.0, f64::max) <= part(found, "value"));
        }
    }
}

/// A loop of dependent operations. A program as small as this is analysed at once, other than tdtool itself.
const DEPENDENT: &str = r#"
#include <stdlib.h>
__attribute__((noinline)) static unsigned long dependent(unsigned long x, long rounds) {
    for (long i = 0; i < rounds; i++) x = (x + i) ^ (x >> 3);
    return x;
}
int main(int count, char **arguments) { return dependent(count, atol(arguments[1])) == 1; }
"#;

#[test]
fn without_a_budget_only_the_counts_are_made_and_the_rest_is_named() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, DEPENDENT, &[]) else { return };
    let ran =
        report(&["--estimate", "--budget", "0", "--format", "json", "--", &program, "400000000"]);
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    need!(document["source"] == "no_pmu", "this machine has a PMU");
    let runs = document["estimate"]["runs"].as_array().expect("runs");
    let names: Vec<&str> = runs.iter().filter_map(|run| run["run"].as_str()).collect();
    assert_eq!(names, ["samples", "counts"]);
    let notes = document["estimate"]["notes"].to_string();
    assert!(notes.contains("--budget: "), "{notes}");
    is_sound(&document["estimate"]["program"]);
}

#[test]
fn the_parts_of_every_row_sum_to_the_whole() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, DEPENDENT, &[]) else { return };
    let ran = report(&["--estimate", "--format", "json", "--", &program, "400000000"]);
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    let estimate = &document["estimate"];
    let is_covered = estimate["covered"].as_f64().is_some_and(|share| share > 0.5);
    need!(is_covered, format!("too few samples: {estimate:#}"));
    for kind in ["functions", "loops", "blocks"] {
        let rows = estimate[kind].as_array().expect("rows");
        assert!(!rows.is_empty(), "{kind}: {estimate:#}");
        rows.iter().for_each(is_sound);
    }
    is_sound(&estimate["program"]);
    let runs = estimate["runs"].as_array().expect("runs");
    assert_eq!(runs[0]["run"], "samples");
    assert!(runs.iter().any(|run| run["run"] == "counts"), "{runs:#?}");
    // No counted node has a value because of it.
    let nodes = document["nodes"].as_array().expect("nodes");
    if document["source"] == "no_pmu" {
        assert!(nodes.iter().all(|node| node["value"].is_null()), "{nodes:#?}");
    }
}

#[test]
fn an_estimate_needs_a_command_or_a_process_and_is_no_pmu() {
    let ran = tdtool(["report", "--estimate", "-a", "--duration", "1"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    let ran = tdtool(["report", "--estimate", "--require-pmu", "--", "true"]);
    need!(ran.code() != Some(0), "this machine has a PMU");
    assert_eq!(ran.code(), Some(3), "{}", ran.stderr);
}

#[test]
fn a_program_too_short_to_estimate_says_so_and_what_to_do() {
    let ran = report(&["--estimate", "--", "true"]);
    need!(ran.code() == Some(0), ran.stderr);
    // A sample each millisecond of processor time: mostly there is none.
    need!(!ran.stderr.contains(" of cpu-clock"), "it was sampled");
    need!(!ran.stderr.contains("cannot be sampled"), "no samples here");
    assert!(ran.stderr.contains("nothing was estimated"), "{}", ran.stderr);
}

#[test]
fn what_an_estimate_costs_is_said_where_there_is_no_tree() {
    let _busy = busy();
    let program = env!("CARGO_BIN_EXE_tdtool");
    let command = ["--", program, "workload", "run", "dependent-adds", "--seconds", "0.2"];
    let ran = report(&[&["--format", "json"][..], &command].concat());
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    need!(document["source"] == "no_pmu", "this machine has a PMU");
    let first = &document["conclusion"]["next"][0];
    let asked =
        format!("tdtool report --estimate -- {program} workload run dependent-adds --seconds 0.2");
    assert_eq!(first["command"], asked, "{document:#}");
    assert!(first["why"].is_string(), "{first}");
    assert!(document.get("estimate").is_none());
}

#[test]
fn a_process_is_estimated_in_windows_and_named() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, DEPENDENT, &[]) else { return };
    // Longer than any window; the program ends with the test.
    let mut child = start(crate::support::run::program(&work).arg("400000000000"));
    let pid = child.id().to_string();
    let ran = report(&["--estimate", "--format", "json", "-p", &pid]);
    let runs_on = child.try_wait().expect("its state").is_none();
    send(&child, Signal::SIGTERM);
    ended(child);
    assert!(runs_on, "it survives: {}", ran.stderr);
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    assert_eq!(document["subject"][0], format!("work ({pid})"), "{}", ran.stderr);
    need!(document["source"] == "no_pmu", "this machine has a PMU");
    let estimate = &document["estimate"];
    need!(estimate["covered"].as_f64().is_some_and(|share| share > 0.5), "too few samples");
    is_sound(&estimate["program"]);
}

/// What the program of a test prints.
const PRINTED: &str = "printed";

/// Whoever redirects a program's output expects it once, and no copy of it around the report.
#[test]
fn what_a_program_prints_is_there_once_however_often_it_runs() {
    let _busy = busy();
    let folder = Folder::new();
    let text = DEPENDENT.replace("#include <stdlib.h>", "#include <stdlib.h>\n#include <stdio.h>");
    let prints = format!("{{ puts(\"{PRINTED}\"); return dependent");
    let text = text.replace("{ return dependent", &prints);
    let Some(work) = compiled(&folder, &text, &[]) else { return };
    let ran = report(&["--estimate", "--", &work, "200000000"]);
    need!(ran.code() == Some(0), ran.stderr);
    assert_eq!(ran.stdout.trim_end(), PRINTED);
    assert!(!ran.stderr.contains(PRINTED), "{}", ran.stderr);
}

/// The second run waits to be interrupted.
#[test]
fn an_interrupted_estimate_has_the_samples_and_says_what_is_missing() {
    let _busy = busy();
    let folder = Folder::new();
    let script = folder.write(
        "once.sh",
        "if [ -e $1/first ]; then touch $1/second; exec sleep 1000; fi\ntouch $1/first\nshift\nexec \"$@\"\n",
    );
    let (own, program) = (folder.path().to_str().unwrap(), env!("CARGO_BIN_EXE_tdtool"));
    let command_of_it = ["sh", &script, own, program, "workload", "run", "dependent-adds"];
    let output = folder.file("report.json");
    let evidence = folder.file("evidence.json");
    let asked = ["report", "--estimate", "--evidence", &evidence, "--format", "json", "--output"];
    let asked = [&asked[..], &[&output, "--"]].concat();
    let repeats = ["--repeats", "600"];
    let mut child = start(&mut command([&asked[..], &command_of_it, &repeats].concat()));
    let second = folder.file("second");
    while !Path::new(&second).exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    send(&child, Signal::SIGINT);
    let ran = ended(child);
    need!(Path::new(&second).exists(), ran.stderr);
    assert_eq!(ran.code(), Some(130), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&folder.read("report.json")).expect("a document");
    let estimate = &document["estimate"];
    let rows = estimate["functions"].as_array().expect("rows");
    let hottest = rows.first().expect("the functions of the samples");
    assert!(hottest["name"].as_str().is_some_and(|name| name.contains("dependent")), "{rows:#?}");
    assert_eq!(hottest["sentence"], "No estimate: interrupted while entries were counted.");
    assert!(estimate["notes"].to_string().contains("interrupted"), "{estimate:#}");
    // What was known is kept.
    let again = tdtool(["report", &evidence, "--format", "json"]).json();
    assert_eq!(again["estimate"]["functions"], estimate["functions"]);
}

/// Jumps of all kinds: to other functions by a pointer, in a table of cases, back in a loop.
const JUMPS: &str = r#"
#include <stdlib.h>
__attribute__((noinline)) static long repeated(long x) {
    for (int i = 0; i < 16; i++) x = (x + i) ^ (x >> 3);
    return x;
}
__attribute__((noinline)) static long first_way(long x) { return x * 3; }
__attribute__((noinline)) static long second_way(long x) { return x ^ 5; }
static long (*volatile ways[])(long) = {first_way, second_way};
__attribute__((noinline)) static long by_pointer(long x) { return ways[x >> 7 & 1](x + 1); }
__attribute__((noinline)) static long by_number(long x) {
    switch (x >> 9 & 7) {
    case 0: return first_way(x); case 1: return x + 2; case 2: return second_way(x) + 1; case 3: return x / 3;
    case 4: return x - 9; case 5: return first_way(x) * x; case 6: return x << 3; default: return ~x;
    }
}
int main(int count, char **arguments) {
    long x = count, rounds = atol(arguments[1]) / 32;
    for (long i = 0; i < rounds; i++) x = repeated(x & 64 ? by_pointer(x + i) : by_number(x)) * 25214903917 + 11;
    return x == 1;
}
"#;

/// The file is enough: the program is gone, and the parts are the same.
#[test]
fn kept_evidence_is_evaluated_to_the_same_parts_without_the_program() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, JUMPS, &[]) else { return };
    for (name, redact) in [("evidence.json", &[][..]), ("evidence.json.gz", &["--redact"][..])] {
        let file = folder.file(name);
        let options = ["--estimate", "--evidence", &file, "--format", "json"];
        let ran =
            report(&[&options[..], redact, &["--", &program, "400000000", "an-argument"]].concat());
        need!(ran.code() == Some(0), ran.stderr);
        let live = ran.json();
        let kept = std::fs::rename(&program, folder.file("gone"));
        let again = tdtool(["report", &file, "--format", "json"]);
        kept.and_then(|()| std::fs::rename(folder.file("gone"), &program)).expect("renamed");
        assert_eq!(again.code(), Some(0), "{}", again.stderr);
        let again = again.json();
        for kind in ["functions", "loops", "blocks"] {
            let parts = |of: &Value| -> Vec<Value> {
                let rows = of["estimate"][kind].as_array().expect("rows").clone();
                rows.iter().map(|row| row["parts"].clone()).collect()
            };
            assert!(!parts(&live).is_empty());
            assert_eq!(parts(&again), parts(&live), "{kind}");
        }
        assert_eq!(again["estimate"]["program"]["parts"], live["estimate"]["program"]["parts"]);
        if !redact.is_empty() {
            // A note names the file that was given; all else is from within it.
            let text = again.to_string().replace(&file, "FILE");
            let folder = folder.path().to_str().expect("UTF-8");
            for name in [folder, "by_pointer", "an-argument"] {
                assert!(!text.contains(name), "{name} in {text}");
            }
        }
    }
    let ran = tdtool(["report", "--evidence", "x", "--", "true"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
}

/// The command takes the folder away. What was measured is shown and kept elsewhere, and the remedy says where.
#[test]
fn evidence_that_cannot_be_written_is_an_error_after_the_report() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, DEPENDENT, &[]) else { return };
    let gone = folder.file("gone");
    std::fs::create_dir(&gone).expect("made");
    let script = folder.write("run.sh", "rm -rf \"$1\"\nexec \"$2\" 100000000\n");
    let evidence = format!("{gone}/evidence.json");
    let asked = ["report", "--estimate", "--evidence", &evidence, "--format", "json", "--"];
    let asked = [&asked[..], &["sh", &script, &gone, &program]].concat();
    let ran = ended(start(command(asked).env("TMPDIR", folder.path())));
    need!(ran.code() != Some(3), ran.stderr);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert!(ran.json()["estimate"]["program"]["parts"].is_object(), "{}", ran.stdout);
    let remedy = ran.stderr.lines().find(|line| line.contains("mv ")).unwrap_or_default();
    assert!(!remedy.is_empty(), "{}", ran.stderr);
    let kept = remedy.split_whitespace().find(|word| word.contains("/tdtool-evidence-"));
    let again = tdtool(["report", kept.expect("a file"), "--format", "json"]).json();
    assert!(again["estimate"]["program"]["parts"].is_object(), "{again:#}");
}

/// A loop that is left in its first iteration in most cases, as those of lookups are.
const LOOKUP: &str = r#"
#include <stdlib.h>
__attribute__((noinline)) static long lookup(long *keys, unsigned long at, long key) {
    while (keys[at & 1023] != key) { at += 7; key -= at & 1; }
    return at;
}
int main(int count, char **arguments) {
    static long keys[1024];
    long sum = 0, rounds = atol(arguments[1]);
    for (long i = 0; i < 1024; i++) keys[i] = i;
    for (long i = 0; i < rounds; i++) sum += lookup(keys, i, i & 1023);
    return sum == 1;
}
"#;

#[test]
fn a_loop_of_one_iteration_is_divided_block_by_block() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, LOOKUP, &[]) else { return };
    let ran = report(&["--estimate", "--format", "json", "--", &program, "100000000"]);
    need!(ran.code() == Some(0), ran.stderr);
    let estimate = &ran.json()["estimate"];
    let of = |kind: &str| {
        let rows = estimate[kind].as_array().expect("rows").iter();
        rows.filter(|row| row["name"] == "lookup").cloned().collect::<Vec<Value>>()
    };
    need!(!of("functions").is_empty(), format!("too few samples: {estimate:#}"));
    assert_eq!(of("loops"), [] as [Value; 0], "{estimate:#}");
    let blocks = of("blocks");
    need!(!blocks.is_empty(), format!("too few samples: {estimate:#}"));
    assert!(blocks.iter().any(|row| row["isolated"].is_number()), "{blocks:#?}");
    // The next step is a command that works.
    let next = blocks[0]["next"].as_str().expect("a command");
    let mut words = next.split(' ');
    assert_eq!(words.next(), Some("tdtool"), "{next}");
    assert_eq!(tdtool(words).code(), Some(0), "{next}");
}

/// Threads of this test keep all processors busy until it is dropped.
struct Load(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Load {
    fn of_all_processors() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let spin = |ends: Arc<AtomicBool>| while !ends.load(Ordering::Relaxed) {};
        let one = |_| {
            std::thread::spawn({
                let ends = Arc::clone(&ends);
                move || spin(ends)
            })
        };
        let all = (0..count).map(one).collect();
        Self(ends, all)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.drain(..).for_each(|one| one.join().expect("it only spins"));
    }
}

#[test]
fn an_estimate_beside_others_says_so() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, DEPENDENT, &[]) else { return };
    // The note is of all processors, of which a quota may leave the test too few.
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = stat.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1);
    let own = std::thread::available_parallelism().map_or(1, usize::from);
    need!((1..=4 * own).contains(&all), format!("{own} of {all} processors"));
    let _load = Load::of_all_processors();
    let ran = report(&["--estimate", "--format", "json", "--", &program, "100000000"]);
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    need!(document["source"] == "no_pmu", "this machine has a PMU");
    let notes = document["estimate"]["notes"].to_string();
    need!(document["estimate"]["runs"].to_string().contains("counts"), notes);
    assert!(notes.contains("busy"), "{notes}");
}
