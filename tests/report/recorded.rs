//! Reports of recorded counts, and comparisons of reports.

use super::{json, report};
use crate::profile::made;
use crate::support::files::{Folder, root, text, zen4_intervals};
use crate::support::run::tdtool;
use crate::support::shown;
use serde_json::Value;

/// The values perf printed for these counts (perf 6.x, metric group PipelineL2), in percent with
/// one decimal: block 0 of the recording, see tests/fixtures/import/zen4-two-blocks.csv.
#[test]
fn recorded_counts_give_the_values_perf_printed() {
    let output = report(&["--format", "json", "-I", "1000", "--uarch", "zen4", &zen4_intervals()]);
    let text = &output.stdout;
    let first: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    for (id, percent) in [
        ("bad_speculation_mispredicts", 0.7),
        ("bad_speculation_pipeline_restarts", 0.0),
        ("backend_bound_cpu", 20.5),
        ("backend_bound_memory", 60.2),
        ("retiring_fastpath", 14.8),
        ("retiring_microcode", 0.0),
        ("frontend_bound_bandwidth", 0.6),
        ("frontend_bound_latency", 2.9),
    ] {
        let nodes = first["nodes"].as_array().expect("nodes");
        let node = nodes.iter().find(|n| n["id"] == id).expect(id);
        let value = 100.0 * node["value"].as_f64().expect(id);
        assert!((value - percent).abs() <= 0.0501, "{id}: {value} against {percent}");
    }
    let bottleneck = first["nodes"].as_array().expect("nodes");
    let bottleneck = bottleneck.iter().find(|n| n["bottleneck"] == true).expect("a bottleneck");
    assert_eq!(bottleneck["id"], "backend_bound_memory");
}

#[test]
fn text_and_csv_are_views_of_the_same_document() {
    let document = json(&["--uarch", "zen4", &zen4_intervals()]);
    let csv = report(&["--format", "csv", "--uarch", "zen4", &zen4_intervals()]).stdout;
    let text = report(&["--verbose", "--uarch", "zen4", &zen4_intervals()]).stdout;
    for node in document["nodes"].as_array().expect("nodes") {
        let id = node["id"].as_str().expect("id");
        let row = csv.lines().find(|l| l.starts_with(&format!("node,{id},")));
        let row = row.unwrap_or_else(|| panic!("{id} in {csv}"));
        let value = row.split(',').nth(4).expect("value");
        assert_eq!(value.parse().ok(), node["value"].as_f64(), "{id}");
        if let Some(value) = node["value"].as_f64() {
            let shown = format!("{:.1} %", 100.0 * value);
            let label = node["label"].as_str().expect("label");
            let line = text.lines().find(|l| l.trim_start_matches(['●', ' ']).starts_with(label));
            assert!(line.is_some_and(|l| l.contains(&shown)), "{label} {shown} in {text}");
        }
    }
}

#[test]
fn ascii_means_ascii_and_a_pipe_gets_no_colour() {
    let text = report(&["--ascii", "--uarch", "zen4", &zen4_intervals()]).stdout;
    let tree: String = text.lines().filter(|l| l.contains('%')).take(7).collect();
    assert!(!tree.contains('█') && tree.contains('#'), "{tree}");
    assert!(!text.contains('\x1b'));
}

#[test]
fn a_report_compared_with_itself_differs_nowhere() {
    let folder = Folder::new();
    let path = folder.file("a.json");
    report(&["--format", "json", "--output", &path, "--uarch", "zen4", &zen4_intervals()])
        .succeeded();
    let same = tdtool(["diff", "--format", "json", &path, &path]).json();
    assert_eq!(same["schema"], "tdtool.diff/1");
    for row in same["nodes"].as_array().expect("nodes") {
        let absent = row["a"].is_null();
        assert_eq!(row["judgement"], if absent { "absent" } else { "unjudged" }, "{row}");
        assert_eq!(row["difference"].as_f64(), (!absent).then_some(0.0), "{row}");
    }
    let other = root().join("Cargo.toml");
    let wrong = ["diff", &path, text(&other)];
    assert_shown!("compared_with_no_report", shown::of(&wrong, &folder));
}

#[test]
fn what_is_no_recording_gets_cause_and_remedy() {
    let folder = Folder::new();
    let files = [
        folder.write("p.c", "int main(void) { return 0; }\n"),
        folder.write("p.py", "print(1)\n"),
        folder.write("garbage", "garbage\n"),
        folder.file("."),
        folder.file("absent"),
    ];
    let shown = files.map(|file| shown::of(&["report", &file], &folder));
    assert_shown!("no_recording", shown.join("\n"));
}

#[test]
fn a_comparison_says_which_file_is_which() {
    let folder = Folder::new();
    let [a, b] = ["before.json", "after.json"].map(|name| {
        let path = folder.file(name);
        report(&["--no-code", "--format", "json", "-o", &path, "--", "true"]);
        path
    });
    let text = tdtool(["diff", &a, &b]).stdout;
    assert!(text.starts_with(&format!("A: {a}: true, ")), "{text}");
    assert!(text.contains(&format!("\nB: {b}: true, ")), "{text}");
    let counts = zen4_intervals();
    let text = tdtool(["diff", "--uarch", "zen4", &counts, &counts]).succeeded().stdout;
    assert!(text.starts_with(&format!("A: {counts}: 2.00 s\n")), "{text}");
}

/// `data` has what perf writes itself, `data.N` what its threads read from ring buffers.
#[test]
fn a_folder_of_perf_record_threads_is_read_like_a_file() {
    let folder = Folder::new();
    let samples = |times: std::ops::Range<u64>| -> Vec<u8> {
        times.step_by(2).flat_map(|time| made::sample(101, time)).collect()
    };
    // More than a turn of one file, interleaved in time.
    let (even, odd) = (samples(100..4100), samples(101..2101));
    let recorded = folder.path().join("recorded");
    std::fs::create_dir(&recorded).expect("a folder");
    folder.write("recorded/data", made::file("x86_64", &made::records()));
    folder.write("recorded/data.0", &even);
    folder.write("recorded/data.1", &odd);
    let whole = [made::records(), even, odd.clone()].concat();
    let whole = folder.write("whole", made::file("x86_64", &whole));
    let of = |path: &str| {
        let document = json(&[path]);
        [&document["functions"], &document["events"]].map(ToString::to_string)
    };
    assert_eq!(of(text(&recorded)), of(&whole));
    let shown = report(&[text(&recorded)]).succeeded().stdout;
    assert!(shown.contains("3002 samples"), "{shown}");

    folder.write("recorded/data.1", &odd[..odd.len() - 9]);
    let shown = report(&[text(&recorded)]).succeeded().stdout;
    assert!(shown.contains("3001 samples") && shown.contains("data.1"), "{shown}");
    folder.write("recorded/data", b"PERFILE2");
    assert_shown!("damaged_folder", shown::of(&["report", text(&recorded)], &folder));
}
