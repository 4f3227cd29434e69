//! `tdtool prefetch`: recordings whose truth is known (../shared/simlbr/README.md), and llc.

use crate::applied::SOURCE;
use crate::support::files::{Folder, fixture, shared, text};
use crate::support::quiet::alone;
use crate::support::run::{command, ended, send, start, tdtool};
use crate::support::simlbr::{ran, recorded};
use crate::support::tools::gcc;
use crate::support::trial::{Trial, assert_holds, claim};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::Command;

fn read(arguments: &[&str]) -> Value {
    let mut all = vec!["prefetch"];
    all.extend(arguments);
    all.extend(["--format", "json"]);
    let done = tdtool(&all);
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.stderr))
}

fn row<'a>(document: &'a Value, load: &str) -> &'a Value {
    let all = document["advice"].as_array().expect("a list");
    all.iter().find(|row| row["load"] == load).unwrap_or_else(|| panic!("no advice on {load}"))
}

fn modes(row: &Value) -> Vec<u64> {
    let all = row["loop"]["modes"].as_array().expect("modes");
    all.iter().map(|mode| mode["cycles"].as_u64().unwrap()).collect()
}

fn unknown(row: &Value, what: &str) -> String {
    let all = row["unknown"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let own = all.filter_map(|text| text.strip_prefix(what)?.strip_prefix(": "));
    own.map(str::to_owned).next().unwrap_or_else(|| panic!("{what} of {row}"))
}

/// The table "What is true of kernels.c".
#[test]
fn advice_on_kernels_that_are_known() {
    let Some(folder) = shared("simlbr") else { return };
    let roots = folder.parent().unwrap();
    let recording = folder.join("levels.perf.data");
    let document = read(&[text(&recording), "--symfs", text(roots)]);

    let levels = row(&document, "0x401b4a");
    assert_eq!(modes(levels), [80, 230, 650]);
    assert_eq!((&levels["ic"], &levels["mc"]), (&json!(80.0), &json!(570.0)));
    assert_eq!((&levels["distance"], &levels["site"]), (&json!(8), &json!("inner")));
    assert_eq!(levels["slice"], json!(["0x401b48", "0x401c8a"]));
    assert_eq!((&levels["class"], &levels["refused"]), (&json!("indirect"), &Value::Null));

    let short = row(&document, "0x401ce0");
    assert_eq!((&short["loop"]["trips"], &short["site"]), (&json!(4), &json!("outer")));
    assert_eq!(short["distance"], Value::Null, "its iterations always miss");
    assert!(unknown(short, "ic").starts_with("every iteration misses"));
    // Of the outer loop, by hand: the load of N[i], its copy, the mask, and the step of i.
    assert_eq!(short["slice"], json!(OUTER_SLICES[1].1));
    let nested = row(&document, "0x401b06");
    assert_eq!((&nested["site"], &nested["slice"]), (&json!("outer"), &json!(OUTER_SLICES[0].1)));
    assert_eq!((&nested["class"], &nested["outer_class"]), (&json!("stride"), &json!("indirect")));

    assert_eq!(row(&document, "0x401a80")["class"], "chase_offset");
    assert_eq!(row(&document, "0x401a84")["class"], "pointer_chase");
    for chase in ["0x401a80", "0x401a84"] {
        assert!(row(&document, chase)["refused"].as_str().unwrap().contains("chase"));
    }
    let stride = row(&document, "0x401a1f");
    assert_eq!((&stride["stride"], &stride["distance"]), (&json!(4096), &Value::Null));
    let hash = row(&document, "0x401aba");
    assert_eq!(hash["class"], "complex");
    assert_eq!(hash["slice"], json!(["0x401ab0", "0x401ab3", "0x401ab6"]));
}

/// Loads whose prefetch belongs into the outer loop, and the instructions that compute their address there.
const OUTER_SLICES: [(&str, [&str; 4]); 2] = [
    ("0x401b06", ["0x401af0", "0x401af9", "0x401b00", "0x401b0f"]),
    ("0x401ce0", ["0x401cc8", "0x401cd1", "0x401cda", "0x401d87"]),
];

/// Their distances are known only with a loop that is measured here: then the plan has the slice and the class of the
/// loop that the prefetch belongs into.
#[test]
fn a_plan_for_an_outer_loop_has_its_slice() {
    let Some(folder) = shared("simlbr") else { return };
    let _alone = alone();
    let place = Folder::new();
    let plan = place.path().join("plan.json");
    let roots = folder.parent().unwrap();
    let recording = folder.join("levels.perf.data");
    let more = ["--symfs", text(roots), "--measure", "--plan", text(&plan)];
    let document = read(&[&[text(&recording)], &more[..]].concat());
    let plan: Value = serde_json::from_str(&std::fs::read_to_string(&plan).unwrap()).unwrap();
    for (load, slice) in OUTER_SLICES {
        let all = plan["prefetches"].as_array().unwrap();
        let Some(own) = all.iter().find(|own| own["load"] == load) else {
            eprintln!("skipped: {load} has no distance here: {}", row(&document, load)["unknown"]);
            continue;
        };
        assert_eq!((&own["site"], &own["class"]), (&json!("outer"), &json!("indirect")));
        assert_eq!((&own["slice"], &own["delta"]), (&json!(slice), &Value::Null));
        assert_ne!(own["distance"], 3, "the lowest mode alone says so");
    }
}

/// Its stride of 4 KiB runs over more lines of one set than the first cache has ways, and over many pages: measured as it
/// is, its iteration takes some ten cycles. Without misses it takes two at most (6 instructions), if that is known here.
#[test]
fn a_measured_iteration_is_one_without_misses() {
    let Some(folder) = shared("simlbr") else { return };
    let _alone = alone();
    let recording = folder.join("levels.perf.data");
    let more = ["--symfs", text(folder.parent().unwrap()), "--measure"];
    let document = read(&[&[text(&recording)], &more[..]].concat());
    let stride = row(&document, "0x401a1f");
    let Some(ic) = stride["ic"].as_f64() else {
        let why = stride["unknown"].to_string();
        assert!(why.contains("measured block: "), "{stride}");
        return eprintln!("skipped: not known here: {why}");
    };
    assert!((0.8..4.0).contains(&ic), "{stride}");
    assert!(stride["ic_source"].is_string(), "{stride}");
    assert!(stride["ic_range"].is_array(), "{stride}");
}

/// What has most of the latency comes first, and shares say whether the advice matters: of 28.5, 17.9, 17.1, 16.4 % nothing
/// is known, 0.7 % are advised.
#[test]
fn shares_of_the_latency_order_the_loads() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("levels.perf.data");
    let roots = text(folder.parent().unwrap()).to_owned();
    let done = tdtool(["prefetch", text(&recording), "--symfs", &roots]).succeeded();
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines[0].contains("1 load (0.7 %"), "{}", lines[0]);
    assert!(lines[3].starts_with("0x401a1f stride4k kernels.c:16, 28.5 %"), "{}", lines[3]);
    let chase = lines.iter().find(|line| line.contains("0x401a80")).unwrap();
    assert!(chase.trim_start().starts_with("16.3 %") || chase.contains("16.4 %"), "{chase}");
    let document = read(&[text(&recording), "--symfs", &roots]);
    let all = document["advice"].as_array().unwrap();
    let shares = |refused: bool| -> Vec<f64> {
        let own = all.iter().filter(|row| row["refused"].is_null() != refused);
        own.filter(|row| row["undecided"].is_null())
            .map(|row| row["evidence"]["share"].as_f64().unwrap())
            .collect()
    };
    assert!([shares(false), shares(true)].iter().all(|own| own.is_sorted_by(|a, b| a >= b)));
}

/// Without the program nothing is known of its loads: that is no advice against a prefetch.
#[test]
fn without_code_nothing_is_decided() {
    let Some(folder) = shared("simlbr") else { return };
    let document = read(&[text(&folder.join("levels.perf.data"))]);
    let all = document["advice"].as_array().unwrap();
    assert!(all.iter().all(|row| row["undecided"] == true && row["refused"].is_string()));
}

/// Branches and loads in two files: a lowest mode that only the latencies confirm.
#[test]
fn two_recordings_of_a_position_independent_program_give_a_distance() {
    let Some(folder) = shared("simlbr") else { return };
    let roots = folder.parent().unwrap();
    let files = ["small-pie.lbr.perf.data", "small-pie.loads.perf.data"].map(|f| folder.join(f));
    let [lbr, loads] = &files;
    let document = read(&[text(lbr), text(loads), "--symfs", text(roots)]);
    let levels = row(&document, "0x9bca");
    assert_eq!(modes(levels), [80, 230, 400, 650]);
    assert_eq!((&levels["ic"], &levels["mc"]), (&json!(80.0), &json!(570.0)));
    assert_eq!((&levels["distance"], &levels["site"]), (&json!(8), &json!("inner")));
    assert!(document["notes"].to_string().contains("--measure"), "{}", document["notes"]);
    let lost = read(&[text(lbr), text(loads)]);
    assert!(lost["notes"].to_string().contains("--symfs"), "{}", lost["notes"]);
}

/// Of the kernels only one has a distance.
#[test]
fn plans_have_what_is_known() {
    let Some(folder) = shared("simlbr") else { return };
    let roots = folder.parent().unwrap();
    let recording = folder.join("levels.perf.data");
    let place = Folder::new();
    let plan = place.path().join("plan.json");
    read(&[text(&recording), "--symfs", text(roots), "--plan", text(&plan)]);
    let plan: Value = serde_json::from_str(&std::fs::read_to_string(&plan).unwrap()).unwrap();
    let all = plan["prefetches"].as_array().unwrap();
    let [levels] = &all[..] else { panic!("{plan}") };
    assert_eq!((&levels["load"], &levels["distance"]), (&json!("0x401b4a"), &json!(8)));
    let id = levels["build_id"].as_str().unwrap();
    assert!(id.len() == 40 && id.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
    assert_eq!(levels["evidence"]["modes"], json!([80, 230, 650]));
}

/// Why no advice can be had here and now.
fn not_now(stderr: &str) -> bool {
    ["cannot trace", "core clock", "not known here"].iter().any(|why| stderr.contains(why))
}

/// Class, trips and the formula are known; how slow memory is, is not.
#[test]
fn a_command_is_advised_by_probes() {
    let _alone = alone();
    let place = Folder::new();
    let options = ["-O2", "-fno-tree-vectorize"];
    let Some(program) = gcc(place.path(), SOURCE, &options, "program") else { return };
    assert_holds("advice by probes", || {
        let done = tdtool(["prefetch", "--format", "json", "--", text(&program)]);
        if not_now(&done.stderr) {
            return Trial::Unsettled(done.stderr);
        }
        let document = done.succeeded().json();
        assert_eq!(document["evidence"], "probes");
        let all = document["advice"].as_array().unwrap();
        let class = |name: &str| {
            all.iter().find(|row| row["function"] == "kernel" && row["class"] == name).cloned()
        };
        // A run of some milliseconds may have no sample, or no burst, in the loop.
        let (Some(load), Some(index)) = (class("indirect"), class("stride")) else {
            return Trial::Unsettled(document.to_string());
        };
        assert_eq!(load["loop"]["trips_mean"], (1 << 20) as f64, "{load}");
        let (Some(ic), Some(mc)) = (load["ic"].as_f64(), load["mc"].as_f64()) else {
            return Trial::Unsettled(load.to_string());
        };
        let room = document["in_flight"]["misses"].as_f64().unwrap();
        let misses = load["misses"].as_f64().unwrap();
        let cycles = ic.max(misses * mc / room);
        assert_eq!(load["distance"].as_f64(), Some((mc / cycles).ceil().max(1.0)), "{load}");
        assert!(misses > 0.0 && misses < 1.1, "one load an iteration can miss: {load}");
        assert_eq!(load["build_id"].as_str().map(str::len), Some(40), "{load}");
        assert_eq!(
            (&load["site"], &load["ic_source"]),
            (&json!("inner"), &json!("measured block"))
        );
        let source = load["mc_source"].as_str().unwrap();
        assert!(source.starts_with("fenced latency by probes: "), "{source}");
        let refused = index["refused"].as_str().unwrap_or_default();
        claim(refused.contains("hits"), || index.to_string()).into()
    });
}

/// Ctrl-C in the first and in the second run: what was counted until then, and the status of the signal.
#[test]
fn an_interrupted_command_keeps_what_was_counted() {
    let _alone = alone();
    let place = Folder::new();
    let source = "#include <stdio.h>\nint main(void) { puts(\"begun\"); fflush(stdout); \
                  for (volatile long i = 0; i < 4000000000; i++); }";
    let Some(program) = gcc(place.path(), source, &["-O1"], "program") else { return };
    for run in [1, 2] {
        let mut child = start(command(["prefetch", "--format", "json", "--"]).arg(&program));
        // The command's output is beside the document.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let begun =
            lines.by_ref().map_while(Result::ok).filter(|line| line == "begun").nth(run - 1);
        if begun.is_none() {
            eprintln!("skipped: it cannot be sampled or traced here: {}", ended(child).stderr);
            return;
        }
        send(&child, Signal::SIGINT);
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        let done = ended(child);
        assert_eq!(done.code(), Some(130), "{rest:?}");
        assert_eq!(done.json()["schema"], "tdtool.count/1");
        assert_eq!(done.json()["interrupted"], 2);
        assert!(rest.iter().any(|line| line.contains("interrupted")), "{rest:?}");
    }
}

/// As AMD's: entries have no cycles.
#[test]
fn without_cycles_distances_are_unknown() {
    let Some(folder) = shared("simlbr") else { return };
    let place = Folder::new();
    let options = ["--no-cycles", "--max", "600000", "--period", "3001"];
    let Some(recording) = recorded(place.path(), &folder.join("kernels"), &options) else { return };
    let document = read(&[text(&recording)]);
    let stride = row(&document, "0x401a1f");
    for what in ["iterations", "ic", "distance"] {
        assert_eq!(unknown(stride, what), "this LBR has no cycles");
    }
    assert_eq!(stride["distance"], Value::Null);
}

/// A stride of 16 bytes, every fourth of which misses: its plan makes llc emit a prefetch. `-prefetch-hints-file` is
/// in LLVM 7 to at least 14.
#[test]
fn llc_emits_the_prefetch_of_a_plan() {
    let place = Folder::new();
    let at = |name: &str| place.path().join(name);
    let (code, main) = (fixture("prefetch/walk.ll"), fixture("prefetch/main.c"));
    let (object, program, plan) = (at("walk.o"), at("walk"), at("plan.afdo"));
    let llc = |more: &[&str]| {
        let mut command = Command::new("llc-14");
        command.args(["-O2", "-x86-discriminate-memops", text(&code)]).args(more);
        ran(&mut command)
    };
    if !llc(&["-filetype=obj", "-o", text(&object)]) {
        return;
    }
    let mut link = Command::new("cc");
    link.args(["-O2", "-static", "-no-pie", text(&main), text(&object), "-o", text(&program)]);
    if !ran(&mut link) {
        return;
    }
    let options = ["--period", "3001", "--no-hwpf"];
    let Some(recording) = recorded(place.path(), &program, &options) else { return };
    let document = read(&[text(&recording), "--plan", text(&plan), "--plan-format", "llvm"]);
    let load = document["advice"].as_array().unwrap().iter().find(|row| row["function"] == "walk");
    let load = load.expect("advice on walk");
    assert_eq!((&load["stride"], &load["site"]), (&json!(16), &json!("inner")));
    let delta = 16 * load["distance"].as_i64().unwrap();
    let out = at("walk.s");
    let hints = format!("-prefetch-hints-file={}", text(&plan));
    assert!(llc(&[&hints, "-o", text(&out)]));
    let emitted = std::fs::read_to_string(&out).unwrap();
    assert!(emitted.contains(&format!("prefetcht0\t{delta}(%rdi,")), "{emitted}");
}

/// As on a machine whose caches prefetch nothing: the counts of a stride, all of whose executions memory serves. Its
/// plan in each format, for a reader of JSON, of CSV, and for llc.
#[test]
fn the_plan_of_counts_is_read_by_llc() {
    let _alone = alone();
    let place = Folder::new();
    let at = |name: &str| place.path().join(name);
    let (code, object, program) = (fixture("prefetch/walk.ll"), at("walk.o"), at("walk"));
    let llc = |more: &[&str]| {
        let mut command = Command::new("llc-14");
        command.args(["-O2", "-x86-discriminate-memops", text(&code)]).args(more);
        ran(&mut command)
    };
    if !llc(&["-filetype=obj", "-o", text(&object)]) {
        return;
    }
    let mut link = Command::new("cc");
    let main = fixture("prefetch/main.c");
    link.args(["-O2", "-no-pie", "-Wl,--build-id", text(&main), text(&object), "-o"]);
    if !ran(link.arg(text(&program))) {
        return;
    }
    let done = tdtool([
        "count",
        "--functions",
        "walk",
        "--loads",
        "--format",
        "json",
        "--",
        text(&program),
    ]);
    if not_now(&done.stderr) {
        eprintln!("skipped: {}", done.stderr);
        return;
    }
    let mut counts = done.succeeded().json();
    let counts_file = at("counts.json");
    let level = |level: &str, share: f64, latency: f64| json!({"level": level, "share": share, "low": share, "high": share, "latency": latency});
    let load = counts["loads"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .find(|row| row["class"]["kind"] == "stride");
    let Some(load) = load.filter(|row| !row["latency"].is_null()) else {
        eprintln!("skipped: latencies are not known here");
        return;
    };
    load["levels"] = json!([level("L1", 0.0, 1.0), level("DRAM", 1.0, 100.0)]);
    std::fs::write(&counts_file, counts.to_string()).unwrap();
    let planned = |format: &str, name: &str| -> Option<(Value, String)> {
        let plan = at(name);
        let all = [
            "prefetch",
            "--format",
            "json",
            "--plan",
            text(&plan),
            "--plan-format",
            format,
            text(&counts_file),
        ];
        let done = tdtool(all);
        let document = (!not_now(&done.stderr)).then(|| done.succeeded().json())?;
        Some((document["advice"][0].clone(), std::fs::read_to_string(&plan).unwrap()))
    };
    let Some((row, plan)) = planned("json", "plan.json") else { return };
    assert_eq!((&row["stride"], &row["site"]), (&json!(16), &json!("inner")), "{row}");
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let [own] = &plan["prefetches"].as_array().unwrap()[..] else { panic!("{plan}") };
    assert_eq!((&own["distance"], &own["load"]), (&row["distance"], &row["load"]));
    assert_eq!(own["build_id"].as_str().map(str::len), Some(40), "{own}");
    let delta = |row: &Value| 16 * row["distance"].as_i64().unwrap();
    let Some((row, hints)) = planned("hints", "plan.csv") else { return };
    let line = format!("{},{},t0", row["load"].as_str().unwrap(), delta(&row));
    assert_eq!(hints, format!("PC,delta,type\n{line}\n"));
    let Some((row, _)) = planned("llvm", "plan.afdo") else { return };
    let (hints, out) = (format!("-prefetch-hints-file={}", text(&at("plan.afdo"))), at("walk.s"));
    assert!(llc(&[&hints, "-o", text(&out)]));
    let emitted = std::fs::read_to_string(&out).unwrap();
    assert!(emitted.contains(&format!("prefetcht0\t{}(%rdi,", delta(&row))), "{emitted}");
    let both = tdtool(["prefetch", text(&counts_file), text(&program)]);
    assert_eq!(both.code(), Some(2), "{}", both.stderr);
}
