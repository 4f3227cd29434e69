//! Names of events as perf, perfmon and toplev write them, and the tables that have them.

use super::{import, of_text, table, total};
use crate::support::files::Folder;
use crate::support::shown;
use profile::counts::{Match, Options, TableMatch, best_tables, counts, resolve};
use tma::tables::{Ring, Table};

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
    assert!(imported.counts[0].notes[0].starts_with("user"), "{:?}", imported.counts);
    let imported = import("5,,ex_ret_ops:uk,9,100.00,,\n", "zen4");
    assert!(imported.counts[0].notes.is_empty());
    let imported = import("5,,ex_ret_ops:u,9,100.00,,\n7,,ex_ret_ops,9,100.00,,\n", "zen4");
    assert_eq!(total(&table("zen4"), &imported.counts[0], "ex_ret_ops"), Ok(7.0));
    assert!(imported.counts[0].notes[0].starts_with("ex_ret_ops:u "));
}

#[test]
fn counts_for_another_processor_are_refused_with_its_name() {
    let r = of_text("5,,idq_uops_not_delivered.core,9,100.00,,\n5,,uops_issued.any,9,100.00,,\n")
        .unwrap();
    let library = events::library();
    let options = Options { library: Some(&library), forced: true };
    let error = counts(&r, &table("zen4"), options).unwrap_err();
    assert_shown!("counts_of_another_processor", shown::error(&error, &Folder::new()));
    let best = best_tables(&r, &library);
    assert_eq!((best[0].matched, best[0].total), (2, 2));
    assert!(best.iter().all(|m| !m.name.starts_with("zen")));
}

/// Rocket Lake's tables have these events, too, but need another for Bad Speculation: on a processor that claims to be one
/// they were chosen, and half of the tree was missing.
#[test]
fn of_tables_with_the_same_events_those_that_evaluate_more_nodes_are_better() {
    let names =
        ["slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"];
    let rows: String = names.iter().map(|name| format!("5,,{name},9,100.00,,\n")).collect();
    let best = best_tables(&of_text(&rows).unwrap(), &events::library());
    let equal = |m: &&TableMatch| m.matched == best[0].matched;
    let rocket_lake =
        best.iter().filter(equal).find(|m| m.name == "rkl").expect("it has all of them");
    assert!(best[0].nodes == 4 && rocket_lake.nodes < 4, "{best:?}");
}
