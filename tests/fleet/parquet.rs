//! `tdtool export --parquet`: what goes in comes out, once, or nothing does.

use super::sample::{DAY, lines, window};
use crate::support::child::Limited as _;
use crate::support::files::{Folder, fixture, text};
use crate::support::run::{program, tdtool, tdtool_reading};
use fleet::parquet::{Export, read};
use fleet::tables::{Batch, Data, Table};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// All files below a folder but the lock, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => all.extend(files(&path)),
            path if !path.ends_with(".tdtool.lock") => all.push(path),
            _ => {}
        }
    }
    all.sort();
    all
}

/// The rows of a table.
fn rows(folder: &str, table: Table) -> Vec<Batch> {
    let mut all = Vec::new();
    read(Path::new(folder), table, &mut |batch| {
        all.push(batch);
        Ok(())
    })
    .unwrap();
    all
}

/// The values of a column as text.
fn column(folder: &str, table: Table, name: &str) -> Vec<String> {
    let shown = |batch: &Batch| -> Vec<String> {
        match batch.column(name).unwrap() {
            Data::Text(all) => all.iter().map(|of| of.clone().unwrap_or("null".into())).collect(),
            Data::Int(all) => {
                all.iter().map(|of| of.map_or("null".into(), |of| of.to_string())).collect()
            }
            Data::Float(all) => {
                all.iter().map(|of| of.map_or("null".into(), |of| of.to_string())).collect()
            }
        }
    };
    rows(folder, table).iter().flat_map(shown).collect()
}

#[test]
fn windows_come_back_as_they_were_written() {
    let folder = Folder::new();
    let input =
        folder.write("windows.json", lines([window("a", 0, "b1", 2.0), window("a", 5, "b1", 4.0)]));
    let out = folder.file("out");
    tdtool(["export", "--parquet", &out, &input]).succeeded();
    let is =
        |table, name, expected: &[&str]| assert_eq!(column(&out, table, name), expected, "{name}");
    is(Table::Windows, "host", &["a", "a"]);
    is(Table::Windows, "start_ms", &[&DAY.to_string(), &(DAY + 300_000).to_string()]);
    is(Table::Windows, "cost_per_hour", &["0.8", "0.8"]);
    is(Table::Windows, "labels", &[r#"{"cost_per_hour":"0.8","instance_type":"c8"}"#; 2]);
    is(Table::Nodes, "parent", &["null", "null", "Backend_Bound"].repeat(2));
    is(Table::Nodes, "share", &["0.5", "0.25", "0.125"].repeat(2));
    is(Table::Functions, "function_start", &["0x1000", "0xffffffff81000000"].repeat(2));
    is(Table::Functions, "cpu_seconds", &["1.5", "0.5", "3", "1"]);
    is(Table::Blocks, "cycles", &["null", "null"]);
    is(Table::Counts, "missing", &["no PMU", "no PMU"]);
}

#[test]
fn what_is_exported_twice_is_there_once() {
    let folder = Folder::new();
    let out = folder.file("out");
    let first = folder.write("1.json", lines((0..3).map(|i| window("a", i, "b1", 1.0))));
    tdtool(["export", "--parquet", &out, &first]).succeeded();
    let before: Vec<_> =
        files(Path::new(&out)).into_iter().map(|f| (std::fs::read(&f).unwrap(), f)).collect();
    assert_eq!(before.len(), 5);
    tdtool(["export", "--parquet", &out, &first, &first]).succeeded();
    let after: Vec<_> =
        files(Path::new(&out)).into_iter().map(|f| (std::fs::read(&f).unwrap(), f)).collect();
    assert!(before == after, "the same files");
    // Others of the same day, one of them new, and hosts in turn.
    let mixed = [window("a", 2, "b2", 9.0), window("b", 0, "b1", 1.0), window("a", 7, "b1", 1.0)];
    let second = folder.write("2.json", lines(mixed));
    tdtool(["export", "--parquet", &out, &second]).succeeded();
    let mut starts = column(&out, Table::Windows, "start_ms");
    starts.sort();
    let minute = |i: i64| (DAY + i * 60_000).to_string();
    assert_eq!(starts, [minute(0), minute(0), minute(1), minute(2), minute(7)]);
    assert_eq!(
        column(&out, Table::Windows, "busy_seconds").iter().filter(|of| *of == "9").count(),
        1
    );
    assert_eq!(column(&out, Table::Nodes, "node").len(), 15);
}

#[test]
fn a_host_name_stays_in_its_folder() {
    let folder = Folder::new();
    let names = ["../../up", "/etc", "a b%2F'\"=*?", "\u{e4}\u{202e}", ".", "..", "x\ny"];
    let input = folder.write("in.json", lines(names.map(|name| window(name, 0, "b1", 1.0))));
    let out = folder.file("deep/er/out");
    tdtool(["export", "--parquet", &out, &input]).succeeded();
    assert_eq!(files(folder.path()).len(), 1 + 5 * names.len());
    assert_eq!(files(Path::new(&out)).len(), 5 * names.len());
    let mut found = column(&out, Table::Windows, "host");
    found.sort();
    let mut expected = names.map(str::to_owned);
    expected.sort();
    assert_eq!(found, expected);
    for (name, start, what) in [
        ("", DAY, "host.name"),
        (&*"h".repeat(300), DAY, "hhhh…"),
        ("a", -1, "clock"),
        ("a", i64::MAX, "clock"),
    ] {
        let mut bad = window(name, 0, "b1", 1.0);
        bad["start_ms"] = start.into();
        let input = folder.write("bad.json", lines([bad]));
        let ran = tdtool(["export", "--parquet", &folder.file("bad"), &input]);
        assert!(ran.code() == Some(1) && ran.stderr.contains(what), "{}", ran.stderr);
        assert_eq!(files(&folder.path().join("bad")), Vec::<PathBuf>::new());
    }
}

#[test]
fn damaged_input_is_an_error_and_nothing_is_exported() {
    let folder = Folder::new();
    let good = lines([window("a", 0, "b1", 1.0), window("b", 0, "b1", 1.0)]);
    let newer = good.replace("tdtool.window/1", "tdtool.window/2");
    let good_file = folder.write("good.json", &good);
    let cases = [
        ("cut.json", good.as_bytes()[..good.len() - 20].to_vec(), "damaged"),
        ("after.json", [good.as_bytes(), b"{\"x\""].concat(), "damaged"),
        ("key.json", good.replace("start_ms", "start").into_bytes(), "start_ms"),
        ("newer.json", newer.into_bytes(), "tdtool.window/2"),
        ("empty.json", Vec::new(), "window"),
        ("gzip.json.gz", [gzip(good.as_bytes())[..40].to_vec()].concat(), "gzip.json.gz"),
    ];
    for (name, bytes, what) in cases {
        let input = folder.write(name, bytes);
        let out = folder.file("out");
        let ran = tdtool(["export", "--parquet", &out, &good_file, &input]);
        assert!(ran.code() == Some(1) && ran.stderr.contains(what), "{name}: {}", ran.stderr);
        assert_eq!(files(Path::new(&out)), Vec::<PathBuf>::new(), "{name}");
    }
    // A damaged file that is there is not half replaced.
    let out = folder.file("out");
    tdtool(["export", "--parquet", &out, &good_file]).succeeded();
    let part = files(Path::new(&out)).pop().unwrap();
    let whole = std::fs::read(&part).unwrap();
    std::fs::write(&part, &whole[..whole.len() / 2]).unwrap();
    let ran = tdtool(["export", "--parquet", &out, &good_file]);
    assert!(ran.code() == Some(1) && ran.stderr.contains("damaged"), "{}", ran.stderr);
    assert_eq!(files(Path::new(&out)).len(), 10);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn rings_pipes_and_reports_are_exported() {
    let folder = Folder::new();
    let out = folder.file("out");
    let kept = |number: u32| format!("ring/{number:012}-20261201T000000Z-unknown.json.gz");
    let packed = |minute| gzip(lines([window("a", minute, "b1", 1.0)]).as_bytes());
    folder.write(&kept(1), packed(0));
    folder.write(&kept(2), packed(1));
    folder.write(&kept(3), &packed(3)[..20]);
    let ran = tdtool(["export", "--parquet", &out, "--ring", &folder.file("ring")]);
    let ran = ran.succeeded();
    assert!(ran.stderr.contains(&kept(3)), "the damaged one is named: {}", ran.stderr);
    let piped = lines([window("a", 2, "b1", 1.0)]);
    tdtool_reading(["export", "--parquet", &out, "-"], piped.as_bytes()).succeeded();
    assert_eq!(column(&out, Table::Windows, "host"), ["a"; 3]);
    let counts = fixture("field/i02-de-comma.csv");
    let ran = tdtool(["export", "--parquet", &out, text(&counts)]);
    assert!(ran.code() == Some(2) && ran.stderr.contains("--host"), "{}", ran.stderr);
    let report = folder.file("report.json");
    tdtool(["report", text(&counts), "--uarch", "spr", "--format", "json", "--output", &report])
        .succeeded();
    let other = folder.file("reports");
    let words = ["--host", "h", "--start", "1796083200000", "--label", "region=eu"];
    tdtool([&["export", "--parquet", &other][..], &words, &[&report]].concat()).succeeded();
    assert_eq!(column(&other, Table::Windows, "region"), ["eu"]);
    assert!(column(&other, Table::Nodes, "source").iter().all(|source| source == "counted"));
    let shares = column(&other, Table::Nodes, "share");
    assert!(shares.iter().any(|share| share != "null"), "{shares:?}");
}

#[test]
fn one_export_at_a_time_and_files_of_a_killed_one_go() {
    let folder = Folder::new();
    let out = folder.file("out");
    let input = folder.write("in.json", lines([window("a", 0, "b1", 1.0)]));
    let held = Export::new(Path::new(&out)).unwrap();
    let ran = tdtool(["export", "--parquet", &out, &input]);
    assert!(ran.code() == Some(1), "{}", ran.stderr);
    drop(held);
    folder.write("out/nodes/date=2026-12-01/host=a/.part-0.1.tmp", "half");
    tdtool(["export", "--parquet", &out, &input]).succeeded();
    assert_eq!(files(Path::new(&out)).len(), 5);
}

/// The columns in the reference are those of the files.
#[test]
fn every_column_is_in_the_reference() {
    let path = crate::support::files::root().join("docs/reference/parquet.md");
    let reference = std::fs::read_to_string(path).unwrap();
    for table in Table::ALL {
        for column in fleet::tables::columns(table) {
            assert!(
                reference.contains(&format!("`{}`", column.name)),
                "{}.{}",
                table.name(),
                column.name
            );
        }
    }
}

/// Whether this Python has the modules; else says so.
pub fn python_has(modules: &str) -> bool {
    let ran = program("python3").args(["-c", &format!("import {modules}")]).run_limited();
    let has = ran.is_ok_and(|ran| ran.status.success());
    if !has {
        eprintln!("skipped: no Python module {modules} here");
    }
    has
}

#[test]
fn two_windows_of_a_host_with_one_begin_are_refused_and_one_twice_is_one() {
    let folder = Folder::new();
    let out = folder.file("out");
    let first = || window("a", 0, "b1", 1.0);
    let other = folder.write("other.json", lines([first(), window("a", 0, "b1", 2.0)]));
    let ran = tdtool(["export", "--parquet", &out, &other]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert!(files(Path::new(&out)).is_empty(), "nothing is exported");
    let again = [first(), window("b", 0, "b1", 1.0), first(), window("a", 1, "b1", 1.0)];
    let same = folder.write("same.json", lines(again));
    tdtool(["export", "--parquet", &out, &same]).succeeded();
    assert_eq!(column(&out, Table::Windows, "host"), ["a", "a", "b"]);
}
