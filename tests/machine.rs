//! Machines as their `/proc` and `/sys` describe them, and the table and findings that follow.

use crate::collect::{intel, machine};
use pmu::machine::{
    Finding, Level, Machine, Probe, TableMatch, Topology, choose, countable, encode, findings,
    unknown_model,
};
use tma::tables::EventSpec;

const DEVICES: &str = "sys/bus/event_source/devices";
const FINE: Probe = Probe { software: Ok(()), core: Some(Ok(())), inherit_groups: true };

fn tables(machine: &Machine) -> Vec<(String, Option<String>)> {
    let chosen = choose(machine, &events::library(), None).expect("tables");
    chosen.into_iter().map(|t| (t.table, t.pmu)).collect()
}

fn cpu(vendor: &str, family: u32, model: u32, stepping: u32) -> String {
    format!("vendor_id : {vendor}\ncpu family : {family}\nmodel : {model}\nstepping : {stepping}\n")
}

fn named(table: &str, pmu: Option<&str>) -> (String, Option<String>) {
    (table.into(), pmu.map(Into::into))
}

#[test]
fn processors_find_their_tables() {
    // Models from intel/perfmon's mapfile.csv and AMD's PPR names.
    for (vendor, family, model, stepping, table) in [
        ("GenuineIntel", 6, 94, 3, "skl"),
        ("GenuineIntel", 6, 85, 4, "skx"),
        ("GenuineIntel", 6, 85, 7, "clx"),
        ("GenuineIntel", 6, 106, 6, "icx"),
        ("GenuineIntel", 6, 143, 8, "spr"),
        ("AuthenticAMD", 25, 17, 1, "zen4"),
        ("AuthenticAMD", 26, 2, 1, "zen5"),
        ("AuthenticAMD", 23, 49, 0, "zen2"),
    ] {
        let text = cpu(vendor, family, model, stepping);
        let machine = intel(&[("proc/cpuinfo", &text)]);
        assert_eq!(tables(&machine), [named(table, Some("cpu"))], "{text}");
    }
    let unknown = intel(&[("proc/cpuinfo", &cpu("GenuineIntel", 6, 1, 1))]);
    assert_eq!(tables(&unknown), []);
}

#[test]
fn an_unknown_model_has_the_events_that_never_change_and_the_nearest_table() {
    let library = events::library();
    let of = |vendor, family, model| {
        let machine = intel(&[("proc/cpuinfo", &cpu(vendor, family, model, 1))]);
        let counted = countable(&machine, &library, None).expect("tables");
        let found = findings(&machine, &counted, &FINE);
        let table = found.iter().find(|f| f.id == "table").expect("a finding").clone();
        assert_eq!(table.level, Level::Limited);
        let remedy = unknown_model(&machine.cpu, &library).expect("tables");
        let counted = counted.into_iter().map(|t| (t.table, t.pmu)).collect::<Vec<_>>();
        (counted, said(&[table]) + &remedy)
    };
    // Model 0x5f is between Skylake's 0x5e and others.
    let (counted, intel) = of("GenuineIntel", 6, 0x5f);
    assert_eq!(counted, [named("arch-intel", Some("cpu"))]);
    let (counted, amd) = of("AuthenticAMD", 26, 0xff);
    assert_eq!(counted, [named("arch-amd", Some("cpu"))]);
    // A new family has no relative.
    let (_, new) = of("AuthenticAMD", 29, 1);
    assert_shown!("findings_of_unknown_models", [intel, amd, new].join("\n\n"));
}

#[test]
fn a_hybrid_has_a_table_for_each_kind_of_core() {
    let text = cpu("GenuineIntel", 6, 151, 2);
    let (core, atom) = (format!("{DEVICES}/cpu_core/type"), format!("{DEVICES}/cpu_atom/type"));
    let hybrid = machine(&[("proc/cpuinfo", &text), (&core, "4"), (&atom, "10")]);
    assert_eq!(tables(&hybrid), [named("adl", Some("cpu_core")), named("adl-e", Some("cpu_atom"))]);
    // In a virtual machine without a PMU the P core's tree is shown.
    let blind = machine(&[("proc/cpuinfo", &text)]);
    assert_eq!(tables(&blind), [named("adl", None)]);
    // A guest (or a BIOS) with P cores alone.
    let only_p = machine(&[("proc/cpuinfo", &text), (&core, "4")]);
    assert_eq!(tables(&only_p), [named("adl", Some("cpu_core"))]);
}

#[test]
fn a_forced_table_uses_the_pmu_there_is() {
    let machine = intel(&[]);
    let forced = choose(&machine, &events::library(), Some("zen4")).expect("zen4");
    assert_eq!(forced, [TableMatch { table: "zen4".into(), core: None, pmu: Some("cpu".into()) }]);
    let error = choose(&machine, &events::library(), Some("skyx")).expect_err("no such table");
    assert!(error.remedy().is_some(), "{error:?}");
}

#[test]
fn topology_counts_cores_sockets_and_smt() {
    let base = "sys/devices/system/cpu";
    let mut files = vec![(format!("{base}/online"), "0-7".to_owned())];
    for n in 0..8 {
        // Two sockets of two cores of two threads.
        files.push((format!("{base}/cpu{n}/topology/physical_package_id"), (n / 4).to_string()));
        files.push((format!("{base}/cpu{n}/topology/core_id"), (n / 2 % 2).to_string()));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    let topology = machine(&files).topology;
    assert_eq!((topology.sockets, topology.cores_per_socket, topology.smt), (2, 2, true));
    assert_eq!(topology.cpus.len(), 8);
}

/// The topology of CPUs given as (core_id, core_cpus_list), and `smt/active`.
fn shape(cpus: &[(u32, &str)], siblings: &str, active: &str) -> Topology {
    let base = "sys/devices/system/cpu";
    let mut files = vec![
        (format!("{base}/online"), format!("0-{}", cpus.len() - 1)),
        (format!("{base}/smt/active"), active.to_owned()),
    ];
    for (n, (core, list)) in cpus.iter().enumerate() {
        let folder = format!("{base}/cpu{n}/topology");
        files.push((format!("{folder}/physical_package_id"), "0".into()));
        files.push((format!("{folder}/core_id"), core.to_string()));
        if !list.is_empty() {
            files.push((format!("{folder}/{siblings}"), (*list).to_owned()));
        }
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    machine(&files).topology
}

#[test]
fn cores_of_two_dies_with_the_same_number_are_no_smt() {
    // Two dies, each with cores 0 and 1, one thread each.
    let dies = [(0, "0"), (1, "1"), (0, "2"), (1, "3")];
    let with_smt = [(0, "0,2"), (0, "1,3"), (0, "0,2"), (0, "1,3")];
    for file in ["core_cpus_list", "thread_siblings_list"] {
        let topology = shape(&dies, file, "");
        assert_eq!((topology.smt, topology.cores_per_socket), (false, 4), "{file}");
        let cores: Vec<u32> = topology.cpus.iter().map(|c| c.core).collect();
        assert_eq!(cores, [0, 1, 2, 3], "distinct for --per-core");
        // The same with SMT: CPUs 0 and 2 share a core, 1 and 3 the other.
        let topology = shape(&with_smt, file, "");
        assert_eq!((topology.smt, topology.cores_per_socket), (true, 2), "{file}");
        let cores: Vec<u32> = topology.cpus.iter().map(|c| c.core).collect();
        assert_eq!(cores, [0, 1, 0, 1]);
    }
    let unlisted = dies.map(|(core, _)| (core, ""));
    assert!(!shape(&unlisted, "", "0").smt);
    assert!(shape(&unlisted, "", "1").smt);
    assert!(shape(&[(0, ""), (1, "")], "", "1").smt);
}

#[test]
fn core_numbers_that_are_unique_are_kept() {
    // Hybrids number their cores with gaps: P cores 0 and 4 of two threads, E cores 8 and 9.
    let hybrid = [(0, "0-1"), (0, "0-1"), (4, "2-3"), (4, "2-3"), (8, "4"), (9, "5")];
    let topology = shape(&hybrid, "core_cpus_list", "1");
    assert_eq!((topology.smt, topology.cores_per_socket), (true, 4));
    let cores: Vec<u32> = topology.cpus.iter().map(|c| c.core).collect();
    assert_eq!(cores, [0, 0, 4, 4, 8, 9]);
}

#[test]
fn formats_of_the_running_kernel_decide_the_encoding() {
    let format = |name: &str| format!("{DEVICES}/cpu/format/{name}");
    let amd = machine(&[
        (&format!("{DEVICES}/cpu/type"), "4"),
        (&format("event"), "config:0-7,32-35\n"),
        (&format("umask"), "config:8-15\n"),
        (&format("cmask"), "config:24-31\n"),
    ]);
    let spec = EventSpec { code: 0x1a0, umask: 1, cmask: 6, ..Default::default() };
    let pmu = amd.pmu("cpu").expect("a PMU");
    assert_eq!(encode(&spec, pmu).expect("encoded").config, 0x1_0600_01a0);
}

fn finding(machine: &Machine, probe: &Probe, id: &str) -> Finding {
    let chosen = choose(machine, &events::library(), None).expect("tables");
    let all = findings(machine, &chosen, probe);
    all.into_iter().find(|f| f.id == id).unwrap_or_else(|| panic!("no finding {id}"))
}

/// The texts of findings.
fn said(findings: &[Finding]) -> String {
    let text = |found: &Finding| {
        let (cause, remedy) = (found.cause.as_deref(), found.remedy.as_deref());
        let lines = [Some(found.what.as_str()), cause, remedy];
        lines.into_iter().flatten().map(|line| format!("{line}\n")).collect::<String>()
    };
    findings.iter().map(text).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_machine_without_obstacles_has_no_findings() {
    let machine = intel(&[("proc/sys/kernel/perf_event_paranoid", "-1")]);
    let chosen = choose(&machine, &events::library(), None).expect("tables");
    let all = findings(&machine, &chosen, &FINE);
    assert!(all.iter().all(|f| f.level == Level::Ok), "{all:?}");
}

#[test]
fn a_paranoid_level_names_the_line_to_type() {
    let machine = intel(&[("proc/sys/kernel/perf_event_paranoid", "2")]);
    let kernel_mode = finding(&machine, &FINE, "kernel_mode");
    assert_eq!(kernel_mode.level, Level::Limited);
    let system = finding(&machine, &FINE, "system");

    let machine = intel(&[("proc/sys/kernel/perf_event_paranoid", "3")]);
    let denied = Probe { core: Some(Err(libc::EACCES)), software: Err(libc::EACCES), ..FINE };
    let core = finding(&machine, &denied, "core_pmu");
    assert_eq!(core.level, Level::Blocked);
    assert_shown!("findings_of_a_paranoid_kernel", said(&[kernel_mode, system, core]));
}

#[test]
fn the_capability_lifts_the_paranoid_level() {
    // CAP_PERFMON is bit 38 (linux/capability.h).
    let machine = intel(&[
        ("proc/sys/kernel/perf_event_paranoid", "3"),
        ("proc/self/status", "CapEff:\t0000004000000000\nSeccomp:\t0\n"),
    ]);
    assert_eq!(finding(&machine, &FINE, "system").level, Level::Ok);
}

#[test]
fn a_container_with_seccomp_gets_the_options_of_its_runtime() {
    let machine = intel(&[
        ("proc/sys/kernel/perf_event_paranoid", "1"),
        ("proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t2\n"),
        (".dockerenv", ""),
    ]);
    let denied = Probe { core: Some(Err(libc::EPERM)), software: Err(libc::EPERM), ..FINE };
    let core = finding(&machine, &denied, "core_pmu");
    assert_shown!("finding_of_a_container", said(&[core]));
}

#[test]
fn no_pmu_on_hardware_and_in_a_virtual_machine_have_different_remedies() {
    let probe = Probe { core: None, ..FINE };
    let text = cpu("AuthenticAMD", 25, 17, 1);
    let hardware = machine(&[("proc/cpuinfo", &text)]);
    let on_hardware = finding(&hardware, &probe, "core_pmu");
    let virtual_text = format!("{text}flags : hypervisor\n");
    let guest =
        machine(&[("proc/cpuinfo", &virtual_text), ("sys/class/dmi/id/sys_vendor", "QEMU")]);
    let in_a_guest = finding(&guest, &probe, "core_pmu");
    assert_shown!("findings_without_a_pmu", said(&[on_hardware, in_a_guest]));
}

#[test]
fn the_watchdog_is_reported_where_there_is_a_pmu() {
    let machine = intel(&[("proc/sys/kernel/nmi_watchdog", "1")]);
    assert_shown!("finding_of_the_watchdog", said(&[finding(&machine, &FINE, "nmi_watchdog")]));
}

#[test]
fn an_empty_machine_is_no_reason_to_fail() {
    let machine = machine(&[]);
    assert_eq!(tables(&machine), []);
    assert_eq!(machine.topology.cpus.len(), 1);
    let probe = Probe { software: Err(libc::ENOSYS), core: None, inherit_groups: false };
    assert_eq!(finding(&machine, &probe, "table").level, Level::Blocked);
    assert_eq!(finding(&machine, &probe, "software").level, Level::Blocked);
}
