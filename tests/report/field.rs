//! Files as people bring them: what can be read is read, and the rest is named with its remedy.
//!
//! tests/fixtures/field/README.md has the shares that the counts were made of.

use super::{json, report};
use crate::profile::made;
use crate::support::files::{Folder, fixture, text};
use crate::support::run::{tdtool, tdtool_reading};
use crate::support::shown;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;

/// Front end, bad speculation, back end and retiring, in percent, of most files.
const SHARES: [f64; 4] = [15.0, 5.0, 50.0, 30.0];

fn file(name: &str) -> String {
    text(&fixture(&format!("field/{name}"))).to_owned()
}

/// The shares of level 1 by part of the measurement: kind of core, or CPU or mode.
fn trees(document: &Value) -> BTreeMap<String, [Option<f64>; 4]> {
    let mut found: BTreeMap<String, [Option<f64>; 4]> = BTreeMap::new();
    for node in document["nodes"].as_array().expect("nodes").iter().filter(|n| n["level"] == 1) {
        let label = node["label"].as_str().expect("a label");
        let known = ["Frontend", "Bad Spec", "Backend", "Retiring"];
        let Some(at) = known.iter().position(|start| label.starts_with(start)) else { continue };
        let place = ["core", "scope"].map(|key| node[key].as_str().unwrap_or_default());
        let place = place.join(" ").trim().to_owned();
        found.entry(place).or_default()[at] = node["value"].as_f64().map(|value| 100.0 * value);
    }
    found
}

/// Refuses other trees than these.
fn assert_trees(arguments: &[&str], want: &[(&str, [f64; 4])]) -> Value {
    let document = json(arguments);
    let found = trees(&document);
    assert_eq!(found.len(), want.len(), "{arguments:?}: {found:?}");
    for (place, shares) in want {
        let own = found.iter().find(|(key, _)| key.contains(place));
        let (_, own) = own.unwrap_or_else(|| panic!("{place} in {found:?}"));
        for (own, want) in own.iter().zip(shares) {
            let own = own.unwrap_or_else(|| panic!("a share is missing in {found:?}"));
            assert!((own - want).abs() < 0.01, "{arguments:?}, {place}: {found:?}");
        }
    }
    document
}

#[test]
fn user_and_kernel_mode_are_two_trees() {
    let both = [("user mode", SHARES), ("kernel mode", [60.0, 5.0, 25.0, 10.0])];
    assert_trees(&["--uarch", "spr", &file("i22b-u-k-differ.csv")], &both);
    // The order of the rows does not matter, nor do events that know no modes.
    let text = std::fs::read_to_string(file("i22b-u-k-differ.csv")).expect("the file");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let folder = Folder::new();
    let sorted =
        folder.write("sorted.csv", lines.join("\n") + "\n5,,power/energy-pkg/,9,100.00,,\n");
    assert_trees(&["--uarch", "spr", &sorted], &both);
    // One mode and what was counted in all modes: no mixture.
    let user = text.lines().filter(|line| line.contains(":u"));
    let mut user: Vec<String> = user.map(str::to_owned).collect();
    user.push("99,,instructions,2012340000,100.00,,".into());
    let mixed = folder.write("mixed.csv", user.join("\n") + "\n");
    let document = assert_trees(&["--uarch", "spr", &mixed], &[("", SHARES)]);
    assert_eq!(document["notes"].as_array().map(Vec::len), Some(2), "{}", document["notes"]);
    assert_shown!(
        "counts_of_one_mode",
        shown::of(&["report", "--uarch", "spr", "mixed.csv"], &folder)
    );
}

#[test]
fn each_kind_of_core_of_a_hybrid_has_its_own_table() {
    let efficient = [20.0, 10.0, 50.0, 20.0];
    let both = [("cpu0", SHARES), ("cpu16", efficient)];
    let document = assert_trees(&[&file("i11e-toplev-val-hybrid.csv")], &both);
    assert!(
        document["uarch"].as_str().is_some_and(|names| names.contains('+')),
        "{}",
        document["uarch"]
    );
    // The E core's table is found from that of the P core, and the other way round.
    for (table, own) in [("adl", &both[..]), ("adl-e", &both[..])] {
        assert_trees(&["--uarch", table, &file("i11e-toplev-val-hybrid.csv")], own);
    }
}

#[test]
fn counts_are_read_in_all_these_forms() {
    let decimals = ["i02-de-comma.csv", "i03-de.json", "i12-crlf-bom.csv", "i34-array.json"];
    for name in decimals {
        let document = assert_trees(&[&file(name)], &[("", SHARES)]);
        // The first line of each file.
        let clock = document["software"]["task_clock_ms"].as_f64();
        assert_eq!(clock, Some(2012.34), "{name}: {}", document["software"]);
        assert!(
            document["unread"].as_array().is_none_or(Vec::is_empty),
            "{name}: {}",
            document["unread"]
        );
    }
    assert_trees(&["--uarch", "spr", &file("i11d-toplev-val-noheader.csv")], &[("", SHARES)]);
    assert_trees(&["--uarch", "spr", &file("i21b-core-named.csv")], &[("", SHARES)]);
}

#[test]
fn json_may_be_laid_out_by_other_tools() {
    let text = std::fs::read_to_string(file("i34-array.json")).expect("the file");
    let values: Value = serde_json::from_str(&text).expect("JSON");
    let folder = Folder::new();
    let pretty = folder.write("pretty.json", serde_json::to_string_pretty(&values).expect("JSON"));
    let line = folder.write("line.json", values.to_string() + "\n");
    for path in [pretty, line] {
        assert_trees(&[&path], &[("", SHARES)]);
    }
}

#[test]
fn metrics_and_samples_as_text_are_named_with_their_remedy() {
    let folder = Folder::new();
    let script = folder.write(
        "script.txt",
        "               l 17474   674.414000:     250000 cpu-clock:      7f926f712389 main+0x1 (/bin/l)\n",
    );
    let json = folder
        .write("metrics.json", "{\"tma_retiring\" : \"30.0\", \"tma_backend_bound\" : \"50.0\"}\n");
    let wide = folder.write("wide.csv", b"\xff\xfe1\0,\0");
    let cut = folder.write("cut.gz", &packed(b"1,,cycles,1,100.00,,\n")[..20]);
    let (metrics, toplev) = (file("i07-metric-only.csv"), file("i10-toplev-metrics.csv"));
    let asked =
        [&metrics, &json, &toplev, &script, &wide, &cut].map(|path| ["report", path.as_str()]);
    let asked: Vec<_> = asked.iter().map(|words| &words[..]).collect();
    assert_shown!("files_without_counts_or_samples", shown::each(&asked, &folder));
}

/// The bytes as gzip.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).expect("memory");
    packer.finish().expect("memory")
}

#[test]
fn compressed_files_and_pipes_are_read_as_what_is_in_them() {
    let folder = Folder::new();
    let tree = |ran: crate::support::run::Ran| trees(&ran.succeeded().json());
    let counts = std::fs::read(file("i12-crlf-bom.csv")).expect("the file");
    let want = trees(&json(&[&file("i12-crlf-bom.csv")]));
    let gz = folder.write("counts.csv.gz", packed(&counts));
    assert_eq!(trees(&json(&[&gz])), want);
    let ask = |path| ["report", "--format", "json", path];
    for input in [&counts, &packed(&counts)] {
        for path in ["-", "/dev/stdin"] {
            assert_eq!(tree(tdtool_reading(ask(path), input)), want, "{path}");
        }
    }
    let samples = std::fs::read(file("p1-first-event-empty.data")).expect("the file");
    let functions = |document: Value| document["functions"].clone();
    let want = functions(json(&[&file("p1-first-event-empty.data")]));
    assert!(want.as_array().is_some_and(|all| !all.is_empty()));
    for input in [&samples, &packed(&samples)] {
        let found = tdtool_reading(ask("-"), input).succeeded().json();
        assert_eq!(functions(found), want);
    }
    // A finished report, too.
    let document = report(&["--format", "json", &file("i12-crlf-bom.csv")]).stdout;
    let gz = folder.write("report.json.gz", packed(document.as_bytes()));
    let again = tdtool(["diff", &gz, &gz]).succeeded();
    assert!(again.stdout.contains("Frontend Bound"), "{}", again.stdout);
}

#[test]
fn the_event_that_has_samples_is_shown_and_the_others_are_named() {
    let path = file("p1-first-event-empty.data");
    let document = json(&[&path]);
    assert_eq!(document["sampled"]["event"], "cpu-clock:u");
    assert_eq!(document["sampled"]["samples"], 65);
    let note = document["sampled"]["notes"][0].as_str().expect("a note");
    assert!(note.contains("alignment-faults:u (--event-number 0)"), "{note}");
    let folder = Folder::new();
    for option in ["--folded", "--flamegraph", "--pprof", "--callgrind", "--firefox", "--html"] {
        let ending = if option == "--flamegraph" { "svg" } else { "out" };
        let to = folder.file(&format!("{}.{ending}", &option[2..]));
        let ran = report(&[option, &to, &path]).succeeded();
        let written = std::fs::read(&to).expect("a file");
        assert!(written.len() > 10, "{option}: {} bytes", written.len());
        let told = ran.stderr.contains(note) || String::from_utf8_lossy(&written).contains(note);
        assert!(told, "{option}: {}", ran.stderr);
    }
    let folded = std::fs::read_to_string(folder.file("folded.out")).expect("stacks");
    let samples: u64 =
        folded.lines().filter_map(|l| l.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    assert_eq!(samples, 65, "{folded}");
    // What was asked for is what is shown.
    assert_eq!(json(&["--event-number", "0", &path])["sampled"]["samples"], 0);
}

#[test]
fn counts_of_perf_stat_record_are_those_of_perf_stat_report() {
    let document = json(&[&file("p2-perf-stat-record.data")]);
    let software = |name: &str| document["software"][name].as_f64().unwrap_or(f64::NAN);
    assert!((software("task_clock_ms") - 181.55).abs() < 0.005, "{}", document["software"]);
    assert_eq!(software("page_faults"), 27.0);
    assert_eq!(software("context_switches"), 10.0);
    assert_eq!(software("wall_ms"), 182.699_211);
    assert_eq!(report(&["--folded", "-", &file("p2-perf-stat-record.data")]).code(), Some(1));
}

#[test]
fn a_thread_may_be_named_by_digits_and_several_are_any_of_them() {
    let folder = Folder::new();
    let mut bytes = made::file("x86_64", &made::records());
    let name =
        bytes.windows(8).position(|word| word == b"sort\0\0\0\0").expect("the thread's name");
    bytes[name..name + 8].copy_from_slice(b"12345\0\0\0");
    let path = folder.write("digits.data", &bytes);
    let samples = |threads: &[&str]| {
        let words: Vec<&str> = threads.iter().flat_map(|thread| ["--thread", thread]).collect();
        json(&[&words[..], &[&path]].concat())["sampled"]["samples"].clone()
    };
    let all = json(&[&path])["sampled"]["samples"].clone();
    assert_eq!(samples(&["12345"]), all, "the name");
    assert_eq!(samples(&["12"]), all, "the number");
    assert_eq!(samples(&["12", "12345"]), all, "any of them");
    assert_shown!("no_such_thread", shown::of(&["report", "--thread", "12346", &path], &folder));
}

/// Bit 24 of the features, which begin at byte 72: `HEADER_DIR_FORMAT` of perf's util/header.h.
#[test]
fn the_file_data_of_a_folder_is_its_folder() {
    let folder = Folder::new();
    let mut data = made::file("x86_64", &made::records());
    data[72 + 3] |= 1;
    let more: Vec<u8> = (100..200).flat_map(|time| made::sample(101, time)).collect();
    let path = folder.write("recorded/data", &data);
    folder.write("recorded/data.0", more);
    let samples = |path: &str| json(&[path])["sampled"]["samples"].as_u64().expect("a number");
    assert_eq!(samples(&path), samples(text(&folder.path().join("recorded"))));
    assert!(samples(&path) > 100);
    let alone = folder.write("alone/data", &data);
    assert!(samples(&alone) < 100);
}

#[test]
fn a_level_that_lacks_an_event_is_named() {
    let counts = crate::support::files::zen4_intervals();
    let text = std::fs::read_to_string(counts).expect("the file");
    let lacking = "ex_no_retire.load_not_complete";
    assert!(text.contains(lacking), "{text}");
    let folder = Folder::new();
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains(lacking)).collect();
    folder.write("lacking.csv", lines.join("\n") + "\n");
    assert_shown!("level_that_lacks_an_event", shown::of(&["report", "lacking.csv"], &folder));
    let verbose = shown::of(&["report", "--verbose", "lacking.csv"], &folder);
    let reasons =
        ["was not counted", "not among the counts"].map(|why| verbose.matches(why).count());
    assert_eq!(reasons.iter().sum::<usize>(), 1, "{verbose}");
    let whole = json(&["--uarch", "zen4", &crate::support::files::zen4_intervals()]);
    assert!(!whole["notes"].to_string().contains(lacking), "{}", whole["notes"]);
}
