//! `tdtool loads`: figures of recordings with known truth (../shared/notes/recordings.md, simlbr/README.md).

mod fields;
mod recording;
mod shared_lines;

use crate::profile::made;
use crate::support::files::{Folder, shared, text};
use crate::support::perf_data::padded;
use crate::support::random::Random;
use crate::support::run::tdtool;
use crate::support::shown;
use profile::files::SearchPaths;
use serde_json::Value;
use std::path::Path;

fn read(arguments: &[&str]) -> Value {
    let mut all = vec!["loads"];
    all.extend(arguments);
    all.extend(["--format", "json"]);
    let done = tdtool(&all);
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.stderr))
}

fn list<'a>(document: &'a Value, list: &str) -> &'a Vec<Value> {
    document[list].as_array().expect("a list")
}

fn row<'a>(document: &'a Value, of: &str, key: &str, value: &str) -> &'a Value {
    let found = list(document, of).iter().find(|row| row[key] == value);
    found.unwrap_or_else(|| panic!("no {of} at {value}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// `perf script -F ip,weight,data_src` of perf 6.1, and notes/recordings.md.
#[test]
fn a_real_recording_of_a_skylake() {
    let Some(folder) = shared("recordings/quipper") else { return };
    let recording = folder.join("perf.data.weight_struct");
    let document = read(&[text(&recording)]);
    let event = &document["events"][0];
    let levels = &event["levels"];
    assert_eq!((&levels["lfb"], &levels["l1"]), (&Value::from(5), &Value::from(4)));
    assert_eq!((&levels["l2"], &levels["l3"]), (&Value::from(1), &Value::from(4)));
    assert_eq!((&event["loads"], &event["least_latency"]), (&14.into(), &64.into()));
    // Σ of the 14 weights is 1725.
    assert!((number(&event["latency_mean"]) - 1725.0 / 14.0).abs() < 1e-9);
    assert_eq!(event["inexact"], 0, "EXACT_IP is set");
    let first = row(&document, "loads", "address", "0xffffffffa4470d46");
    assert_eq!(first["latency_p50"], 225);
    assert!((number(&first["share"]) - 225.0 / 1725.0).abs() < 1e-9);
    let walk = row(&document, "loads", "address", "0x18da15a");
    assert_eq!((&walk["levels"]["l3"], &walk["tlb_walks"]), (&1.into(), &1.into()));
    let locked = list(&document, "loads").iter().filter(|load| load["locked"] == 1).count();
    assert_eq!(locked, 2, "LCK Yes");
    let done = tdtool(["loads", text(&recording)]);
    assert!(!done.stdout.contains("skid"), "{}", done.stdout);
    assert!(done.stdout.contains("ldlat=64"), "{}", done.stdout);
}

/// Shares of Σ latency, executions and the loop's trips, of the run that the recording was made from
/// (levels.truth.json).
#[test]
fn shares_and_executions_of_a_run_that_is_known() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("levels.perf.data");
    let truth = std::fs::read_to_string(folder.join("levels.truth.json")).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    let document = read(&[text(&recording), "--symfs", text(folder.parent().unwrap())]);
    let expected = [
        ("0x401a1f", 28.5),
        ("0x401aba", 17.9),
        ("0x401b06", 17.1),
        ("0x401a80", 16.4),
        ("0x401a56", 16.4),
    ];
    for (address, share) in expected {
        // As sampled; a recording made anew differs.
        let found = row(&document, "loads", "address", address);
        assert!((100.0 * number(&found["share"]) - share).abs() < 0.5, "{found}");
        let own = list(&truth, "loads").iter().find(|load| load["at"] == address).unwrap();
        let executed = number(&found["executions"]) / number(&own["count"]);
        assert!((executed - 1.0).abs() < 0.05, "{address}: {executed} of the executions");
        let ram = number(&found["levels"]["ram"]) / number(&found["samples"]);
        let slow = number(&own["over_ldlat"]);
        assert!((ram - number(&own["RAM"]) / slow).abs() < 0.05, "{address}: {ram} from memory");
    }
    // Classes and slices of simlbr/README.md.
    let class = |address: &str| row(&document, "loads", "address", address)["class"].clone();
    assert_eq!((class("0x401a1f"), class("0x401aba")), ("stride".into(), "complex".into()));
    assert_eq!((class("0x401a56"), class("0x401a80")), ("indirect".into(), "chase_offset".into()));
    let slice = &row(&document, "loads", "address", "0x401aba")["slice"];
    assert_eq!(*slice, serde_json::json!(["0x401ab0", "0x401ab3", "0x401ab6"]));
    let nested = row(&document, "loads", "address", "0x401b06");
    assert_eq!(
        (&nested["class"], &nested["loops"][1]["class"]),
        (&"stride".into(), &"indirect".into())
    );
    assert_eq!(nested["function"], "nested");
    assert_eq!(nested["loops"][0]["trips"], 4.0);
    assert_eq!(nested["loops"].as_array().unwrap().len(), 2);
}

/// Loads and branches in two files; the program may be mapped anywhere.
#[test]
fn critical_loads_and_hard_branches() {
    let Some(folder) = shared("simlbr") else { return };
    let files = ["small-pie.loads.perf.data", "small-pie.lbr.perf.data"].map(|n| folder.join(n));
    let roots = text(folder.parent().unwrap()).to_owned();
    let document = read(&[text(&files[0]), text(&files[1]), "--symfs", &roots]);
    let critical: Vec<&str> =
        list(&document, "critical").iter().map(|row| row["function"].as_str().unwrap()).collect();
    let mut sorted = critical.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        ["chase", "hash", "indirect", "nested"],
        "not stride4k, short_inner, levels"
    );
    let hash = row(&document, "critical", "function", "hash");
    assert_eq!(hash["executed_of"], "executions");
    // The core of the model waits for each miss.
    let parallel = number(&hash["parallel"]);
    assert!((0.9..1.1).contains(&parallel), "one miss at a time: {hash}");
    let recording = folder.join("counts.perf.data");
    let document = read(&[text(&recording), "--symfs", &roots]);
    let coin = row(&document, "hard_branches", "address", "0x401dc6");
    assert!((number(&coin["share"]) - 0.5).abs() < 0.01, "50.0 % of the taken ones: {coin}");
    // 8,225 recorded mispredictions of 32,768 executions; 8,403 more are of branches that are not taken.
    let least = number(&coin["share_of_executions"]);
    assert!((least - 0.251).abs() < 0.01, "{coin}");
    let done = tdtool(["loads", text(&recording), "--symfs", &roots]).succeeded();
    let (_, table) = done.stdout.split_once("hard branches: ").unwrap();
    let line = table.lines().find(|line| line.contains("0x401dc6")).unwrap();
    assert!(line.contains("≥ 25.") && line.contains("50.0 %"), "{line}");
    assert!(table.starts_with("> 15 %"), "{table}");
}

/// The slices of the README and `objdump -d`, with the latencies of the model: a hash is a copy, an addition of the
/// iteration before and a mask before a miss of the last cache (575 cycles, a fifth of them 155 to 325 in other runs); the
/// offset of a chase waits for the pointer, which hits the line. A branch waits for the load that it tests.
#[test]
fn critical_loads_and_hard_branches_have_their_critical_paths() {
    let Some(folder) = shared("simlbr") else { return };
    let files = ["small-pie.loads.perf.data", "small-pie.lbr.perf.data"].map(|n| folder.join(n));
    let roots = text(folder.parent().unwrap()).to_owned();
    let all = ["loads", text(&files[0]), text(&files[1]), "--symfs", &roots];
    let document = tdtool([&all[..], &["--format", "json"]].concat()).json();
    let last = |row: &Value| {
        let path = list(&row["critical_path"], "instructions");
        (path.len(), path.last().cloned().unwrap())
    };
    for (name, before, loads) in [("hash", 3, 1), ("chase", 1, 1), ("indirect", 2, 2)] {
        let own = row(&document, "critical", "function", name);
        assert_eq!(last(own), (before + 1, own["address"].clone()), "{own}");
        // Latencies of the sampled loads on the path are averages of the samples; the rest is a few cycles.
        let sampled = list(&own["critical_path"], "sampled").iter();
        let means: f64 = sampled
            .map(|at| {
                number(&row(&document, "loads", "address", at.as_str().unwrap())["latency_mean"])
            })
            .sum();
        let rest = number(&own["critical_path"]["cycles"]) - means;
        assert!(means > 300.0 && (0.0..20.0).contains(&rest), "{loads}: {own}");
    }
    let recording = folder.join("counts.perf.data");
    let all = ["loads", text(&recording), "--symfs", &roots];
    let document = tdtool([&all[..], &["--format", "json"]].concat()).json();
    let coin = row(&document, "hard_branches", "address", "0x401dc6");
    assert!(list(coin, "slice").contains(&"0x401dc3".into()), "what it tests: {coin}");
    assert_eq!(last(coin), (3, "0x401dc6".into()), "{coin}");
    let csv = tdtool([&all[..], &["--format", "csv"]].concat()).succeeded().stdout;
    let line =
        csv.lines().find(|line| line.starts_with("hard_branch") && line.contains("0x401dc6"));
    let instructions = list(&coin["critical_path"], "instructions");
    let joined: Vec<&str> = instructions.iter().filter_map(Value::as_str).collect();
    assert!(line.unwrap().contains(&joined.join(" ")), "{line:?}");
    let text = tdtool(all).succeeded().stdout;
    assert!(text.contains("0x401dc6 coin: "), "{text}");
}

/// A sample of the made recording: what `thread` of process 11 does at `address`.
fn sample(event: u64, thread: u64, time: u64, address: u64, source: u64) -> Vec<u8> {
    let (ip, ids) = (0x40_1000 + 0x10 * event, thread << 32 | 11);
    made::record(9, 2, &made::words(&[event, ip, ids, time, address, 0, source]))
}

/// OP LOAD or STORE, LVL L1 hit; and a load of a line that another core has modified (HITM).
const LOAD: u64 = 2 | (2 | 8) << 5 | 2 << 19 | 1 << 33;
const STORE: u64 = 4 | (2 | 8) << 5 | 2 << 19 | 1 << 33;
const MODIFIED: u64 = 2 | (2 | 0x40) << 5 | 0x10 << 19 | 3 << 33;

/// Two threads that write and read neighbouring words, as perf c2c's example of false sharing.
#[test]
fn threads_that_share_a_line() {
    let mut records = Vec::new();
    for round in 0..10 {
        let time = 100 + 10 * round;
        records.extend(sample(102, 11, time, 0x7000_1000, STORE));
        records.extend(sample(101, 12, time + 1, 0x7000_1008, MODIFIED));
        // Read by both, written by none; and written by one alone.
        records.extend(sample(101, 11, time + 2, 0x7000_2000, LOAD));
        records.extend(sample(101, 12, time + 3, 0x7000_2008, LOAD));
        records.extend(sample(102, 12, time + 4, 0x7000_3000, STORE));
    }
    let folder = Folder::new();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, made::file("x86_64", &records)).unwrap();
    let document = read(&[text(&path)]);
    let lines = list(&document, "lines");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!((&line["address"], &line["sharing"]), (&"0x70001000".into(), &"false".into()));
    assert_eq!(
        (&line["loads"], &line["writes"], &line["modified"]),
        (&10.into(), &10.into(), &10.into())
    );
    let offsets: Vec<_> =
        list(line, "accesses").iter().map(|a| (&a["thread"], &a["offset"])).collect();
    assert_eq!(offsets, [(&11.into(), &0.into()), (&12.into(), &8.into())]);
    let sums: Vec<_> =
        list(&document, "events").iter().map(|e| (&e["loads"], &e["stores"])).collect();
    assert_eq!(sums, [(&30.into(), &0.into()), (&0.into(), &20.into())], "events are not mixed");
    assert_shown!("loads_of_a_shared_line", shown::of(&["loads", "perf.data"], &folder));
}

/// `nm kernels`: sink is at 0x4a82d8. Only the code is in the recording's mappings.
#[test]
fn static_variables_have_their_names() {
    let Some(folder) = shared("simlbr") else { return };
    let program = folder.join("kernels");
    let mut map = made::words(&[11 << 32 | 11, 0x40_1000, 0x7_9000, 0x1000]);
    map.extend(padded(text(&program)));
    map.extend(made::words(&[11 << 32 | 11, 2, 101]));
    let mut records = made::record(1, 2, &map);
    records.extend(sample(101, 11, 10, 0x4a_82d8, LOAD));
    records.extend(sample(101, 11, 11, 0x7fff_0000_0000, LOAD));
    let own = Folder::new();
    let path = own.path().join("perf.data");
    std::fs::write(&path, made::file("x86_64", &records)).unwrap();
    let document = read(&[text(&path)]);
    let sink = row(&document, "variables", "name", "sink");
    assert_eq!((&sink["kind"], &sink["address"]), (&"variable".into(), &"0x4a82d8".into()));
    assert_eq!(row(&document, "variables", "kind", "unknown")["loads"], 1);
}

/// CSV has the rows of JSON.
#[test]
fn all_formats_have_the_same_rows() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("levels.perf.data");
    let roots = text(folder.parent().unwrap()).to_owned();
    let document = read(&[text(&recording), "--symfs", &roots]);
    let done = tdtool(["loads", text(&recording), "--symfs", &roots, "--format", "csv"]);
    let tables = [
        "loads",
        "stores",
        "variables",
        "fields",
        "lines",
        "critical",
        "hard_branches",
        "code_misses",
    ];
    let rows: usize = tables.iter().map(|table| list(&document, table).len()).sum();
    assert_eq!(done.stdout.lines().count(), 1 + rows);
    let first = done.stdout.lines().nth(1).unwrap();
    let share = number(&document["loads"][0]["share"]);
    assert!(
        first.starts_with("load,1,/simlbr/kernels,0x401a1f,") && first.contains(&share.to_string())
    );
}

/// A recording without them gives no empty table.
#[test]
fn a_recording_without_load_samples_is_refused() {
    let Some(folder) = shared("recordings") else { return };
    let done = tdtool(["loads", text(&folder.join("autofdo/propeller_sample_1.perfdata1"))]);
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    let damaged = folder.join("quipper/perf.data.piped.corrupted.zero_size_sample-3.2");
    let done = tdtool(["loads", text(&damaged)]);
    assert_eq!(done.code(), Some(1));
    assert!(!done.stderr.is_empty() && !done.stderr.contains("panicked"), "{}", done.stderr);
}

/// Bytes overwritten at random: an error or a document, never a panic.
#[test]
fn damaged_recordings_do_no_harm() {
    let mut records = Vec::new();
    for round in 0..20 {
        records.extend(sample(102, 11, round, 0x7000_1000 + round, STORE));
        records.extend(sample(101, 12, round, 0x7000_1008, MODIFIED));
    }
    let whole = made::file("x86_64", &[made::records(), records].concat());
    let folder = Folder::new();
    let path = folder.path().join("perf.data");
    let mut random = Random(15);
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(8) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        feed(&path, &bytes);
    }
}

fn feed(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    let search = SearchPaths::default();
    if let Ok(document) = engine::recorded_loads::loads(&[path.to_owned()], &search) {
        let samples: u64 = document.loads.iter().map(|load| load.samples).sum();
        assert!(samples <= bytes.len() as u64 / 8);
    }
}
