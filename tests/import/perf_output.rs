//! Reads the output of perf back: every prefix and separator, CSV and JSON.

use super::{of_text, recording};
use profile::counts::{Count, CountFormat, Recording, ScopeKind};

/// Names, values and scopes of the software rows: `cpu0 task-clock 51.32`.
fn software(recording: &Recording) -> Vec<String> {
    let mut found = Vec::new();
    for block in &recording.blocks {
        for (_, row) in &block.software {
            let scope = block.scope.as_ref().map_or(String::new(), |s| format!("{s} "));
            let count = match row.count {
                Count::Value(v) => v.to_string(),
                other => format!("{other:?}"),
            };
            found.push(format!("{scope}{} {count}", recording.name(row.name)));
        }
    }
    found
}

#[test]
fn the_simplest_output_of_perf() {
    let r = recording("perf-plain.csv");
    assert_eq!(r.sources[0].format, CountFormat::PerfCsv { separator: ",".into() });
    assert_eq!(
        software(&r),
        ["task-clock 0.81", "context-switches 2", "duration_time 51630618", "page-faults 74"]
    );
    let cycles = r.blocks[0].rows[0];
    assert_eq!((r.name(cycles.name), cycles.count), ("cycles", Count::NotSupported));
    assert_eq!((cycles.line, cycles.running), (3, None));
    let side: Vec<_> =
        r.blocks[0].metrics.iter().map(|m| (r.name(m.name), m.value, m.line)).collect();
    assert_eq!(side[0], ("CPUs utilized", 0.016, 1));
    assert!(r.skipped.is_empty(), "{:?}", r.skipped);
}

#[test]
fn the_time_of_tasks_is_in_milliseconds_whatever_unit_a_file_has() {
    // 2 s of processor time in each.
    for row in ["2000,msec,task-clock", "2000000000,ns,task-clock", "2000.00,,task-clock"] {
        let text = format!("{row},2000000000,100.00,,\n1000,,cycles,2000000000,100.00,,\n");
        let recording = of_text(&text).expect("a recording");
        let table = events::library().load("skl").expect("table");
        let options = profile::counts::Options { library: None, forced: true };
        let imported = profile::counts::counts(&recording, &table, options).expect("counts");
        let clock = imported.software[0].values["task-clock"].clone();
        assert_eq!(clock, Ok(2000.0), "{row}");
    }
}

#[test]
fn every_prefix_and_separator_of_perf() {
    let expected: [(&str, &str, Option<ScopeKind>, &[&str]); 9] = [
        (
            "perf-no-aggr.csv",
            ",",
            Some(ScopeKind::Cpu),
            &[
                "cpu0 task-clock 51.32",
                "cpu0 context-switches 3",
                "cpu0 duration_time 51338804",
                "cpu1 task-clock 51.35",
                "cpu1 context-switches 21",
            ],
        ),
        (
            "perf-core.csv",
            ",",
            Some(ScopeKind::Core),
            &[
                "S0-D0-C0 task-clock 51.39",
                "S0-D0-C0 context-switches 3",
                "S0-D0-C1 task-clock 51.41",
                "S0-D0-C1 context-switches 19",
            ],
        ),
        (
            "perf-die.csv",
            ",",
            Some(ScopeKind::Die),
            &["S0-D0 task-clock 102.55", "S0-D0 context-switches 24"],
        ),
        (
            "perf-socket-semicolon.csv",
            ";",
            Some(ScopeKind::Socket),
            &["S0 task-clock 106.59", "S0 context-switches 31"],
        ),
        (
            "perf-node-tab.csv",
            "\t",
            Some(ScopeKind::Node),
            &["N0 task-clock 102.65", "N0 context-switches 30"],
        ),
        (
            "perf-repeat-pipe.csv",
            "|",
            None,
            &["task-clock 0.77", "context-switches 1", "duration_time 21367898"],
        ),
        (
            "perf-doublecolon.csv",
            "::",
            None,
            &["task-clock 0.71", "context-switches 1", "page-faults 76"],
        ),
        ("perf-cgroup.csv", ",", Some(ScopeKind::Whole), &["cgroup / task-clock NotCounted"]),
        (
            "perf-file.csv",
            ",",
            None,
            &["task-clock 0.76", "page-faults 48", "task-clock 0.45", "page-faults 51"],
        ),
    ];
    for (name, separator, kind, rows) in expected {
        let r = recording(name);
        assert_eq!(
            r.sources[0].format,
            CountFormat::PerfCsv { separator: separator.into() },
            "{name}"
        );
        assert_eq!(software(&r), rows, "{name}");
        assert_eq!(r.blocks[0].scope.as_ref().map(|s| s.kind), kind, "{name}");
        assert!(r.skipped.is_empty(), "{name}: {:?}", r.skipped);
    }
}

#[test]
fn threads_may_have_slashes_colons_and_blanks_in_their_names() {
    let r = recording("perf-thread.csv");
    assert!(software(&r).contains(&"kworker/1:1-events-41 task-clock 0.01".to_owned()));
    assert!(r.blocks.iter().all(|b| b.scope.as_ref().is_some_and(|s| s.kind == ScopeKind::Thread)));
    let r = of_text("my, thread-7,5,,cycles,100,100.00,,\n").unwrap();
    assert_eq!(r.blocks[0].scope.as_ref().unwrap().name, "my,thread-7");
}

#[test]
fn metrics_on_lines_of_their_own_are_kept_beside_the_counts() {
    // As perf 6.x prints `perf stat -x, -M TopdownL1 -I 1000` (perf-stat(1): "Additional metrics
    // may be printed with all earlier fields being empty").
    let r = of_text(
        "     1.000100000,900,,slots,1000,100.00,25.0,%  tma_frontend_bound\n\
              1.000100000,,,,,,,TopdownL1\n     1.000100000,,,,,,50.0,%  tma_retiring\n\
              1.000100000,200,,topdown-retiring,1000,100.00,,\n",
    )
    .unwrap();
    assert!(r.skipped.is_empty(), "{:?}", r.skipped);
    assert_eq!(r.blocks.len(), 1);
    assert_eq!(r.blocks[0].rows.len(), 2);
    let side: Vec<_> = r.blocks[0].metrics.iter().map(|m| (r.name(m.name), m.value)).collect();
    assert_eq!(side, [("%  tma_frontend_bound", 25.0), ("%  tma_retiring", 50.0)]);
}

#[test]
fn intervals_have_begin_and_end_and_a_summary_is_not_one() {
    let r = recording("perf-interval-summary.csv");
    let ends: Vec<_> = r
        .blocks
        .iter()
        .map(|b| b.interval.map(|(begin, end)| (begin.as_nanos(), end.as_nanos())))
        .collect();
    assert_eq!(
        ends,
        [
            Some((0, 50_125_482)),
            Some((50_125_482, 100_371_493)),
            Some((100_371_493, 121_229_093)),
            None
        ]
    );
    assert_eq!(r.blocks.iter().map(|b| b.summary).collect::<Vec<_>>(), [false, false, false, true]);
}

#[test]
fn runs_appended_to_one_file_stay_apart() {
    let r = recording("perf-file.csv");
    assert_eq!(
        r.blocks.iter().map(|b| r.label(b)).collect::<Vec<_>>(),
        [Some("run 1".to_owned()), Some("run 2".to_owned())]
    );
}

#[test]
fn json_says_the_same_as_csv() {
    let r = recording("perf-no-aggr.json");
    assert_eq!(r.sources[0].format, CountFormat::PerfJson);
    assert_eq!(r.blocks.len(), 2);
    assert_eq!(r.blocks[1].scope.as_ref().unwrap().name, "cpu1");
    assert_eq!(r.blocks[1].rows[0].count, Count::NotSupported);
    let r = recording("perf-interval.json");
    assert_eq!(r.blocks.len(), 2);
    assert_eq!(r.blocks[0].interval.unwrap().1, r.blocks[1].interval.unwrap().0);
    assert!(r.skipped.is_empty(), "{:?}", r.skipped);
    // perf prints metrics that have no value as bare nan: no JSON, but the count is good.
    let r = of_text(
        r#"{"counter-value" : "12.000000", "unit" : "", "event" : "cycles", "event-runtime" : 5, "pcnt-running" : 25.00, "metric-value" : -nan, "metric-unit" : "GHz"}"#,
    )
    .unwrap();
    assert_eq!(r.blocks[0].rows[0].count, Count::Value(12.0));
    assert_eq!(r.blocks[0].rows[0].running, Some(0.25));
}

#[test]
fn decimal_commas_are_read_where_they_are_the_separator_too() {
    let r = of_text("0,99;msec;task-clock;992074;100,00;0,005;CPUs utilized\n").unwrap();
    assert_eq!(software(&r), ["task-clock 0.99"]);
    let r =
        of_text("0,99,msec,task-clock,992074,100,00,0,005,CPUs utilized\n5,,cycles,1,100.00,,\n")
            .unwrap();
    assert_eq!((software(&r), r.skipped.len()), (vec!["task-clock 0.99".to_owned()], 0));
}
