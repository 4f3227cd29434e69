//! Code compared: `tdtool diff` of reports with estimates, and of sessions.

use crate::support::csv::fields;
use crate::support::files::Folder;
use crate::support::run::tdtool;
use crate::support::shown;
use crate::support::tools::available;
use report::documents::estimate::{Estimate, Instruction, Part, Parts, Row, Share};
use report::documents::report_code::{FunctionRow, Sampled};
use report::documents::{Report, Source};
use serde_json::Value;

/// A report of a run that took so many milliseconds, half of it in one loop at this address, of which so much is
/// Memory Bound.
pub fn estimated(folder: &Folder, name: &str, ms: f64, at: u64, memory: f64) -> String {
    let share =
        |value: f64| Share { value, low: value - 0.02, high: value + 0.02, ..Share::default() };
    let parts =
        Parts { memory_bound: share(memory), retiring: share(1.0 - memory), ..Parts::default() };
    let text = |text: String| Instruction { text, ..Instruction::default() };
    let row = |start: u64, end: u64| Row {
        name: "walk(node*)".to_owned(),
        module: "/bin/walk".to_owned(),
        start: Some(start.into()),
        end: Some(end.into()),
        share: 0.5,
        bottleneck: if memory > 0.5 { Part::MemoryBound } else { Part::Retiring }.into(),
        parts: parts.clone(),
        ..Row::default()
    };
    let code = vec![text("mov rax,[rax]".to_owned()), text(format!("jne {at:#x}"))];
    let mut report = Report::new(Source::NoPmu);
    report.subject = vec!["./walk".to_owned()];
    report.software.insert("task_clock_ms".to_owned(), Some(ms));
    report.sampled =
        Some(Sampled { event: "cpu-clock".to_owned(), samples: 10_000, ..Sampled::default() });
    report.estimate = Some(Estimate {
        covered: 0.5,
        functions: vec![row(at - 0x40, at + 0x40)],
        loops: vec![Row { code, ..row(at, at + 5) }],
        program: row(0, 0),
        ..Estimate::default()
    });
    folder.write(name, serde_json::to_string(&report).expect("JSON"))
}

/// By hand: 500 ms of 1000 against 100 of 200; 400 and 20 ms of them are Memory Bound.
#[test]
fn a_loop_that_moved_and_waits_less_for_memory_is_the_first_row() {
    let folder = Folder::new();
    let a = estimated(&folder, "a.json", 1000.0, 0x1140, 0.8);
    let b = estimated(&folder, "b.json", 200.0, 0x2280, 0.2);
    let asked = [&["diff", &a, &b, "--ascii"][..], &["diff", &a, &b, "--format", "markdown"]];
    assert_shown!("loop_that_moved", shown::each(&asked, &folder));
    let json = tdtool(["diff", &a, &b, "--format", "json"]).succeeded().json();
    let row = &json["code"]["loops"][0];
    assert_eq!((row["matched"].as_str(), row["function"].as_u64()), (Some("shape"), Some(0)));
    assert_eq!(
        (&row["judgement"], &row["parts"][0]["judgement"]),
        (&"one_run".into(), &"one_run".into())
    );
    assert_eq!(row["parts"][0]["id"], "memory_bound");
    let csv = tdtool(["diff", &a, &b, "--format", "csv"]).succeeded().stdout;
    let is_memory = |line: &&str| line.starts_with("loop,") && line.contains(",memory_bound,");
    let memory = fields(csv.lines().find(is_memory).expect("a row"));
    assert_eq!(memory[12].parse::<f64>().map(f64::round), Ok(-380.0), "{memory:?}");
}

/// Of one run on each side it says once, in a line, that runs may differ, and what shows by how much.
#[test]
fn one_run_on_a_side_names_the_command_that_measures_more() {
    let folder = Folder::new();
    let of = |name: &str, command: Option<[&str; 3]>| {
        let mut report = Report::new(Source::NoPmu);
        report.command = command.map(|words| words.map(str::to_owned).to_vec());
        report.software.insert("task_clock_ms".to_owned(), Some(10.0));
        folder.write(name, serde_json::to_string(&report).expect("JSON"))
    };
    let old = of("old.json", Some(["./old", "-n", "a b"]));
    let new = of("new.json", Some(["./new", "-n", "a b"]));
    let unknown = of("unknown.json", None);
    let asked = [&["diff", &old, &new][..], &["diff", &old, &old], &["diff", &old, &unknown]];
    assert_shown!("one_run_on_a_side", shown::each(&asked, &folder));
    let several = tdtool(["diff", &old, &old, "--to", &new, &new]).succeeded().stdout;
    assert!(!several.contains("run-to-run"), "{several}");
}

/// A report of 10,000 samples in so many milliseconds, with functions of these shares.
fn sampled(folder: &Folder, name: &str, ms: f64, shares: &[(String, f64)]) -> String {
    let mut report = Report::new(Source::NoPmu);
    report.software.insert("task_clock_ms".to_owned(), Some(ms));
    report.sampled =
        Some(Sampled { event: "cpu-clock".to_owned(), samples: 10_000, ..Sampled::default() });
    let row = |(name, share): &(String, f64)| FunctionRow {
        name: name.clone(),
        share: *share,
        ..FunctionRow::default()
    };
    report.functions = shares.iter().map(row).collect();
    folder.write(name, serde_json::to_string(&report).expect("JSON"))
}

/// By hand: a sample of 10,000 is 0.1 ms of a second, with an interval of 0.27 ms to both sides: 40 such functions of A
/// are 4 ms and say nothing; 200 samples, 20 ± 2.7 ms, that only B has do.
#[test]
fn rows_below_their_errors_are_one_line_and_all_rows_with_verbose_and_csv() {
    let folder = Folder::new();
    let hot = |share: f64| ("walk".to_owned(), share);
    let rare = (0..40).map(|number| (format!("rare_{number}"), 1e-4));
    let of_a: Vec<_> = rare.chain([hot(0.9)]).collect();
    let a = sampled(&folder, "a.json", 1000.0, &of_a);
    let b = sampled(&folder, "b.json", 1000.0, &[hot(0.9), ("added".to_owned(), 0.02)]);
    let shown = |more: &[&str]| tdtool(["diff", &a, &b].iter().chain(more)).succeeded().stdout;
    assert_shown!("rows_below_their_errors", shown::of(&["diff", &a, &b], &folder));
    assert!(!shown(&["--format", "markdown"]).contains("rare"));
    for all in
        [&["-v"][..], &["-v", "--format", "markdown"], &["--format", "csv"], &["--format", "json"]]
    {
        let text = shown(all).replace('\\', "");
        assert!((0..40).all(|number| text.contains(&format!("rare_{number}"))), "{all:?}: {text}");
    }
}

/// Two runs that differ much have errors above all their values: what takes the time is shown all the same.
#[test]
fn what_takes_most_of_the_time_is_a_row_whatever_its_error() {
    let folder = Folder::new();
    let of = |name: &str, ms: f64| sampled(&folder, name, ms, &[("walk".to_owned(), 0.9)]);
    let [slow, fast] = [of("slow.json", 1900.0), of("fast.json", 100.0)];
    let text = tdtool(["diff", &slow, &fast, "--to", &fast, &slow]).succeeded().stdout;
    assert!(text.lines().any(|line| line.ends_with(" walk")), "{text}");
}

#[test]
fn commands_in_place_of_reports_get_the_command_that_compares_them() {
    let folder = Folder::new();
    let script = folder.write("run.sh", "#!/bin/sh\n");
    let asked = [
        &["diff", "--", "./a", "1", "--", "./b", "2"][..],
        &["diff", "--", "./a", "--"],
        &["diff", &script, "/bin/sh"],
        &["diff", &script, "--", "/bin/sh"],
    ];
    assert_shown!("commands_to_compare", shown::each(&asked, &folder));
}

/// By hand: the function has 500, 505, 510 ms, then 700, 705, 710: 39.6 % more, each ± 12.4.
#[test]
fn a_function_that_takes_longer_fails_the_build() {
    let folder = Folder::new();
    let side = |name: &str, ms: [f64; 3]| {
        let number = |i: usize| estimated(&folder, &format!("{name}{i}"), ms[i], 0x1140, 0.5);
        [number(0), number(1), number(2)]
    };
    let (a, b) = (side("a", [1000.0, 1010.0, 1020.0]), side("b", [1400.0, 1410.0, 1420.0]));
    let gate = |condition: &str| {
        let words = ["diff", &a[0], &a[1], &a[2], "--to", &b[0], &b[1], &b[2]];
        tdtool(words.into_iter().chain(["--fail-if", condition]))
    };
    let crossed = gate("walk(node*) > +20%");
    assert_eq!(crossed.code(), Some(4), "{}", crossed.stderr);
    assert!(crossed.stdout.contains("+39.6 ± 3.5 %"), "{}", crossed.stdout);
    assert_eq!(gate("walk > +50%").code(), Some(0));
    assert_eq!(gate("wolk > +50%").code(), Some(2));
    let single = tdtool(["diff", &a[0], &b[0], "--fail-if", "walk > +20%"]);
    assert_eq!(single.code(), Some(3), "{}", single.stderr);
}

#[test]
fn sessions_are_compared_by_their_functions() {
    need!(available("python3"), "python3 is not installed");
    let folder = Folder::new();
    let [a, b] = ["a.tds", "b.tds"].map(|name| {
        let path = folder.file(name);
        let program = "sum(i * i for i in range(3000000))";
        tdtool(["record", "-o", &path, "--", "python3", "-c", program]).succeeded();
        path
    });
    let found = tdtool(["diff", &a, &b, "--format", "json"]).succeeded().json();
    // A title has the file once, and what ran.
    for (title, file) in found["reports"].as_array().expect("titles").iter().zip([&a, &b]) {
        let title = title.as_str().expect("text");
        assert!(title.starts_with(&format!("{file}: python3 -c 'sum")), "{title}");
        assert_eq!(title.matches(file.as_str()).count(), 1, "{title}");
    }
    // Sampling errors alone establish no change.
    let judged = |row: &Value| row["judgement"].as_str().map(str::to_owned);
    let code = ["functions", "loops", "blocks"].map(|kind| found["code"][kind].as_array());
    let rows = code.into_iter().flatten().flatten();
    assert!(rows.filter_map(judged).all(|word| word != "more" && word != "less"), "{found}");
    // What cannot sample here has no functions.
    let Some(functions) = found["code"]["functions"].as_array() else { return };
    assert!(functions.iter().any(|row| row["matched"] == "name" && row["unit"] == "ms"), "{found}");
}
