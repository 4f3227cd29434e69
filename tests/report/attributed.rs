//! Nodes in functions, blocks and lines: recordings of several events.

use super::{compiled, json, report};
use crate::support::files::{Folder, shared, text};
use crate::support::scripted::{Event, Phase, Script};
use serde_json::Value;
use std::path::Path;

/// Two functions, which are not run.
const PROGRAM: &str = r#"
__attribute__((noinline)) unsigned chase(unsigned n, unsigned *x) {
    for (unsigned i = 0; i < n; i++) x = x + *x;
    return *x;
}
__attribute__((noinline)) unsigned compute(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++) x = x * 1664525u % 977u;
    return x;
}
int main(int argc, char **argv) {
    static unsigned place[4];
    return compute(argc, argc) + chase(0, place);
}
"#;

/// Cycles, misses of L3 and retired slots on a Tiger Lake: chase has 40 % of the cycles and 95 % of the misses,
/// compute most of the work.
fn script() -> Script {
    let event = |name, config, period| Event { name, config, period };
    let phase =
        |function, ns, rates: [f64; 3]| Phase { function, thread: 0, ns, rates: rates.into() };
    Script {
        // Encodings: perf list of Tiger Lake (MEM_LOAD_RETIRED.L3_MISS is event 0xd1, umask 0x20;
        // UOPS_RETIRED.SLOTS 0xc2, umask 0x02).
        events: vec![
            event("cycles:ppp", 0x3c, 200_000.0),
            event("r20d1:ppp", 0x20d1, 500.0),
            event("uops_retired.slots:u", 0x2c2, 300_000.0),
        ],
        phases: vec![
            phase("chase", 4e6, [3.0, 0.019, 0.5]),
            phase("compute", 6e6, [3.0, 0.001 * 2.0 / 3.0, 9.0]),
        ],
        rounds: 100,
        group: false,
        whole_cpus: false,
        cpuid: "GenuineIntel,6,140,1",
    }
}

fn recorded(folder: &Folder, script: &Script) -> Option<String> {
    let program = compiled(folder, PROGRAM, &["-no-pie"])?;
    Some(folder.write("perf.data", script.perf_data(Path::new(&program))))
}

fn named<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let rows = rows.as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {rows:#?}"))
}

#[test]
fn each_event_has_the_share_of_the_script_in_each_function() {
    let folder = Folder::new();
    let script = script();
    let Some(file) = recorded(&folder, &script) else { return };
    let document = json(&[&file]);
    let mut outside = 0;
    for (event, row) in document["events"].as_array().expect("events").iter().enumerate() {
        assert!(row["samples"].as_u64().is_some_and(|n| n > 100), "{row}");
        for name in ["chase", "compute"] {
            let truth = script.share(event, name);
            let found = named(&row["functions"], name);
            let (share, error) = (found["share"].as_f64(), found["error"].as_f64());
            let (share, error) = (share.expect("a share"), error.expect("an error"));
            outside += usize::from((share - truth).abs() > error);
            assert!((share - truth).abs() < 3.0 * error, "{name}: {share} ± {error}, {truth}");
            // The same in the list of functions.
            let part = &named(&document["functions"], name)["events"][event];
            assert_eq!(part["share"], found["share"]);
        }
    }
    // Of six intervals of 95 % one may miss; the samples come in step, which makes them better than random.
    assert!(outside <= 1, "{outside} of 6 outside their ±");
}

#[test]
fn functions_are_listed_by_any_node_that_an_event_locates() {
    let folder = Folder::new();
    let script = script();
    let Some(file) = recorded(&folder, &script) else { return };
    // By time compute is first, by misses of the last cache chase: Intel's TMA metrics locate L3_Miss_Bound (client
    // parts: DRAM_Bound) with MEM_LOAD_RETIRED.L3_MISS.
    assert_eq!(json(&[&file])["functions"][0]["name"], "compute");
    let document = json(&[&file]);
    let nodes = document["events"][1]["nodes"].to_string();
    let node = document["events"][1]["nodes"][0].as_str().expect("a node").to_owned();
    assert!(["DRAM_Bound", "L3_Miss_Bound"].contains(&node.as_str()), "{nodes}");
    for by in
        [node.as_str(), &node.to_lowercase(), "mem_load_retired.l3_miss", "r20d1:ppp", "r20d1"]
    {
        let document = json(&[&file, "--by", by]);
        assert_eq!(document["functions"][0]["name"], "chase", "{by}");
        assert_eq!(document["sampled"]["event"], "r20d1:ppp", "{by}");
        assert_eq!(document["blocks"][0]["function"], "chase", "{by}");
        let share = document["functions"][0]["share"].as_f64().expect("a share");
        assert!((share - script.share(1, "chase")).abs() < 0.05, "{by}: {share}");
    }
    let text = report(&[&file]).stdout;
    let line = text.lines().find(|l| l.contains("r20d1:ppp")).expect("the event");
    assert!(line.contains(&node.replace('_', " ")), "{line}");
    let refused = report(&[&file, "--by", "Divider"]);
    assert_eq!(refused.code(), Some(2));
    assert!(refused.stderr.contains("ARITH.DIVIDER_ACTIVE"), "{}", refused.stderr);
}

#[test]
fn blocks_and_lines_have_their_share_of_each_event() {
    let folder = Folder::new();
    let script = script();
    let Some(file) = recorded(&folder, &script) else { return };
    let document = json(&[&file, "--annotate", "chase", "--blocks", "50"]);
    for event in 0..3 {
        let truth = script.share(event, "chase");
        let sum = |rows: &Value, wanted: &dyn Fn(&Value) -> bool| -> f64 {
            let rows = rows.as_array().expect("rows").iter().filter(|row| wanted(row));
            rows.map(|row| row["events"][event]["share"].as_f64().expect("a share")).sum()
        };
        let blocks = sum(&document["blocks"], &|row| row["function"] == "chase");
        let lines = sum(&document["annotated"]["lines"], &|_| true);
        assert!((lines - truth).abs() < 0.05, "{event}: {lines} of lines, {truth}");
        assert!((blocks - lines).abs() < 1e-6, "{event}: {blocks} of blocks, {lines} of lines");
    }
}

/// A session with counts and samples: a node's slots go to the functions with the samples of its event.
#[test]
fn counted_nodes_are_divided_among_functions() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, PROGRAM, &["-no-pie"]) else { return };
    // Of five slots a nanosecond: back end, retiring, front end.
    let (chase, compute) = ([0.8, 0.1, 0.1], [0.1, 0.8, 0.1]);
    let phase = |function, ns, shares: [f64; 3]| {
        let rates = std::iter::once(1.0).chain(shares.map(|share| 5.0 * share)).collect();
        Phase { function, thread: 0, ns, rates }
    };
    let event = |name, config, period| Event { name, config, period };
    let script = Script {
        events: vec![
            event("cycles:ppp", 0x3c, 200_000.0),
            event("TOPDOWN.BACKEND_BOUND_SLOTS", 0x2a4, 400_000.0),
            event("UOPS_RETIRED.SLOTS", 0x2c2, 400_000.0),
            event("FRONTEND_RETIRED.LATENCY_GE_4:ppp", 0x1c6, 100_000.0),
        ],
        phases: vec![phase("chase", 4e6, chase), phase("compute", 6e6, compute)],
        rounds: 100,
        group: false,
        whole_cpus: false,
        cpuid: "",
    };
    let slots = 5e9;
    // 40 % of the time in chase, 60 % in compute.
    let all = |node: usize| slots * (0.4 * chase[node] + 0.6 * compute[node]);
    let counted = [
        ("TOPDOWN.SLOTS", slots),
        ("PERF_METRICS.BACKEND_BOUND", all(0)),
        ("PERF_METRICS.RETIRING", all(1)),
        ("PERF_METRICS.FRONTEND_BOUND", all(2)),
        ("PERF_METRICS.BAD_SPECULATION", 0.0),
        ("INT_MISC.UOP_DROPPING", 0.0),
        ("INT_MISC.CLEARS_COUNT", 0.0),
    ];
    let session = folder.path().join("run.tds");
    crate::session::write(&session, &script.session(Path::new(&program), "icx", &counted));
    let (session, folded) = (text(&session), folder.file("folded"));
    report(&[session, "--folded", &folded, "--folded-nodes"]).succeeded();
    let lines = folder.read("folded");
    let share = |function: &str, node: &str| -> f64 {
        let of = |stack: &str| -> f64 {
            let own = lines.lines().filter(|l| l.starts_with(stack));
            own.filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok()).sum()
        };
        of(&format!("{function};{node} ")) / of(&format!("{function};"))
    };
    for (function, shares) in [("chase", chase), ("compute", compute)] {
        for (node, truth) in ["Backend Bound", "Retiring", "Frontend Bound"].iter().zip(shares) {
            let found = share(function, node);
            assert!((found - truth).abs() < 0.04, "{function} {node}: {found}, {truth}: {lines}");
        }
    }
    // The table is the session's own.
    let document = json(&[session, "--by", "Backend_Bound"]);
    assert_eq!(document["functions"][0]["name"], "chase");
    let nodes = document["nodes"].as_array().expect("nodes");
    let backend = nodes.iter().find(|n| n["id"] == "Backend_Bound").expect("the node");
    assert!((backend["value"].as_f64().expect("a value") - 0.38).abs() < 1e-6, "{backend}");
}

/// A recording of a Tiger Lake (gematria): 16 samples of cycles, 15 of instructions, one of L3 misses.
#[test]
fn a_recording_of_perf_with_three_events_is_attributed() {
    let Some(file) = shared("recordings/gematria/simple_x86_elf_object.perf.data") else { return };
    let symfs = shared("recordings/gematria").expect("its folder");
    let document = json(&[text(&file), "--symfs", text(&symfs)]);
    let events = document["events"].as_array().expect("events");
    let names: Vec<&str> = events.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["cycles:u", "instructions:u", "r20d1:pppu"]);
    let samples: u64 = events.iter().filter_map(|row| row["samples"].as_u64()).sum();
    assert_eq!(samples, 32, "as perf report --stats");
    // perf recorded the processor's signature, so its table is known without --uarch.
    let node = events[2]["nodes"][0].as_str().expect("a node");
    assert!(["DRAM_Bound", "L3_Miss_Bound"].contains(&node), "{node}");
}
