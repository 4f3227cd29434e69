//! Targets of sampling: running processes, all processors, events and nodes of the table.

use super::busy::{iterations, record, sampling, session, shell};
use crate::profile::samples;
use crate::support::child::Limited as _;
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::{Ran, program, tdtool};
use pmu::machine::Machine;
use profile::record::Record;
use profile::session::{load, load_recording};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn a_running_process_has_its_mappings() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    let mut child = program("sh").args(["-c", "while :; do :; done"]).start_limited().expect("sh");
    let pid = child.id();
    let Ran { status, stderr, .. } =
        record(&session, &["-p", &pid.to_string(), "--duration", "0.5"], &[]);
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(status.success(), "{stderr}");
    let recording = load_recording(&session).expect("a recording");
    let all = samples(&recording);
    assert!(all.len() > 10 && all.iter().all(|s| s.pid == Some(pid)), "{} {stderr}", all.len());
    let program = |r: &Record| match r {
        Record::Map { mapping, .. } => mapping.pid == pid && mapping.path.starts_with('/'),
        _ => false,
    };
    assert!(recording.records.iter().any(program), "its program is mapped");
    let named =
        |r: &Record| matches!(r, Record::Name { pid: p, name, .. } if *p == pid && name == "sh");
    assert!(recording.records.iter().any(named));
}

/// A command beside the process says how long: what to do next is of the process, as long as it runs.
#[test]
fn what_to_do_next_is_of_what_was_recorded() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    let mut child = program("sh").args(["-c", "while :; do :; done"]).start_limited().expect("sh");
    let pid = child.id().to_string();
    let recorded = record(&session, &["-p", &pid], &["sleep", "0.5"].map(str::to_owned));
    let file = session.to_str().expect("UTF-8");
    let report = || tdtool(["report", "--format", "json", file]).succeeded().json();
    let (during, next) = (report(), |report: &Value| report["conclusion"]["next"].to_string());
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(recorded.status.success(), "{}", recorded.stderr);
    assert_eq!(load(&session).expect("a session").header["target"]["process"], child.id());
    assert_eq!(during["target"]["process"], child.id());
    assert_eq!(during["command"][0], "sleep", "it is still known");
    let is_counted = Machine::detect().core_pmus().next().is_some();
    let estimate = format!("tdtool report --estimate -p {pid}");
    assert!(is_counted || next(&during).contains(&estimate), "{}", next(&during));
    assert!(!next(&during).contains("sleep"), "{}", next(&during));
    let after = report();
    assert!(!next(&after).contains(&pid) && !next(&after).contains("sleep"), "{}", next(&after));
}

#[test]
fn a_process_that_ends_or_is_not_there() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    // On a busy machine it may have ended before we are there; then it sleeps longer.
    let gone = ["0.5", "2", "8"].into_iter().find_map(|seconds| {
        let mut child = program("sleep").arg(seconds).start_limited().expect("sleep");
        let recorded = record(&session, &["-p", &child.id().to_string()], &[]);
        child.wait().expect("ended");
        recorded.status.success().then_some(child.id())
    });
    let gone = gone.expect("the recording ends with the process");
    assert!(load(&session).expect("a session").end.is_some());
    let Ran { status, stderr, .. } = record(&session, &["-p", &gone.to_string()], &[]);
    assert_eq!(status.code(), Some(1));
    assert!(stderr.contains(&format!("process {gone}")), "{stderr}");
    // Attached to while it ends: an error or a recording, never a panic or a hang.
    for _ in 0..10 {
        let mut child = program("true").start_limited().expect("true");
        let Ran { status, stderr, .. } = record(&session, &["-p", &child.id().to_string()], &[]);
        child.wait().expect("ended");
        assert!(status.code().is_some_and(|c| c <= 1), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

#[test]
fn all_cpus_see_everybody() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let session = session(&folder);
    let mut child = program("sh").args(["-c", "while :; do :; done"]).start_limited().expect("sh");
    let Ran { status, stderr, .. } = record(&session, &["-a", "--duration", "0.5"], &[]);
    let pid = child.id();
    child.kill().expect("killed");
    child.wait().expect("ended");
    if !status.success() {
        assert!(stderr.contains("not permitted"), "{stderr}");
        eprintln!("skipped: this user may not look at whole CPUs");
        return;
    }
    assert_eq!(load(&session).expect("a session").header["target"], "system");
    let recording = load_recording(&session).expect("a recording");
    assert!(samples(&recording).iter().any(|s| s.pid == Some(pid)), "{stderr}");
    let maps = recording.records.iter().filter_map(|r| match r {
        Record::Map { mapping, .. } => Some(mapping.pid),
        _ => None,
    });
    let pids: BTreeSet<u32> = maps.collect();
    assert!(pids.contains(&pid) && pids.len() > 2, "{pids:?}");
}

/// Nodes are those of Skylake's table: what this machine's has is another matter.
#[test]
fn what_cannot_be_sampled_is_refused() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = session(&folder);
    for (options, command, status, word) in [
        (&["-e", "cpu-clok"][..], "true", 2, "did you mean `cpu-clock`"),
        (&["-e", "cpu-clock:z"], "true", 2, "cpu-clock:z"),
        (&["--uarch", "skx", "--node", "Memory_Bond"], "true", 2, "Memory_Bound"),
        (&["-e", "cpu-clock:u"], "./no-such-program", 127, "./no-such-program"),
    ] {
        let recorded = record(&session, options, &shell(command));
        assert_eq!(recorded.code(), Some(status), "{options:?}: {}", recorded.stderr);
        assert!(recorded.stderr.contains(word), "{options:?}: {}", recorded.stderr);
    }
    let has_pmu = Machine::detect().core_pmus().next().is_some();
    need!(!has_pmu, "this machine has a core PMU; the rest is about those without");
    let recorded = record(&session, &["-e", "cycles"], &shell("true"));
    assert_eq!(recorded.code(), Some(3), "{}", recorded.stderr);
    for (option, instead) in [("--branches", "count --branches"), ("--loads=30", "count --loads")] {
        let recorded = record(&session, &[option], &shell("true"));
        assert_eq!(recorded.code(), Some(3), "{}", recorded.stderr);
        assert!(recorded.stderr.contains("no core PMU"), "{}", recorded.stderr);
        assert!(recorded.stderr.contains(instead), "{}", recorded.stderr);
    }
    let nodes = ["--uarch", "skx", "--node", "Memory_Bound", "--node", "Frontend_Bound"];
    let recorded = record(&session, &nodes, &shell(&iterations(20_000))).succeeded();
    for word in ["sampled on cpu-clock", "Memory_Bound", "no core PMU"] {
        assert!(recorded.stderr.contains(word), "{}", recorded.stderr);
    }
}
