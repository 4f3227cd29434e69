//! `tdtool pgo` from what earlier runs left: counts made elsewhere, and recordings with branch stacks.

use crate::pgo::{GOTO, lines, profiled, symbols};
use crate::probe::counts::PLAIN;
use crate::support::files::{Folder, fixture, shared, text};
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::tools::{copy, gcc};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Counts of a program, which are written to `to`; `None`, with a message, where it cannot be traced.
fn counted(folder: &Folder, program: &Path, to: &str) -> Option<String> {
    let (counts, result) = (folder.file(to), folder.file("result"));
    let ran = tdtool(["count", "--format", "json", "-o", &counts, "--", text(program), &result]);
    let is_counted = ran.code() == Some(3);
    if !is_counted {
        eprintln!("skipped: {}", ran.stderr);
    }
    is_counted.then_some(counts)
}

/// Counts of a file at two paths are those of one program; of another build they are refused, whatever its path.
#[test]
fn counts_made_at_another_path_are_of_the_same_build() {
    let _busy = busy();
    let folder = Folder::new();
    let options = ["-O2", "-Wl,--build-id=0x1234"];
    let Some(program) = gcc(folder.path(), PLAIN, &options, "program") else { return };
    let moved = folder.path().join("moved");
    copy(text(&program), &moved);
    let Some(first) = counted(&folder, &program, "first.json") else { return };
    let Some(second) = counted(&folder, &moved, "second.json") else { return };
    std::fs::remove_file(&moved).unwrap();
    let made = |options: &[&str]| tdtool([&["pgo", "-o", "-"], options].concat());
    let sum = |profile: &str| -> u64 { lines(profile).iter().map(|line| line.count).sum() };
    let one = sum(&made(&[&first]).succeeded().stdout);
    let module = ["--module", text(&program)];
    assert_eq!(sum(&made(&[&second, module[0], module[1]]).succeeded().stdout), one);
    let both = sum(&made(&[&first, "--merge", &second]).succeeded().stdout);
    // Fitted counts are rounded.
    assert!(both.abs_diff(2 * one) <= 10, "{both} {one}");
    // Its file is nowhere.
    let gone = made(&[&second]);
    assert!(gone.code() == Some(1) && gone.stderr.contains("--module"), "{}", gone.stderr);
    let options = ["-O2", "-Wl,--build-id=0x5678"];
    let other = gcc(folder.path(), PLAIN, &options, "moved").unwrap();
    for refused in [made(&[&second]), made(&[&second, "--module", text(&other)])] {
        assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
        assert!(
            ["1234", "5678"].iter().all(|id| refused.stderr.contains(id)),
            "{}",
            refused.stderr
        );
    }
}

/// A document of counts with recorded targets makes the profile that the run would have made.
#[test]
fn recorded_targets_are_kept_with_counts() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), GOTO, &["-O2"], "program") else { return };
    let options = ["--targets", "--for", "counts"];
    let Some(_) = profiled(&folder, &program, &options) else { return };
    let merged = tdtool(["pgo", "-o", "-", &folder.file("profile")]).succeeded();
    let (start, end) = symbols(&program)["machine"];
    let inside = |at: u64| (start..end).contains(&at);
    let jumps = lines(&merged.stdout).into_iter().filter(|l| l.is_branch);
    let jumps: Vec<u64> =
        jumps.filter(|l| inside(l.from) && inside(l.to)).map(|l| l.count).collect();
    // As in pgo::targets_of_computed_gotos_are_recorded.
    let is_near = |n: &u64| (n + 1) % 1000 <= 2;
    assert!(jumps.contains(&999) && jumps.iter().all(is_near), "{jumps:?} {}", merged.stderr);
    let refused = tdtool(["pgo", "-o", "-", "--for", "counts", &folder.file("profile")]);
    assert_eq!(refused.code(), Some(2), "{}", refused.stderr);
}

/// Recorded targets beyond what is exact are refused, as counts of blocks are; sums of others have no limit.
#[test]
fn too_many_recorded_targets_are_refused() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), GOTO, &["-O2"], "program") else { return };
    let options = ["--targets", "--for", "counts"];
    let Some((counts, _)) = profiled(&folder, &program, &options) else { return };
    let made = |count: u64| {
        let mut counts: Value = serde_json::from_str(&counts).expect(&counts);
        let rows = counts["targets"].as_array_mut().expect("of --targets");
        assert!(rows.len() >= 2);
        rows.iter_mut().for_each(|row| row["count"] = count.into());
        // Together more than 64 bits.
        for to in 0..3000 {
            let mut row = rows[0].clone();
            row["to"] = format!("{to:#x}").into();
            rows.push(row);
        }
        std::fs::write(folder.path().join("many"), counts.to_string()).unwrap();
        tdtool(["pgo", "-o", "-", &folder.file("many")])
    };
    made(1 << 53).succeeded();
    for many in [(1 << 53) + 1, u64::MAX] {
        let refused = made(many);
        assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains(&many.to_string()), "{}", refused.stderr);
    }
}

/// Recordings are known by their content; without branch stacks, or beside counts, they are refused.
#[test]
fn recordings_without_branches_are_refused() {
    let _busy = busy();
    let recording = fixture("field/p1-first-event-empty.data");
    let refused = tdtool(["pgo", "-o", "-", text(&recording)]);
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("stacks"), "{}", refused.stderr);
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PLAIN, &["-O2"], "program") else { return };
    let Some(counts) = counted(&folder, &program, "counts.json") else { return };
    let refused = tdtool(["pgo", "-o", "-", &counts, text(&recording)]);
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("added"), "{}", refused.stderr);
}

/// A recording of `../shared/simlbr` as a profile.
fn recorded(reader: &str) -> Option<String> {
    let folder = shared("simlbr")?;
    let (recording, program) = (folder.join("counts.perf.data"), folder.join("kernels"));
    let options = ["pgo", "-o", "-", "--for", reader, "--module", text(&program), text(&recording)];
    Some(tdtool(options).succeeded().stdout)
}

/// What takes branches gets those of `tdtool branches`.
#[test]
fn recorded_branches_are_passed_on() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("counts.perf.data");
    for (reader, format) in [("bolt", "bolt"), ("profgen", "profgen"), ("autofdo", "autofdo")] {
        let program = folder.join("kernels");
        let options =
            ["branches", "--format", format, "--binary", text(&program), text(&recording)];
        let expected = tdtool(options).succeeded().stdout;
        assert!(recorded(reader).is_some_and(|own| own == expected), "{reader}");
    }
}

/// Shares of the counts of blocks or edges in these functions, by their ends.
fn shares(
    document: &Value,
    functions: &[(u64, u64)],
    rows: &str,
    key: &[&str],
) -> BTreeMap<String, f64> {
    let is_within = |row: &&Value| {
        let at = address(&row[key[0]]);
        functions.iter().any(|(start, end)| (*start..*end).contains(&at))
    };
    let rows: Vec<&Value> = document[rows].as_array().unwrap().iter().filter(is_within).collect();
    let number = |row: &Value| row["count"].as_f64().unwrap_or(0.0);
    let all: f64 = rows.iter().copied().map(number).sum();
    let mut found = BTreeMap::new();
    for row in rows {
        let ends: Vec<String> = key.iter().map(|key| row[*key].to_string()).collect();
        *found.entry(ends.join(" ")).or_insert(0.0) += number(row) / all;
    }
    found
}

fn address(of: &Value) -> u64 {
    let digits = of.as_str().and_then(|text| text.strip_prefix("0x"));
    u64::from_str_radix(digits.expect("an address"), 16).unwrap()
}

/// The program of the recording, counted exactly: entries of blocks and passages of edges have the same shares in its
/// functions. It has some 1,600 samples of 32 branches each, which repeat one another within a loop.
#[test]
fn a_recording_agrees_with_exact_counts() {
    let _busy = busy();
    let Some(recording) = recorded("json") else { return };
    let recording: Value = serde_json::from_str(&recording).unwrap();
    let folder = Folder::new();
    let program = shared("simlbr").unwrap().join("kernels");
    let exact = folder.file("exact");
    let ran = tdtool(["pgo", "-o", &exact, "--for", "json", "--", text(&program)]);
    if ran.code() != Some(0) || !Path::new(&exact).exists() {
        return eprintln!("skipped: {}", ran.stderr);
    }
    let exact: Value = serde_json::from_str(&folder.read("exact")).unwrap();
    let functions = recording["functions"].as_array().unwrap().iter();
    let functions: Vec<(u64, u64)> =
        functions.map(|row| (address(&row["start"]), address(&row["end"]))).collect();
    assert!(functions.len() >= 10, "{functions:x?}");
    for (rows, key) in [("blocks", &["start"][..]), ("edges", &["from", "to"])] {
        let [own, expected] =
            [&recording, &exact].map(|document| shares(document, &functions, rows, key));
        let mut differs = 0.0;
        for place in own.keys().chain(expected.keys().filter(|place| !own.contains_key(*place))) {
            let of = |all: &BTreeMap<String, f64>| all.get(place).copied().unwrap_or(0.0);
            differs += (of(&own) - of(&expected)).abs() / 2.0;
        }
        assert!(differs < 0.02, "{rows}: {differs}");
    }
}

/// Symbols of a recording are in order, the most executed code first.
#[test]
fn a_linker_gets_the_functions_of_a_recording() {
    let Some(order) = recorded("lld") else { return };
    let all: Vec<&str> = order.lines().collect();
    for name in ["main", "levels", "chase", "hash"] {
        assert!(all.contains(&name), "{order}");
    }
}
