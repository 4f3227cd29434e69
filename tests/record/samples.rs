//! Samples of the CPU clock, which needs no PMU: as many as CPU time has periods, each with its
//! place, thread and time.

use super::busy::{busy_command, iterations, record, sampling, session, shell, task_clock};
use crate::profile::samples;
use crate::support::files::Folder;
use crate::support::quiet::{alone, busy};
use crate::support::run::Ran;
use pmu::build_id;
use profile::record::Record;
use profile::sample::Sample;
use profile::session::{has_samples, load_recording};
use std::collections::{BTreeMap, BTreeSet};
use std::env::current_exe;
use std::fs;
use std::path::Path;

/// How often what depends on chance is tried.
const TRIES: usize = 4;

#[test]
fn there_are_as_many_samples_as_cpu_time_has_periods() {
    need!(sampling(), "no perf events here");
    let _quiet = alone();
    let folder = Folder::new();
    let session = session(&folder);
    let mut ratios = Vec::new();
    for frequency in ["999", "4000"].repeat(TRIES) {
        let Ran { status, stderr, .. } =
            record(&session, &["-e", "cpu-clock", "-F", frequency], &busy_command(1));
        assert!(status.success(), "{stderr}");
        let recording = load_recording(&session).expect("a recording");
        let hertz: f64 = frequency.parse().expect("a number");
        let ratio = samples(&recording).len() as f64 / (task_clock(&session) * hertz);
        assert!(recording.events[0].name.starts_with("cpu-clock"), "{:?}", recording.events);
        assert!(stderr.contains("cpu-clock"), "{stderr}");
        ratios.push((frequency, ratio));
        let good = |f: &str| ratios.iter().any(|(g, r)| *g == f && (0.9..1.1).contains(r));
        if good("999") && good("4000") {
            return;
        }
    }
    panic!("samples for each period of CPU time: {ratios:?}");
}

/// A period of the CPU clock is in nanoseconds (linux/perf_event.h).
#[test]
fn samples_may_have_a_fixed_period() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    let recorded =
        record(&session, &["-e", "cpu-clock", "-c", "2000000"], &busy_command(1)).succeeded();
    assert!(recorded.stderr.contains("2000000"), "{}", recorded.stderr);
    let recording = load_recording(&session).expect("a recording");
    let event = &recording.events[0];
    assert_eq!((event.period, event.by_frequency), (2_000_000, false));
    let all = samples(&recording);
    assert!(!all.is_empty() && all.iter().all(|sample| sample.period == Some(2_000_000)));
}

#[test]
fn every_sample_falls_into_a_mapping_of_its_process() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    let stderr = record(&session, &[], &busy_command(1)).stderr;
    let recording = load_recording(&session).expect("a recording");
    let maps: Vec<_> = recording
        .records
        .iter()
        .filter_map(|r| match r {
            Record::Map { mapping, .. } => Some(mapping),
            _ => None,
        })
        .collect();
    let all = samples(&recording);
    let inside = |s: &&&Sample| {
        maps.iter().any(|m| {
            let ip = s.ip.unwrap_or(0);
            Some(m.pid) == s.pid && ip >= m.start && ip - m.start < m.length
        })
    };
    let user: Vec<_> = all.iter().filter(|s| s.user == Some(true)).collect();
    let found = user.iter().copied().filter(inside).count();
    assert!(found * 100 >= user.len() * 95 && found > 10, "{found} of {}: {stderr}", user.len());
    let us = current_exe().expect("a path");
    let ours = maps.iter().find(|m| Path::new(&m.path) == us).expect("our program is mapped");
    let id = build_id::of_file(&us);
    if let (Some(id), Some(recorded)) = (&id, &ours.build_id) {
        assert_eq!(id, recorded);
    }
    let listed = recording.build_ids.iter().find(|(path, _)| Path::new(path) == us);
    assert_eq!(listed.map(|(_, id)| id.clone()), id);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    assert_eq!(recording.kernel.as_deref(), Some(release.trim()));
    assert!(has_samples(&session).expect("a session"));
}

#[test]
fn threads_and_children_are_sampled_each_by_its_share() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    let stderr = record(&session, &[], &busy_command(3)).stderr;
    let recording = load_recording(&session).expect("a recording");
    let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
    for sample in samples(&recording) {
        *threads.entry(sample.tid.expect("a thread")).or_default() += 1;
    }
    let total: usize = threads.values().sum();
    let large = threads.values().filter(|n| **n * 6 > total).count();
    assert_eq!(large, 3, "three threads share the work: {threads:?} {stderr}");

    let work = iterations(60_000);
    record(&session, &[], &shell(&format!("({work}) & ({work}); wait")));
    let recording = load_recording(&session).expect("a recording");
    let pids: BTreeSet<_> = samples(&recording).iter().map(|s| s.pid).collect();
    assert!(pids.len() >= 2, "{pids:?}");
    // --no-inherit: the shell alone.
    record(&session, &["--no-inherit"], &shell(&format!("({work}) & {work}; wait")));
    let recording = load_recording(&session).expect("a recording");
    let pids: BTreeSet<_> = samples(&recording).iter().map(|s| s.pid).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn times_are_in_order_and_names_are_there() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    record(&session, &[], &busy_command(2));
    let recording = load_recording(&session).expect("a recording");
    let times: Vec<_> = samples(&recording).iter().map(|s| s.time).collect();
    assert!(times.is_sorted());
    let named = |r: &Record| matches!(r, Record::Name { name, exec: true, .. } if name == "env");
    assert!(recording.records.iter().any(named), "the exec of env has its name");
    assert!(recording.records.iter().any(|r| matches!(r, Record::Exit { .. })));
}

#[test]
fn call_chains_and_registers_come_on_request() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    let Ran { status, stderr, .. } = record(&session, &["-g", "--registers"], &busy_command(1));
    assert!(status.success(), "{stderr}");
    let recording = load_recording(&session).expect("a recording");
    let all = samples(&recording);
    let whole = |s: &&&Sample| {
        s.registers.is_some() && s.chain.first().map(|f| f.ip) == s.ip && s.chain.len() > 1
    };
    let user = all.iter().filter(|s| s.user == Some(true));
    assert!(user.filter(whole).count() * 2 > all.len(), "{} samples: {stderr}", all.len());
    let format = recording.events[0].format;
    // CALLCHAIN and REGS_USER of linux/perf_event.h.
    assert_eq!(format.sample_type & (1 << 5 | 1 << 12), 1 << 5 | 1 << 12);
    if cfg!(target_arch = "x86_64") {
        // AX to IP are 0 to 8, R8 to R15 are 16 to 23 (asm/perf_regs.h): 17 registers.
        assert_eq!(format.regs_user.count_ones(), 17);
    }
}

#[test]
fn several_events_share_a_recording() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    record(&session, &["-e", "cpu-clock", "-e", "page-faults", "-F", "2000"], &busy_command(1));
    let recording = load_recording(&session).expect("a recording");
    let of = |event: usize| {
        let is = |r: &&Record| matches!(r, Record::Sample { event: e, .. } if *e == event);
        recording.records.iter().filter(is).count()
    };
    assert_eq!(recording.events.len(), 2);
    assert!(of(0) > 10 && of(1) > 0, "{} and {}", of(0), of(1));
}
