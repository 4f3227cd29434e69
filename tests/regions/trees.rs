//! The tree of a region: against a scripted kernel whose counts are known, and estimated against what the source does.

use super::{marked, permitted};
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::scripted::{Event, Phase, Script};
use crate::support::tools::gcc;
use engine::regions::counted_trees;
use profile::files::SearchPaths;
use profile::hot::{Filter, Profile, Stay, Within};
use profile::perfdata;
use report::documents::estimate::Part;
use report::documents::regions::TreeSource;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Level 1 of Ice Lake, and what it is of the five slots of a cycle in two regions.
const NODES: [&str; 4] = ["Retiring", "Bad_Speculation", "Frontend_Bound", "Backend_Bound"];
const WAITS: [f64; 4] = [0.1, 0.05, 0.05, 0.8];
const COMPUTES: [f64; 4] = [0.8, 0.0, 0.1, 0.1];
/// The process of scripts.
const PID: u32 = 11;

/// Both regions run the same function, so that only the times of the regions tell them apart; a sample each
/// millisecond reads the counts.
fn script() -> Script {
    let event = |name, config, period| Event { name, config, period };
    let phase = |thread, ns, shares: [f64; 4]| {
        let rates = [vec![1.0, 5.0], shares.iter().map(|s| 5.0 * s).collect(), vec![0.0; 2]];
        Phase { function: "work", thread, ns, rates: rates.concat() }
    };
    Script {
        events: vec![
            event("cycles", 0x3c, 1e6),
            event("slots", 0x400, 0.0),
            event("topdown-retiring", 0x8000, 0.0),
            event("topdown-bad-spec", 0x8100, 0.0),
            event("topdown-fe-bound", 0x8200, 0.0),
            event("topdown-be-bound", 0x8300, 0.0),
            event("int_misc.uop_dropping", 0x100d, 0.0),
            event("int_misc.clears_count", 0x10d, 0.0),
        ],
        phases: vec![
            phase(0, 25e6, WAITS),
            phase(0, 40e6, COMPUTES),
            phase(1, 30e6, COMPUTES),
            phase(1, 20e6, WAITS),
        ],
        rounds: 60,
        group: true,
        whole_cpus: false,
        cpuid: "GenuineIntel,6,106,6",
    }
}

/// Region 0 is around all, 1 where it waits, 2 where it computes.
#[test]
fn regions_of_the_same_function_have_the_counts_of_their_own_times() {
    let folder = Folder::new();
    let source = "unsigned work(unsigned n) { for (unsigned i = 0; i < n; i++) n ^= i * 5; return n; }\
                  int main(int n, char **a) { return work(n); }";
    let Some(program) = gcc(folder.path(), source, &["-no-pie", "-fno-inline"], "scripted") else {
        return;
    };
    let script = script();
    let file = folder.write("perf.data", script.perf_data(&program));
    let mut stays: HashMap<u32, Vec<Stay>> = HashMap::new();
    for (from, to, phase) in script.times(&program) {
        let thread = script.phases[phase].thread as u32;
        let region = if script.phases[phase].rates[2] < 1.0 { 1 } else { 2 };
        stays.entry(PID + thread).or_default().push(Stay { from, to, region, thread });
    }
    let within = Within { stays, around: vec![None, Some(0), Some(0)] };
    let recording = perfdata::open(Path::new(&file), false).unwrap();
    let filter = Filter { regions: Some(Arc::new(within)), ..Filter::default() };
    let profile = Profile::new(&recording, &filter, SearchPaths::default()).unwrap();
    let tables = [engine::library().load("icl").unwrap()];
    let (table, trees) = counted_trees(&profile, &tables).expect("counts");
    assert_eq!(table, "icl");
    let shares = |region, thread| {
        let tree = &trees[&(region, thread)];
        assert_eq!((tree.source, &tree.reason), (TreeSource::Counted, &None), "{tree:?}");
        NODES.map(|id| tree.nodes.iter().find(|node| node.id == id).unwrap().value.unwrap())
    };
    for (region, truth) in [(1, WAITS), (2, COMPUTES)] {
        for thread in [None, Some(0), Some(1)] {
            let found = shares(region, thread);
            // Half a sample of other code in each stay of 20 samples or more: 0.5 / 20 of 0.7 at most.
            let is_near =
                found.iter().zip(truth).all(|(found, truth)| (found - truth).abs() < 0.03);
            assert!(is_near, "{region} {thread:?}: {found:?}, not {truth:?}");
        }
    }
    // By hand: 45 of 115 ms wait; of thread 0, 25 of 65.
    for (thread, share) in [(None, 45.0 / 115.0), (Some(0), 25.0 / 65.0)] {
        let (around, backend) = (shares(0, thread), 0.8 * share + 0.1 * (1.0 - share));
        assert!((around[3] - backend).abs() < 0.02, "{around:?}, not {backend}");
    }
    assert_eq!(trees[&(0, None)].samples, profile.samples);
}

/// A chase through 64 MiB, and dependent divisions, in regions of threads.
const PROGRAM: &str = r#"
#include "tdtool.h"
#include <pthread.h>
#include <stdlib.h>
#define N (1 << 23)
static size_t *ring;
__attribute__((noipa)) size_t chase(size_t n, size_t at) { while (n--) at = ring[at]; return at; }
__attribute__((noipa)) double divide(long n, double x) { while (n--) x = 1.0 / (x + 0.5); return x; }
static volatile size_t end;
static volatile double quotient;
static void *work(void *at) {
    for (int i = 0; i < 20; i++) {
        TDTOOL_REGION("round");
        tdtool_begin("chasing"); end = chase(100000, (size_t)at + i); tdtool_end("chasing");
        tdtool_begin("dividing"); quotient = divide(2000000, 1.0); tdtool_end("dividing");
    }
    return 0;
}
int main(int count, char **arguments) {
    ring = malloc(N * sizeof *ring);
    /* Each number once (Knuth, The Art of Computer Programming 2, 3.2.1.2). */
    for (size_t i = 0; i < N; i++) ring[i] = (i * 1664525 + 1013904223) % N;
    pthread_t other;
    if (count > 1) pthread_create(&other, 0, work, (void *)77);
    work(0);
    if (count > 1) pthread_join(other, 0);
    return 5;
}
"#;

fn region<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["regions"].as_array().unwrap();
    all.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {document:#}"))
}

#[test]
fn samples_of_a_region_are_in_the_functions_that_it_calls_by_thread() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = marked(&folder, PROGRAM, &["-O2"]) else { return };
    let own = ["report", "--regions", "--format", "json", "--output", "-", "--"];
    let Some(ran) = permitted(tdtool([&own[..], &[text(&program), "2"]].concat())) else { return };
    let document = ran.json();
    need!(document["sampled"]["samples"].as_u64() > Some(300), ran.stderr);
    for (name, function) in [("chasing", "chase"), ("dividing", "divide")] {
        let row = region(&document, name);
        let of_threads = row["threads"].as_array().unwrap();
        assert_eq!(of_threads.len(), 2, "{row:#}");
        for tree in of_threads.iter().map(|own| &own["tree"]).chain([&row["tree"]]) {
            let hottest = &tree["functions"][0];
            let share = hottest["share"].as_f64().unwrap();
            assert!(hottest["name"] == function && share > 0.7, "{name}: {tree:#}");
        }
        let of = |tree: &Value| tree["samples"].as_u64().unwrap();
        let sum: u64 = of_threads.iter().map(|own| of(&own["tree"])).sum();
        assert_eq!(sum, of(&row["tree"]), "{row:#}");
        assert!(of(&region(&document, "round")["tree"]) >= sum);
    }
    // Either a counted tree, or the reason why there is none.
    let (sampled, tree) = (&document["sampled"], &region(&document, "round")["tree"]);
    match sampled["no_tree"].as_str() {
        Some(why) => assert!(why.contains("--estimate") && tree["source"] == "none", "{sampled}"),
        None => assert_eq!(tree["source"], "counted"),
    }
    let plain = permitted(tdtool(["report", "--regions", "--no-code", "--", text(&program)]));
    assert!(plain.is_some_and(|ran| !ran.stderr.contains("Time of regions")));
}

#[test]
fn an_estimate_divides_the_time_of_each_region() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = marked(&folder, PROGRAM, &["-O2"]) else { return };
    let own = ["report", "--regions", "--estimate", "--format", "json", "--output", "-", "--"];
    let Some(ran) = permitted(tdtool([&own[..], &[text(&program)]].concat())) else { return };
    let document = ran.json();
    need!(document["sampled"]["table"].is_null(), "a PMU counts here");
    need!(document["sampled"]["samples"].as_u64() > Some(300), ran.stderr);
    let part = |name: &str, part: &str| {
        let tree = &region(&document, name)["tree"];
        assert_eq!(tree["source"], "estimated", "{document:#}");
        let parts = tree["parts"].as_object().unwrap();
        let of = |part: &Value, key: &str| part[key].as_f64().unwrap();
        // Others are in these.
        let all = parts.iter().filter(|(name, _)| Part::of(name).is_some());
        let sum: f64 = all.map(|(_, part)| of(part, "value")).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{tree:#}");
        for one in parts.values() {
            let [low, value, high] = ["low", "value", "high"].map(|key| of(one, key));
            assert!(0.0 <= low && low <= value && value <= high && high <= 1.0, "{tree:#}");
            assert!(one["source"].is_string());
        }
        of(&parts[part], "value")
    };
    for (name, of) in [("chasing", "memory_bound"), ("dividing", "core_bound")] {
        let other = if name == "chasing" { "dividing" } else { "chasing" };
        let (own, others) = (part(name, of), part(other, of));
        assert!(own > others + 0.2, "{name}: {of} {own}, elsewhere {others}: {document:#}");
    }
    // Around both it is between them.
    let both = ["chasing", "dividing"].map(|name| part(name, "memory_bound"));
    let around = part("round", "memory_bound");
    assert!(both[1] <= around && around <= both[0], "{around} {both:?}");
}

#[test]
fn an_estimate_of_regions_needs_a_command() {
    let ran = tdtool(["report", "--regions", "--estimate", "-p", "1", "--duration", "1"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
}
