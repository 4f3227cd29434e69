//! Counts that toplev or a script wrote, and lines that are not understood.

use super::{import, of_text, table, total};
use profile::counts::{CountFormat, Options, counts};
use tma::quantity::Missing;
use tma::tables::Const;

#[test]
fn toplevs_counts_old_and_new() {
    let new = "Timestamp,CPU,Group,Event,Value,Perf-event,Index,STDDEV,MULTI,Nodes\n\
        1.0001,0,0,cpu_clk_unhalted.thread,1000.0,cycles,0,0.0,100.0,IPC\n\
        1.0001,0,1,idq_uops_not_delivered.core,200.0,\"cpu/event=0x9c,umask=0x1/\",1,0.0,50.0,Frontend_Bound\n\
        1.0001,1,1,idq_uops_not_delivered.core,0,\"cpu/event=0x9c,umask=0x1/\",1,0.0,0.0,Frontend_Bound\n";
    let r = of_text(new).unwrap();
    assert_eq!(r.sources[0].format, CountFormat::Toplev);
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
    let listed: Vec<String> = r.skipped.iter().map(|s| format!("{}: {}", s.line, s.why)).collect();
    assert_eq!(
        listed,
        [
            "1: not a line of perf stat",
            "3: the value is negative",
            "4: the value is not a finite number",
            "5: the value is not a finite number",
            "6: the value is larger than any counter",
            "7: the line is cut off",
        ]
    );
    let imported = counts(&r, &table("zen4"), Options::default()).unwrap();
    let unknown = &imported.unknown;
    assert_eq!((unknown.len(), unknown[0].name.as_str()), (1, "no_such_event"));
    assert_eq!(unknown[0].line, 8);
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
