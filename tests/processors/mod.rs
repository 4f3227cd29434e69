//! Results of processors, evaluated again: README.md here says what the files are.

use crate::support::files::{Folder, root, text};
use crate::support::run::tdtool;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// How much a bound may exceed a measured time: what measurements of the same block differ by
/// (docs/results/accuracy.md).
const ERROR: f64 = 0.05;

/// What sums of shares are rounded to.
const ROUNDED: f64 = 1e-9;

/// The files of all processors whose names end so.
fn files(end: &str) -> Vec<PathBuf> {
    let folders = fs::read_dir(root().join("tests/processors")).expect("the folder");
    let folders = folders.map(|one| one.expect("an entry").path()).filter(|path| path.is_dir());
    let inside = folders.flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let mut all: Vec<PathBuf> = inside
        .map(|one| one.expect("an entry").path())
        .filter(|path| text(path).ends_with(end))
        .collect();
    all.sort();
    assert!(!all.is_empty(), "no {end}");
    all
}

/// The report of evidence.
fn evaluated(path: &Path) -> Value {
    let ran = tdtool(["report", text(path), "--format", "json"]);
    assert_eq!(ran.code(), Some(0), "{}: {}", path.display(), ran.stderr);
    ran.json()
}

/// What must stay: the parts of the program, its functions and loops.
fn parts(report: &Value) -> Value {
    let row = |row: &Value| {
        json!({
            "name": row["name"], "start": row["start"], "share": row["share"],
            "bottleneck": row["bottleneck"], "parts": row["parts"],
        })
    };
    let estimate = &report["estimate"];
    let rows = |kind: &str| -> Vec<Value> {
        estimate[kind].as_array().expect("rows").iter().map(row).collect()
    };
    json!({
        "program": row(&estimate["program"]),
        "functions": rows("functions"),
        "loops": rows("loops"),
    })
}

#[test]
fn evidence_is_evaluated_to_the_same_parts() {
    for path in files(".evidence.json.gz") {
        let found = parts(&evaluated(&path));
        let stored = PathBuf::from(text(&path).replace(".evidence.json.gz", ".parts.json"));
        if std::env::var_os("TDTOOL_PROCESSORS").is_some() {
            let new = serde_json::to_string_pretty(&found).expect("a document");
            fs::write(&stored, new + "\n").expect("a file");
        }
        let expected = fs::read_to_string(&stored).expect("the parts beside it");
        let expected: Value = serde_json::from_str(&expected).expect("a document");
        assert!(found == expected, "{}: {found:#} instead of {expected:#}", path.display());
    }
}

/// Nothing in stored evidence says whose program it was.
#[test]
fn stored_evidence_names_nobody() {
    for path in files(".evidence.json.gz") {
        let length = fs::metadata(&path).expect("a file").len();
        assert!(length <= 100_000, "{}: {length} bytes", path.display());
        let kept = unpacked(&path).to_string();
        for part in ["/home/", "/root/", "/tmp/", "/work/"] {
            assert!(!kept.contains(part), "{}: {part} in {kept}", path.display());
        }
    }
}

/// A document that is packed with gzip.
fn unpacked(path: &Path) -> Value {
    let mut text = String::new();
    let file = fs::File::open(path).expect("a file");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("a document");
    serde_json::from_str(&text).expect("a document")
}

/// The text of a document, which begins with its schema: by that it is recognised.
fn written(document: &Value) -> String {
    let mut rest = document.clone();
    let schema = rest.as_object_mut().and_then(|all| all.remove("schema")).expect("a schema");
    format!("{{\"schema\":{schema},{}", &rest.to_string()[1..])
}

/// Removes all members of these names.
fn without(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(all) => {
            for (name, one) in all.iter_mut() {
                match names.contains(&name.as_str()) {
                    true => *one = Value::Null,
                    false => without(one, names),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|one| without(one, names)),
        _ => {}
    }
}

/// One item of the evidence missing: its name, and how it goes.
type Fault = (&'static str, fn(&mut Value));

/// What a self-test or a run may not give.
const FAULTS: [Fault; 4] = [
    ("the cost of a misprediction", |of| {
        of["core"]["misprediction"] = Value::Null;
        let costs = [
            "misprediction_cycles",
            "ready_misprediction_cycles",
            "indirect_misprediction_cycles",
            "return_misprediction_cycles",
            "load_misprediction_cycles",
            "cycles",
        ];
        without(&mut of["count"], &costs);
    }),
    ("the table", |of| of["core"]["table"] = Value::Null),
    ("loads", |of| {
        of["count"]["loads"] = json!([]);
        of["count"]["timer"] = Value::Null;
    }),
    ("isolation", |of| of["isolated"] = json!([])),
];

/// The node of level 1 that has a part.
fn node(of: &Value) -> &str {
    match of.as_str().expect("a bottleneck") {
        "core_bound" | "memory_bound" => "backend_bound",
        "fetch_latency" | "fetch_bandwidth" => "frontend_bound",
        other => other,
    }
}

/// Without it each part of the program's time may be what it was with it; the bottleneck is the same, its node of level 1, or open.
#[test]
fn a_missing_item_narrows_no_part_of_a_real_program() {
    let folder = Folder::new();
    let file = folder.path().join("evidence.json");
    let mut removed = BTreeSet::new();
    for path in files(".evidence.json.gz") {
        let with = evaluated(&path)["estimate"]["program"].clone();
        for (what, remove) in FAULTS {
            let mut faulty = unpacked(&path);
            let whole = faulty.clone();
            remove(&mut faulty);
            // A program may have none of it.
            if faulty == whole {
                continue;
            }
            removed.insert(what);
            fs::write(&file, written(&faulty)).expect("a file");
            let without = evaluated(&file)["estimate"]["program"].clone();
            let name = format!("{} without {what}", path.display());
            for (part, now) in without["parts"].as_object().expect("parts") {
                let number = |of: &Value, key: &str| of[key].as_f64().expect("a number");
                // One that is absent is not known.
                let Some(old) = with["parts"][part]["value"].as_f64() else { continue };
                let (low, high) = (number(now, "low"), number(now, "high"));
                let holds = low - ROUNDED <= old && old <= high + ROUNDED;
                assert!(holds, "{name}: {part} was {old}, is {now:#}");
            }
            let found = &without["bottleneck"];
            let is_same = *found == with["bottleneck"] || *found == node(&with["bottleneck"]);
            assert!(found == "undecided" || is_same, "{name}: {found}");
        }
    }
    assert_eq!(removed.len(), FAULTS.len(), "each was in a program: {removed:?}");
}

/// A bound of a core's tables that its own measurements are below is wrong.
#[test]
fn tables_bounds_do_not_exceed_what_was_measured() {
    for path in files(".block.json") {
        let text = fs::read_to_string(&path).expect("a file");
        let document: Value = serde_json::from_str(&text).expect("a document");
        let folder = path.parent().and_then(Path::file_name).expect("a folder");
        let core = folder.to_str().expect("UTF-8");
        let mut predictor = predictor(core);
        let hex = document["block"]["hex"].as_str().expect("its bytes");
        let bytes = isa::code::parse_hex(hex).expect("hex");
        let bound = predictor
            .predict(&isa::code::Block::decode(&bytes).expect("a block"))
            .cycles
            .expect("a bound");
        let measured = document["throughput"]["cycles"].as_f64().expect("a throughput");
        assert!(
            bound <= measured * (1.0 + ERROR),
            "{}: {bound} by tables, {measured} measured",
            path.display()
        );
    }
}

fn predictor(core: &str) -> engine::predict::Predictor {
    let core = tma::Core::modelled(&engine::library(), core).expect("its table");
    let model = engine::core_model::CoreModel::new(std::sync::Arc::new(core), None);
    engine::predict::Predictor::new(model.expect("its latencies"), false).expect("its ports")
}

/// Files from outside may hold anything: numbers that overflow, blocks that are not there.
#[test]
fn damaged_evidence_is_an_error() {
    let folder = Folder::new();
    let path = folder.path().join("evidence.json");
    let first = &files(".evidence.json.gz")[0];
    let good = unpacked(first);
    let mut damaged: Vec<(&str, Value)> = Vec::new();
    for (pointer, value) in [
        ("/functions/0/blocks/0/range/1", json!(u64::MAX)),
        ("/functions/0/blocks/0/to", json!([4_000_000_000_u64])),
        ("/functions/0/number", json!(99)),
        ("/functions/0/code", json!([[0, "zz"]])),
        ("/functions/0/blocks/0/entries", json!({ "Ok": -1 })),
        ("/cycles", json!(1e300)),
        ("/core/width", json!(0)),
        ("/core/l1_code", json!([9_007_199_254_740_991_u64, 9_007_199_254_740_991_u64])),
        ("/core/table", json!("no such core")),
        ("/schema", json!("tdtool.evidence/9")),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).expect(pointer) = value;
        damaged.push((pointer, bad));
    }
    for (pointer, bad) in damaged {
        fs::write(&path, written(&bad)).expect("a file");
        let ran = tdtool(["report", text(&path)]);
        assert_ne!(ran.code(), Some(0), "{pointer}");
        assert!(ran.stderr.starts_with("error: "), "{pointer}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{pointer}: {}", ran.stderr);
    }
    let good = written(&good);
    let cut = &good[..good.len() / 2];
    fs::write(&path, cut).expect("a file");
    assert_ne!(tdtool(["report", text(&path)]).code(), Some(0));
}
