//! Recorded counts as people have them, read back: every prefix perf prints, JSON, toplev, CSV.
//!
//! The `perf-*` fixtures are what perf 6.1 printed on a virtual machine (software events count
//! there, hardware events do not); `zen4-*` come from KeithJH/kinematics-demo (MIT).
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use profile::counts::{
    Count, Format, Imported, Match, Options, Over, Recording, ScopeKind, SoftwareKind, aggregate,
    best_tables, counts, read, resolve,
};
use std::io::Write;
use std::path::{Path, PathBuf};
use tma::counts::{Counts, GroupCounts};
use tma::quantity::Missing;
use tma::tables::{Const, Library, Ring, Table};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import").join(name)
}

fn recording(name: &str) -> Recording {
    read(&[fixture(name)]).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn of_text(text: &str) -> tma::Result<Recording> {
    of_bytes(text.as_bytes())
}

fn of_bytes(bytes: &[u8]) -> tma::Result<Recording> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    read(&[file.path()])
}

fn table(name: &str) -> Table {
    events::library().load(name).unwrap()
}

fn import(text: &str, uarch: &str) -> Imported {
    counts(&of_text(text).unwrap(), &table(uarch), Options::default()).unwrap()
}

fn total(table: &Table, counts: &Counts, event: &str) -> Result<f64, Missing> {
    let id = table.event(event).unwrap_or_else(|| panic!("no event {event}"));
    for group in &counts.groups {
        if let Some(at) = group.events().iter().position(|e| *e == id) {
            return group.total(at);
        }
    }
    Err(Missing::NotMeasured("not in the import".into()))
}

/// Names, values and scopes of the software rows: `cpu0 task-clock 51.32`.
fn software(recording: &Recording) -> Vec<String> {
    let mut found = Vec::new();
    for block in &recording.blocks {
        for row in &block.software {
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
    assert_eq!(r.sources[0].format, Format::PerfCsv { separator: ",".into() });
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
        assert_eq!(r.sources[0].format, Format::PerfCsv { separator: separator.into() }, "{name}");
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
    assert_eq!(r.sources[0].format, Format::PerfJson);
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
fn toplevs_counts_old_and_new() {
    let new = "Timestamp,CPU,Group,Event,Value,Perf-event,Index,STDDEV,MULTI,Nodes\n\
        1.0001,0,0,cpu_clk_unhalted.thread,1000.0,cycles,0,0.0,100.0,IPC\n\
        1.0001,0,1,idq_uops_not_delivered.core,200.0,\"cpu/event=0x9c,umask=0x1/\",1,0.0,50.0,Frontend_Bound\n\
        1.0001,1,1,idq_uops_not_delivered.core,0,\"cpu/event=0x9c,umask=0x1/\",1,0.0,0.0,Frontend_Bound\n";
    let r = of_text(new).unwrap();
    assert_eq!(r.sources[0].format, Format::Toplev);
    let skx = table("skx");
    let imported = counts(&r, &skx, Options::default()).unwrap();
    let cpu0 = &imported.counts[0];
    assert_eq!(cpu0.scope.as_deref(), Some("cpu0"));
    assert_eq!(total(&skx, cpu0, "IDQ_UOPS_NOT_DELIVERED.CORE"), Ok(200.0));
    assert_eq!(cpu0.groups.len(), 2, "toplev's group numbers are kept");
    assert_eq!(cpu0.groups[1].running_share(), Some(0.5));
    // toplev writes 0 with a share of 0 where perf said <not counted>.
    assert!(matches!(
        total(&skx, &imported.counts[1], "IDQ_UOPS_NOT_DELIVERED.CORE"),
        Err(Missing::NotCounted(_))
    ));
    let old = "Timestamp,CPU,Group,Event,Value,Perf-event,Index,STDEV,MULTI\r\n\
        ,,0,INST_RETIRED.ANY,7,instructions,0,0,nan\r\n";
    let imported = import(old, "skx");
    assert_eq!(total(&skx, &imported.counts[0], "INST_RETIRED.ANY"), Ok(7.0));
}

#[test]
fn plain_csv_with_header_without_and_with_trials() {
    let zen4 = table("zen4");
    for text in [
        "event,value\nls_not_halted_cyc,100\n\"cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=6/\",5\n",
        "ls_not_halted_cyc;100\nde_no_dispatch_per_slot.no_ops_from_frontend:c6;5\n",
        "value\tname\n100\tLS_NOT_HALTED_CYC:u\n5\tcpu/event=0x1a0,umask=0x1,cmask=0x6/u\n",
    ] {
        let imported = import(text, "zen4");
        assert_eq!(total(&zen4, &imported.counts[0], "ls_not_halted_cyc"), Ok(100.0), "{text}");
        let latency = "de_no_dispatch_per_slot.no_ops_from_frontend:c6";
        assert_eq!(total(&zen4, &imported.counts[0], latency), Ok(5.0), "{text}");
    }
    let imported = import(
        "trial,event,value\n0,#SMT_ON,1\n0,ex_ret_ops,3\n1,#DURATION_MS,500\n1,ex_ret_ops,4\n",
        "zen4",
    );
    let scopes: Vec<_> = imported.counts.iter().map(|c| c.scope.as_deref()).collect();
    assert_eq!(scopes, [Some("trial 0"), Some("trial 1")]);
    assert_eq!(imported.counts[0].constants[Const::SmtOn.index()], Some(1.0));
    assert_eq!(imported.counts[1].constants[Const::SmtOn.index()], None, "not said: not known");
    assert_eq!(imported.counts[1].constants[Const::DurationMs.index()], Some(500.0));
}

#[test]
fn groups_come_from_shares_repeats_and_the_other_intervals() {
    // Block 21 prints equal shares for neighbouring groups; block 0 shows where they part.
    let zen4 = table("zen4");
    let r = recording("zen4-two-intervals.csv");
    assert!(r.skipped.is_empty(), "{:?}", r.skipped);
    let imported = counts(&r, &zen4, Options::default()).unwrap();
    for counts in &imported.counts {
        let sizes: Vec<usize> = counts.groups.iter().map(|g| g.events().len()).collect();
        assert_eq!(sizes, [5, 4, 3, 3]);
    }
    // Every group keeps its own cycles.
    let cycles: Vec<f64> = imported.counts[1]
        .groups
        .iter()
        .map(|g| {
            let at = g.events().iter().position(|e| *e == zen4.clocks).unwrap();
            g.total(at).unwrap()
        })
        .collect();
    assert_eq!(cycles, [33159827306.0, 33155255849.0, 33169607697.0, 33174251783.0]);
    let share = imported.counts[0].groups[3].running_share().unwrap();
    assert!((share - 0.2508).abs() < 1e-12, "{share}");
    assert_eq!(imported.counts[1].constants[Const::DurationMs.index()], Some(1000.0));

    // The same where block 21 is alone: a repeat is cut where the table's nodes stay whole.
    let text = std::fs::read_to_string(fixture("zen4-two-intervals.csv")).unwrap();
    let alone: String = text.lines().skip(15).map(|l| format!("{l}\n")).collect();
    let imported = import(&alone, "zen4");
    let sizes: Vec<usize> = imported.counts[0].groups.iter().map(|g| g.events().len()).collect();
    assert_eq!(sizes, [5, 4, 3, 3]);
}

#[test]
fn run_times_tell_groups_with_equal_shares_apart() {
    let text = "10,,ex_ret_ops,500000,50.00,,\n20,,ls_not_halted_cyc,500000,50.00,,\n\
                30,,ex_ret_ucode_ops,500017,50.00,,\n40,,ls_not_halted_cyc,500017,50.00,,\n";
    let imported = import(text, "zen4");
    assert_eq!(imported.counts[0].groups.len(), 2);
    // What always ran, ran together, whatever the run times.
    let text = text
        .replace("50.00", "100.00")
        .replace("40,,ls_not", "40,,ex_no_retire.not_complete,1,100.00,,\n40,,ls_not");
    let imported = import(&text, "zen4");
    assert_eq!(imported.counts[0].groups[0].events().len(), 2 + 1);
}

#[test]
fn names_as_perf_perfmon_and_toplev_write_them() {
    let skx = table("skx");
    let event = |name: &str| match resolve(&skx, name) {
        Match::Event { id, .. } => skx.events[usize::from(id)].name.clone(),
        other => format!("{other:?}"),
    };
    // Codes: perfmon SKX core events; generic names: intel_perfmon_event_map of the kernel.
    for (name, expected) in [
        ("idq_uops_not_delivered.core", "IDQ_UOPS_NOT_DELIVERED.CORE"),
        ("cpu/event=0x9c,umask=0x1/", "IDQ_UOPS_NOT_DELIVERED.CORE"),
        ("cpu/umask=0x01,period=2000003,event=0x9C/upp", "IDQ_UOPS_NOT_DELIVERED.CORE"),
        ("cpu/idq_uops_not_delivered.core/", "IDQ_UOPS_NOT_DELIVERED.CORE"),
        ("r019c", "IDQ_UOPS_NOT_DELIVERED.CORE"),
        ("cpu/config=0x19c/", "IDQ_UOPS_NOT_DELIVERED.CORE"),
        ("IDQ_UOPS_NOT_DELIVERED.CORE:ppp", "IDQ_UOPS_NOT_DELIVERED.CORE"),
        ("cycles", "CPU_CLK_UNHALTED.THREAD"),
        ("cpu-cycles:uk", "CPU_CLK_UNHALTED.THREAD"),
        ("cpu/event=0x00,umask=0x02/", "CPU_CLK_UNHALTED.THREAD"),
        ("instructions", "INST_RETIRED.ANY"),
        ("cpu/event=0xc0/", "INST_RETIRED.ANY"),
        ("msr/tsc/", "TSC"),
        ("MSR/TSC/", "TSC"),
        ("task-clock:u", "Software(TaskClock)"),
        ("cs", "Software(ContextSwitches)"),
        ("#smt_on", "Constant(SmtOn)"),
        ("cpu_atom/cycles/", "OtherCore"),
        ("sched:sched_switch", "Unknown"),
        ("L1-dcache-loads", "Unknown"),
        ("", "Unknown"),
        ("cpu/", "Unknown"),
        ("cpu/event=zz/", "Unknown"),
    ] {
        assert_eq!(event(name), expected, "{name}");
    }
    // A filter the table's event has in its name, in every spelling.
    let filtered = skx.events.iter().find(|e| e.name.ends_with(":c1:e1")).unwrap();
    let base = filtered.name.trim_end_matches(":c1:e1").to_lowercase();
    for name in [
        format!("{base}:c1:e1"),
        format!("cpu/{base},edge,cmask=1/"),
        format!("cpu/{base},cmask=0x1,edge=1/k"),
    ] {
        assert_eq!(event(&name), filtered.name, "{name}");
    }
}

#[test]
fn fixed_metrics_hybrid_prefixes_and_amds_wide_codes() {
    let event = |table: &Table, name: &str| match resolve(table, name) {
        Match::Event { id, .. } => table.events[usize::from(id)].name.clone(),
        other => format!("{other:?}"),
    };
    let spr = table("spr");
    assert_eq!(event(&spr, "topdown-retiring"), "PERF_METRICS.RETIRING");
    assert_eq!(event(&spr, "cpu/topdown-mem-bound/u"), "PERF_METRICS.MEMORY_BOUND");
    assert_eq!(event(&spr, "slots"), "TOPDOWN.SLOTS");
    let (adl, adl_e) = (table("adl"), table("adl-e"));
    assert_eq!(event(&adl, "cpu_core/slots/"), "TOPDOWN.SLOTS");
    assert_eq!(event(&adl, "slots [cpu_core]"), "TOPDOWN.SLOTS");
    assert_eq!(event(&adl, "cpu_atom/cycles/"), "OtherCore");
    assert_eq!(event(&adl_e, "cpu_atom/cycles/"), "CPU_CLK_UNHALTED.CORE");
    let zen4 = table("zen4");
    // Upper bits of the code stand in bits 32 to 35 of the config word (amd_f17h).
    assert_eq!(event(&zen4, "r1000001a0"), "de_no_dispatch_per_slot.no_ops_from_frontend");
    assert_eq!(
        event(&zen4, "cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/"),
        "de_no_dispatch_per_slot.no_ops_from_frontend:c6"
    );
    assert_eq!(event(&zen4, "cycles"), "ls_not_halted_cyc");
}

#[test]
fn a_count_of_user_mode_alone_is_marked() {
    assert!(matches!(
        resolve(&table("skx"), "cycles:u"),
        Match::Event { only: Some(Ring::User), .. }
    ));
    let imported = import("5,,ex_ret_ops:u,9,100.00,,\n", "zen4");
    assert!(imported.counts[0].notes[0].starts_with("user mode only"), "{:?}", imported.counts);
    let imported = import("5,,ex_ret_ops:uk,9,100.00,,\n", "zen4");
    assert!(imported.counts[0].notes.is_empty());
    let imported = import("5,,ex_ret_ops:u,9,100.00,,\n7,,ex_ret_ops,9,100.00,,\n", "zen4");
    assert_eq!(total(&table("zen4"), &imported.counts[0], "ex_ret_ops"), Ok(7.0));
    assert!(imported.counts[0].notes[0].starts_with("ex_ret_ops:u is not used"));
}

#[test]
fn missing_counts_keep_their_reason() {
    let zen4 = table("zen4");
    let imported = import(
        "5,,ex_ret_ops,9,100.00,,\n<not counted>,,ls_not_halted_cyc,0,0.00,,\n\
         <not supported>,,ex_ret_ucode_ops,0,100.00,,\n",
        "zen4",
    );
    let counts = &imported.counts[0];
    assert!(matches!(total(&zen4, counts, "ls_not_halted_cyc"), Err(Missing::NotCounted(_))));
    assert!(matches!(total(&zen4, counts, "ex_ret_ucode_ops"), Err(Missing::NotSupported(_))));
}

#[test]
fn what_is_not_understood_is_listed_with_its_line() {
    let r = of_text(
        "starting up\n5,,ex_ret_ops,9,100.00,,\n-3,,cycles,9,100.00,,\nnan,,cycles,9,100.00,,\n\
         inf,,cycles,9,100.00,,\n1e300,,cycles,9,100.00,,\n7,,ls_not_halted\n5,,no_such_event,9,100.00,,\n",
    )
    .unwrap();
    let listed: Vec<(u32, &str)> = r.skipped.iter().map(|s| (s.line, s.why.as_str())).collect();
    assert_eq!(
        listed,
        [
            (1, "not a line of perf stat"),
            (3, "the value is negative"),
            (4, "the value is not a finite number"),
            (5, "the value is not a finite number"),
            (6, "the value is larger than any counter"),
            (7, "the line is cut off"),
        ]
    );
    let imported = counts(&r, &table("zen4"), Options::default()).unwrap();
    let unknown = &imported.findings.unknown;
    assert_eq!((unknown.len(), unknown[0].name.as_str()), (1, "no_such_event"));
    assert!(unknown[0].place.ends_with(":8"), "{}", unknown[0].place);
}

#[test]
fn decimal_commas_are_read_where_they_are_no_separator_and_refused_else() {
    let r = of_text("0,99;msec;task-clock;992074;100,00;0,005;CPUs utilized\n").unwrap();
    assert_eq!(software(&r), ["task-clock 0.99"]);
    let r =
        of_text("0,99,msec,task-clock,992074,100,00,0,005,CPUs utilized\n5,,cycles,1,100.00,,\n")
            .unwrap();
    assert_eq!(r.skipped.len(), 1);
}

#[test]
fn counts_for_another_processor_are_refused_with_its_name() {
    let r = of_text("5,,idq_uops_not_delivered.core,9,100.00,,\n5,,uops_issued.any,9,100.00,,\n")
        .unwrap();
    let library = events::library();
    let options = Options { library: Some(&library), forced: true };
    let error = counts(&r, &table("zen4"), options).unwrap_err();
    assert!(error.what().contains("not for zen4"), "{error}");
    let hint = error.remedy().unwrap();
    assert!(hint.contains("--uarch"), "{hint}");
    let best = best_tables(&r, &library);
    assert_eq!((best[0].matched, best[0].total), (2, 2));
    assert!(best.iter().all(|m| !m.name.starts_with("zen")));
}

#[test]
fn energy_in_joules_becomes_the_vendors_unit() {
    // Intel's formula multiplies by 61 µJ: 61 J are a million units.
    let skx = table("skx");
    let imported =
        import("61.00,Joules,power/energy-pkg/,9,100.00,,\n1,,instructions,9,100.00,,\n", "skx");
    let pkg = total(&skx, &imported.counts[0], "FREERUN_PKG_ENERGY_STATUS").unwrap();
    assert!((pkg - 1e6).abs() < 1e-3, "{pkg}");
}

#[test]
fn one_cpus_duration_is_everyones() {
    let imported = import(
        "CPU0,5,,cycles,9,100.00,,\nCPU1,6,,cycles,9,100.00,,\nCPU0,2000000,ns,duration_time,9,100.00,,\n",
        "zen4",
    );
    for counts in &imported.counts {
        assert_eq!(counts.constants[Const::DurationMs.index()], Some(2.0));
    }
    let sum = aggregate(&imported.counts, Over::Scopes);
    assert_eq!(sum.len(), 1);
    assert_eq!(total(&table("zen4"), &sum[0], "ls_not_halted_cyc"), Ok(11.0));
    assert_eq!(sum[0].constants[Const::DurationMs.index()], Some(2.0));
}

#[test]
fn sums_over_intervals_add_times_and_keep_what_is_missing() {
    let zen4 = table("zen4");
    let imported = import(
        "     1.000000000,5,,cycles,9,50.00,,\n     1.000000000,1,,ex_ret_ops,9,50.00,,\n     \
         2.000000000,6,,cycles,9,40.00,,\n     2.000000000,<not counted>,,ex_ret_ops,0,0.00,,\n",
        "zen4",
    );
    let sum = aggregate(&imported.counts, Over::Intervals);
    assert_eq!(total(&zen4, &sum[0], "ls_not_halted_cyc"), Ok(11.0));
    let why = total(&zen4, &sum[0], "ex_ret_ops").unwrap_err();
    assert!(matches!(&why, Missing::NotMeasured(w) if w.contains("1 of 2 intervals")), "{why}");
    assert_eq!(sum[0].constants[Const::DurationMs.index()], Some(2000.0));
    assert!(
        matches!(&sum[0].groups[0], GroupCounts::Imported { running: Some(r), .. } if *r == 0.4)
    );
}

/// Intervals of one second. In the second, nothing ran; in the third, one of two groups got no
/// counter. By hand: the clock has all that ran, 5 + 7; the ops of 1 s stand for 2 s, 2 * 3.
#[test]
fn an_idle_interval_adds_nothing_and_an_uncounted_group_is_taken_as_in_the_others() {
    let zen4 = table("zen4");
    let imported = import(
        "     1.0,5,,cycles,9,50.00,,\n     1.0,3,,ex_ret_ops,8,49.00,,\n     \
         2.0,<not counted>,,cycles,0,0.00,,\n     2.0,<not counted>,,ex_ret_ops,0,0.00,,\n     \
         3.0,7,,cycles,9,50.00,,\n     3.0,<not counted>,,ex_ret_ops,0,0.00,,\n",
        "zen4",
    );
    let sum = aggregate(&imported.counts, Over::Intervals);
    assert_eq!(total(&zen4, &sum[0], "ls_not_halted_cyc"), Ok(12.0));
    assert_eq!(total(&zen4, &sum[0], "ex_ret_ops"), Ok(6.0));
    assert!(sum[0].notes.iter().any(|n| n.contains("no counter in some intervals")));
}

#[test]
fn software_counts_need_no_table() {
    let imported = counts(&recording("perf-plain.csv"), &table("zen4"), Options::default());
    let imported = imported.unwrap();
    assert_eq!(imported.software[0].values["page-faults"], Ok(74.0));
    assert_eq!(SoftwareKind::from_name("faults").unwrap().name(), "page-faults");
}
