//! A tree for each function, from counts that samples read: against the script of a scripted kernel.

use super::{compiled, json, report};
use crate::profile::large::within;
use crate::support::child::Limited as _;
use crate::support::files::Folder;
use crate::support::scripted::{Event, Phase, Script};
use serde_json::Value;
use std::path::Path;

/// Functions that are not run.
const PROGRAM: &str = r#"
__attribute__((noinline)) unsigned misses(unsigned n, unsigned *x) {
    for (unsigned i = 0; i < n; i++) x = x + *x;
    return *x;
}
__attribute__((noinline)) unsigned computes(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++) x = x * 1664525u % 977u;
    return x;
}
__attribute__((noinline)) unsigned flickers(unsigned n) { return n * 3 + 1; }
__attribute__((noinline)) unsigned rare(unsigned n) { return n * 5 + 1; }
int main(int argc, char **argv) {
    static unsigned place[4];
    return computes(argc, argc) + misses(0, place) + flickers(argc) + rare(argc);
}
"#;

/// Level 1 of Ice Lake: retiring, bad speculation, front end, back end.
pub const NODES: [&str; 4] = ["Retiring", "Bad_Speculation", "Frontend_Bound", "Backend_Bound"];

/// Cycles at one per nanosecond, five slots each, divided as `shares` say.
fn phase(function: &'static str, ns: f64, shares: [f64; 4]) -> Phase {
    let slots = 5.0;
    let rates =
        [vec![1.0, slots], shares.iter().map(|s| s * slots).collect(), vec![0.0, 0.0]].concat();
    Phase { function, thread: 0, ns, rates }
}

/// Samples of cycles, one each millisecond, that read the level-1 group of Ice Lake.
fn script(phases: Vec<Phase>, rounds: usize) -> Script {
    let event = |name, config, period| Event { name, config, period };
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
        phases,
        rounds,
        group: true,
        whole_cpus: false,
        cpuid: "GenuineIntel,6,106,6",
    }
}

const MISSES: [f64; 4] = [0.1, 0.05, 0.05, 0.8];
const COMPUTES: [f64; 4] = [0.8, 0.0, 0.1, 0.1];

fn recorded(folder: &Folder, script: &Script) -> Option<String> {
    let program = compiled(folder, PROGRAM, &["-no-pie"])?;
    Some(folder.write("perf.data", script.perf_data(Path::new(&program))))
}

/// Shares of [`mixed`], two thirds of whose time computes.
pub const MIXED: [f64; 4] = [
    (MISSES[0] + 2.0 * COMPUTES[0]) / 3.0,
    (MISSES[1] + 2.0 * COMPUTES[1]) / 3.0,
    (MISSES[2] + 2.0 * COMPUTES[2]) / 3.0,
    (MISSES[3] + 2.0 * COMPUTES[3]) / 3.0,
];

/// A recording of one program with two functions.
pub fn mixed(folder: &Folder) -> Option<String> {
    let phases = vec![phase("misses", 17e6, MISSES), phase("computes", 34e6, COMPUTES)];
    recorded(folder, &script(phases, 100))
}

fn tree<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["per_function"]["functions"].as_array().expect("functions");
    all.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("{name} in {all:#?}"))
}

/// Distance of each node from the script, and the error that the tree states.
fn distances(tree: &Value, truth: [f64; 4]) -> Vec<(f64, f64)> {
    let nodes = tree["nodes"].as_array().expect("nodes");
    let of = |(id, truth): (&&str, f64)| {
        let node = nodes.iter().find(|n| n["id"] == **id).expect("the node");
        let number = |key: &str| node[key].as_f64().unwrap_or_else(|| panic!("{key} of {node}"));
        ((number("value") - truth).abs(), number("error") + number("bias"))
    };
    NODES.iter().zip(truth).map(of).collect()
}

#[test]
fn functions_that_run_longer_than_a_sample_have_the_tree_of_the_script() {
    let folder = Folder::new();
    let phases = vec![phase("misses", 17e6, MISSES), phase("computes", 33e6, COMPUTES)];
    let Some(file) = recorded(&folder, &script(phases, 100)) else { return };
    let document = json(&[&file]);
    let mut outside = 0;
    for (name, truth, share) in [("misses", MISSES, 0.34), ("computes", COMPUTES, 0.66)] {
        let tree = tree(&document, name);
        assert_eq!(tree["trusted"], true, "{tree}");
        assert!((tree["share"].as_f64().expect("a share") - share).abs() < 0.02, "{tree}");
        for (distance, error) in distances(tree, truth) {
            // Half a sample of other code in each phase of 17 or 33 samples: 0.5 / 17 of 0.7 at most.
            assert!(distance < 0.03, "{name}: {distance} ± {error}: {tree}");
            outside += usize::from(distance > error + 1e-3);
        }
    }
    assert!(outside <= 1, "{outside} of 8 outside their ±: {document:#}");
    let of = &document["per_function"];
    // One sample each millisecond; 30 of 5000 are the smallest function.
    assert!((of["interval_ns"].as_f64().expect("a time") - 1e6).abs() < 1e4, "{of}");
    assert!((of["smallest_share"].as_f64().expect("a share") - 30.0 / 5000.0).abs() < 1e-3);
    let text = report(&[&file]).stdout;
    let backend = tree(&document, "misses")["nodes"].as_array().expect("nodes");
    let backend = backend.iter().find(|n| n["id"] == "Backend_Bound").expect("the node");
    let shown = format!(" {:.1} % ±", 100.0 * backend["value"].as_f64().expect("a value"));
    let mut rows = text.lines().filter(|line| line.contains("misses "));
    assert!(rows.any(|row| row.contains(&shown)), "no {shown}: {text}");
}

/// Each of 400,000 readings, with its eight counts, took 300 bytes until the end: 165 MB of addresses in all.
#[test]
fn readings_are_not_kept() {
    let folder = Folder::new();
    let phases = vec![phase("misses", 17e6, MISSES), phase("computes", 33e6, COMPUTES)];
    let Some(file) = recorded(&folder, &script(phases, 8_000)) else { return };
    let text = within(110_000, "report", &file).succeeded().stdout;
    assert!(text.contains("· 4000"), "{text}");
    let rows = || text.lines().filter(|line| line.contains("misses ") && line.contains('±'));
    assert!(rows().count() > 1 && rows().all(|row| !row.contains("not trusted")), "{text}");
}

#[test]
fn functions_that_come_and_go_between_samples_are_not_trusted() {
    let folder = Folder::new();
    // 40 µs at a time, 20 times between two samples: every reading is of both.
    let phases = vec![phase("flickers", 2e4, MISSES), phase("computes", 2e4, COMPUTES)];
    let Some(file) = recorded(&folder, &script(phases, 20_000)) else { return };
    let document = json(&[&file]);
    for name in ["flickers", "computes"] {
        let tree = tree(&document, name);
        assert_eq!(tree["trusted"], false, "{tree}");
        assert!(tree["reason"].is_string(), "{tree}");
    }
}

#[test]
fn functions_with_few_readings_are_not_trusted() {
    let folder = Folder::new();
    let phases = vec![phase("computes", 49e6, COMPUTES), phase("rare", 1e6, MISSES)];
    let Some(file) = recorded(&folder, &script(phases, 20)) else { return };
    let document = json(&[&file]);
    assert_eq!(tree(&document, "computes")["trusted"], true);
    let rare = tree(&document, "rare");
    assert_eq!(rare["trusted"], false, "{rare}");
    assert!(rare["reason"].is_string(), "{rare}");
}

/// One thread computes, the other misses; the CPU changes between them every 5 ms.
#[test]
fn counts_of_threads_and_of_whole_cpus_are_told_apart() {
    let folder = Folder::new();
    for whole_cpus in [false, true] {
        let of = |function, ns, shares, thread| Phase { thread, ..phase(function, ns, shares) };
        let phases = vec![of("misses", 5e6, MISSES, 0), of("computes", 5e6, COMPUTES, 1)];
        let script = Script { whole_cpus, ..script(phases, 400) };
        let Some(file) = recorded(&folder, &script) else { return };
        let document = json(&[&file]);
        for (name, truth) in [("misses", MISSES), ("computes", COMPUTES)] {
            let tree = tree(&document, name);
            assert_eq!(tree["trusted"], true, "{whole_cpus}: {tree}");
            let mixed = tree["mixed"].as_f64().expect("a share");
            let (wide, near) = if whole_cpus { ((0.1, 0.3), 0.1) } else { ((0.0, 0.01), 0.005) };
            // Of five samples of a CPU in a phase one began in the other phase; threads do nothing else.
            assert!(mixed >= wide.0 && mixed <= wide.1, "{whole_cpus}: {mixed}");
            for (distance, error) in distances(tree, truth) {
                assert!(distance < near, "{whole_cpus} {name}: {distance} ± {error}: {tree}");
            }
        }
    }
}

#[test]
fn a_flame_graph_and_folded_stacks_have_the_dominating_node() {
    let folder = Folder::new();
    let phases = vec![phase("misses", 17e6, MISSES), phase("computes", 33e6, COMPUTES)];
    let Some(file) = recorded(&folder, &script(phases, 100)) else { return };
    let (svg, folded) = (folder.file("flame.svg"), folder.file("folded"));
    let output = report(&[&file, "--flamegraph", &svg, "--folded", &folded, "--folded-nodes"]);
    assert!(output.status.success(), "{output:?}");
    let lines = folder.read("folded");
    let samples = |stack: &str| -> f64 {
        let line = lines.lines().find_map(|l| l.strip_prefix(stack)).unwrap_or("0");
        line.trim().parse().expect("samples")
    };
    // 34 % of 5000 samples, 80 % of these.
    assert!((samples("misses;Backend Bound ") - 1360.0).abs() < 100.0, "{lines}");
    assert!((samples("computes;Retiring ") - 2640.0).abs() < 100.0, "{lines}");
    let all: f64 = lines.lines().filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok()).sum();
    assert!((all - 5000.0).abs() < 150.0, "{all}");
    // A sample type of pprof has the samples of the stacks that end in its node.
    let profile = folder.file("profile.pb.gz");
    report(&[&file, "--pprof", &profile]).succeeded();
    let go = ["tool", "pprof", "-top", "-sample_index=Retiring", &profile];
    if let Ok(output) = std::process::Command::new("go").args(go).run_limited() {
        let of_node = |line: &&str| line.contains(";Retiring ");
        let samples = |line: &str| line.rsplit(' ').next()?.parse::<u64>().ok();
        let all: u64 = lines.lines().filter(of_node).filter_map(samples).sum();
        let seen = String::from_utf8_lossy(&output.stdout);
        assert!(seen.contains(&format!("of {all} total")), "{all}: {seen}");
        // Without a choice it shows all samples, not the type that happens to be the last.
        let plain = ["tool", "pprof", "-top", &profile];
        let plain = std::process::Command::new("go").args(plain).run_limited().expect("go");
        let plain = String::from_utf8_lossy(&plain.stdout);
        assert!(plain.contains("Type: samples"), "{plain}");
    }
    let picture = folder.read("flame.svg");
    let colour = |name: &str| {
        let frame = picture.lines().find(|l| l.contains(&format!("data-name=\"{name}\"")));
        let rest = frame.and_then(|l| l.split("fill=\"").nth(1)).expect("a colour");
        rest[..7].to_owned()
    };
    let legend = |node: &str| {
        let mut lines = picture.lines();
        let mut before = "";
        let found = lines.find(|line| {
            let is = line.contains(&format!(">{node} "));
            if !is {
                before = line;
            }
            is
        });
        assert!(found.is_some(), "{node} in the legend");
        before.split("fill=\"").nth(1).expect("a colour")[..7].to_owned()
    };
    assert_eq!(colour("misses"), legend("Backend Bound"));
    assert_eq!(colour("computes"), legend("Retiring"));
}

#[test]
fn without_a_pmu_the_note_says_why_there_is_no_tree_per_function() {
    let document = json(&["--per-function", "--", "true"]);
    if document["source"] == "no_pmu" {
        let notes = document["notes"].to_string() + &document["sampled"]["notes"].to_string();
        assert!(notes.contains("no tree per function: "), "{document:#}");
        assert!(document["per_function"].is_null());
    }
}
