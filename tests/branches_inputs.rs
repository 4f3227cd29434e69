//! `tdtool branches`: texts of other tools as inputs, and inputs of other tools as outputs.
#![allow(clippy::print_stderr)]

use crate::support::child::Limited as _;
use crate::support::files::{Folder, shared, text};
use crate::support::run::tdtool;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read as _;
use std::process::Command;

/// What llvm-profgen 14 writes for noprobe.perfscript (`--skip-symbolization --use-offset=0`).
const NOPROBE: &str = "\
7
4005b0-4005c8:7
4005b0-4005d7:13
4005dc-4005e9:6
4005e5-4005e9:12
4005ff-40062f:19
400634-400637:18
400645-400645:18
6
4005c8->4005dc:7
4005d7->4005e5:13
4005e9->400634:18
40062f->4005b0:21
400637->400645:18
400645->4005ff:19
";

fn branches(arguments: &[&str]) -> String {
    let mut all = vec!["branches"];
    all.extend(arguments);
    let done = tdtool(&all);
    assert_eq!(done.code(), Some(0), "{arguments:?}: {}", done.stderr);
    done.stdout
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&branches(&[arguments, &["--format", "json"]].concat())).unwrap()
}

#[test]
fn text_of_perf_script_gives_the_ranges_and_edges_of_llvm_profgen() {
    let Some(folder) = shared("recordings/llvm-profgen") else { return };
    let (script, program) = (folder.join("noprobe.perfscript"), folder.join("noprobe.perfbin"));
    let of =
        |format| [text(&script), "--binary", text(&program), "--format", format].map(str::to_owned);
    let of = |format| branches(&of(format).each_ref().map(|s| &s[..]));
    assert_eq!(of("profgen"), NOPROBE);

    // Its own output and AutoFDO's are inputs, too; what they lack is absent.
    let scratch = Folder::new();
    for format in ["profgen", "autofdo"] {
        let path = scratch.path().join(format);
        std::fs::write(&path, of(format)).unwrap();
        let again = [text(&path), "--binary", text(&program)];
        assert_eq!(branches(&[&again[..], &["--format", "profgen"]].concat()), NOPROBE);
        let document = json(&again);
        assert_eq!(document["events"][0]["samples"], Value::Null);
        assert!(
            document["edges"]
                .as_array()
                .unwrap()
                .iter()
                .all(|e| { e["cycles_mean"] == Value::Null && e["mispredicted"] == Value::Null })
        );
        let without = tdtool(["branches", text(&path)]);
        assert!(without.stderr.contains("--binary"), "{}", without.stderr);
    }
    // By offset in the file: the code segment begins at offset 0 and address 0x400000 (readelf -l).
    assert!(of("autofdo").contains("\n5b0-5c8:7\n"));
    assert!(of("bolt").contains("B 40062f 4005b0 21 0\n"));
}

#[test]
fn without_cycles_times_are_unknown_and_edges_are_shown() {
    let Some(folder) = shared("recordings/llvm-profgen") else { return };
    let script = std::fs::read_to_string(folder.join("noprobe.perfscript")).unwrap();
    let words = script.split(' ').map(|word| match word.rsplit_once('/') {
        Some((entry, _)) if word.starts_with("0x") => {
            format!("{entry}/0{}", if word.ends_with('\n') { "\n" } else { "" })
        }
        _ => word.to_owned(),
    });
    let scratch = Folder::new();
    let path = scratch.path().join("script");
    std::fs::write(&path, words.collect::<Vec<_>>().join(" ")).unwrap();
    let seen = branches(&[text(&path), "--binary", text(&folder.join("noprobe.perfbin"))]);
    assert!(seen.contains("0x40062f foo → 0x4005b0 bar"), "{seen}");
}

/// All forms of perf's text hold what its recording holds.
#[test]
fn every_form_of_perf_script_gives_what_its_recording_gives() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("counts.perf.data");
    let roots = text(folder.parent().unwrap()).to_owned();
    let whole = branches(&[text(&recording), "--symfs", &roots, "--format", "profgen"]);
    let scratch = Folder::new();
    for (name, fields) in [("a", "+brstack"), ("b", "ip,brstack"), ("c", "+brstackinsn")] {
        let perf = Command::new("perf")
            .args(["script", "-i", text(&recording), "--symfs", &roots, "-F", fields])
            .arg("--show-mmap-events")
            .run_limited();
        let Ok(output) = perf else { return eprintln!("skipped: perf is not installed") };
        let path = scratch.path().join(name);
        std::fs::write(&path, output.stdout).unwrap();
        let program = folder.join("kernels");
        let again = branches(&[text(&path), "--binary", text(&program), "--format", "profgen"]);
        assert!(again == whole, "{fields}");
    }
}

#[test]
fn events_of_several_recordings_are_numbered_on_and_never_mixed() {
    let Some(folder) = shared("simlbr") else { return };
    let roots = text(folder.parent().unwrap()).to_owned();
    let (counts, levels) = (folder.join("counts.perf.data"), folder.join("levels.perf.data"));
    let files = [text(&counts), text(&levels), "--symfs", &roots];
    let both = json(&files);
    let events = both["events"].as_array().unwrap();
    assert!(events.len() >= 2, "{events:?}");
    let last = events.last().unwrap();
    assert!(last["source"].as_str().unwrap().ends_with("levels.perf.data"));
    let number = last["event"].to_string();
    let one = json(&[&files[..], &["--event-number", &number]].concat());
    let alone = json(&[text(&levels), "--symfs", &roots]);
    let total = |document: &Value| document["events"][0]["entries"].as_u64();
    assert_eq!((one["events"].as_array().unwrap().len(), total(&one)), (1, total(&alone)));
}

/// Truth of the run: 8,225 of 16,448 taken ones (simlbr/README.md).
#[test]
fn a_branch_that_depends_on_chance_is_hard() {
    let Some(folder) = shared("simlbr") else { return };
    let roots = text(folder.parent().unwrap()).to_owned();
    let recording = folder.join("counts.perf.data");
    let seen = branches(&[text(&recording), "--symfs", &roots, "-n", "50"]);
    let coin = seen.lines().find(|line| line.contains("0x401dc6 coin")).unwrap();
    assert!(coin.contains("hard 50.0 %"), "{coin}");
    let easy = seen.lines().find(|line| line.contains("0x4019ab constant")).unwrap();
    assert!(!easy.contains("hard"), "{easy}");
    assert!(seen.contains("main → coin"), "{seen}");
}

/// Numbers of edges and ranges and their sums as llvm-profgen 14 reads them (simlbr/README.md); read again by
/// Go's pprof.
#[test]
fn a_profile_for_bolt_and_pprof_holds_every_branch_of_the_module() {
    let Some(folder) = shared("simlbr") else { return };
    let roots = text(folder.parent().unwrap()).to_owned();
    let recording = folder.join("counts.perf.data");
    let bolt = branches(&[text(&recording), "--symfs", &roots, "--format", "bolt"]);
    let of = |letters: &str| {
        let lines = bolt.lines().filter(|line| line.starts_with(|c| letters.contains(c)));
        lines
            .map(|line| line.split(' ').nth(3).unwrap().parse::<u64>().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!((of("B").len(), of("B").iter().sum()), (46, 51_936_u64));
    assert_eq!((of("Ff").len(), of("Ff").iter().sum()), (62, 50_313_u64));
    let scratch = Folder::new();
    let path = scratch.path().join("profile");
    branches(&[text(&recording), "--symfs", &roots, "--format", "pprof", "-o", text(&path)]);
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_end(&mut bytes).unwrap();
    let go = ["tool", "pprof", "-top", "-sample_index=branches", text(&path)];
    let Ok(output) = Command::new("go").args(go).run_limited() else {
        return eprintln!("skipped: go is not installed");
    };
    let seen = String::from_utf8_lossy(&output.stdout);
    assert!(seen.contains("51936, 100% of 51936 total"), "{seen}");
}

/// A trace by hand: `main` calls `constant`, whose loop 0x4019a0 to 0x4019ab runs 10,000 times.
#[test]
fn trips_of_a_trace_are_exact_over_its_pieces() {
    let Some(folder) = shared("simlbr") else { return };
    let mut trace = "==1== Lackey\nI  04016cc,5\nI  0401990,16\n".to_owned();
    trace += &"I  04019a0,11\n L 1fff000688,8\nI  04019ab,2\n".repeat(10_000);
    trace += "I  04019ad,1\nI  04016d1,3\n";
    let scratch = Folder::new();
    let path = scratch.path().join("trace");
    std::fs::write(&path, trace).unwrap();
    let document = json(&[text(&path), "--binary", text(&folder.join("kernels"))]);
    assert_eq!(document["events"][0]["entries"], 10_001, "call, back edges, return");
    assert_eq!(document["events"][0]["samples"], Value::Null);
    let found = &document["loops"][0];
    assert_eq!((&found["head"], &found["back"]), (&"0x4019a0".into(), &"0x4019ab".into()));
    assert_eq!(found["taken"], 9_999);
    assert_eq!(found["trips"]["histogram"], serde_json::json!([[10_000, 1]]));
    assert_eq!(found["iterations"]["count"], 0, "a trace has no times");
}
