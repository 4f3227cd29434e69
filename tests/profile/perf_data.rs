//! perf.data files as perf writes them.
//!
//! Expected figures are those of the projects that the recordings come from (quipper, gematria,
//! autofdo), or what the system's perf (6.1) says of the same file. The recordings are not part of
//! the project: tests on them are skipped, with a message, where `../shared` is absent.

use super::{by_event, samples};
use crate::support::files::shared;
use profile::perfdata::{parse, read};
use profile::record::Record;
use profile::recording::Recording;
use profile::sample::Branch;
use std::path::{Path, PathBuf};

/// A recording of `../shared`.
fn recording(name: &str) -> Option<PathBuf> {
    shared(&format!("recordings/{name}"))
}

fn branches(recording: &Recording) -> Vec<Branch> {
    samples(recording).iter().flat_map(|s| s.branches.iter().copied()).collect()
}

#[test]
fn sampled_loads_have_their_latency_and_where_the_data_came_from() {
    let Some(path) = recording("quipper/perf.data.weight_struct") else { return };
    let recording = read(&path).unwrap();
    let samples = samples(&recording);
    assert_eq!(samples.len(), 14);
    // PERF_MEM_LVL_*, 14 bits from bit 5: LFB 0x10, L1 0x08, L2 0x20, L3 0x40.
    let from = |level| samples.iter().filter(|s| s.data_source.unwrap() >> 5 & level != 0).count();
    assert_eq!([0x10, 0x08, 0x20, 0x40].map(from), [5, 4, 1, 4], "LFB, L1, L2, L3");
    assert_eq!(samples[0].weight.unwrap().total, 225);
    assert_eq!(samples[0].data_source, Some(0x118_6810_0242));
    assert!(samples.iter().all(|s| s.unread == 0 && s.addr.is_some() && s.exact));
    assert!(samples.iter().all(|s| s.weight.unwrap().total >= 64), "recorded with ldlat=64");
}

#[test]
fn last_branches_have_cycles_where_the_processor_counts_them() {
    let Some(path) = recording("quipper/perf.data.branch-4.14") else { return };
    let all = branches(&read(&path).unwrap());
    let timed = all.iter().filter(|b| b.cycles.is_some_and(|c| c > 0)).count();
    assert_eq!((timed, all.len()), (386, 416));
    let Some(path) = recording("quipper/perf.data.branch_stack_spec") else { return };
    let all = branches(&read(&path).unwrap());
    assert!(all.iter().all(|b| b.cycles.is_none()), "AMD's branch records have no cycles");
    assert!(all.iter().any(|b| b.mispredicted == Some(false)));
}

#[test]
fn a_recording_that_an_older_perf_refuses_is_read() {
    let Some(path) = recording("gematria/simple_x86_elf_object.perf.data") else { return };
    let recording = read(&path).unwrap();
    assert_eq!((samples(&recording).len(), branches(&recording).len()), (32, 641));
    let names: Vec<_> = recording.events.iter().map(|e| &e.name[..]).collect();
    assert_eq!(names, ["cycles:u", "instructions:u", "r20d1:pppu"]);
    assert_eq!(recording.kernel.as_deref(), Some("6.10.6-arch1-1"));
}

#[test]
fn the_branches_of_a_profile_for_an_optimising_linker_are_all_there() {
    let Some(path) = recording("autofdo/propeller_sample_1.perfdata1") else { return };
    let recording = read(&path).unwrap();
    assert_eq!(samples(&recording).len(), 3740);
    // What autofdo calls aggregated branches are all entries of all stacks, taken as one.
    assert_eq!(branches(&recording).len(), 119_424);
    let id: Vec<u8> = recording
        .build_ids
        .iter()
        .filter(|(path, _)| path.contains("propeller_sample_1.bin"))
        .flat_map(|(_, id)| id[..4].to_vec())
        .collect();
    assert_eq!(id, [0x57, 0x2a, 0xc7, 0x24]);
    assert_eq!(recording.architecture.as_deref(), Some("x86_64"));
}

#[test]
fn every_recording_opens_with_as_many_samples_as_perf_finds_in_it() {
    // `perf report --stats`; of gematria's, which perf 6.1 refuses, the samples' ids, counted by a
    // script.
    for (name, counts, maps, lost) in [
        ("quipper/perf.data.branch-4.14", &[13][..], 31, 0),
        ("quipper/perf.data.branch_stack_spec", &[8], 30, 0),
        ("quipper/perf.data.group_desc-4.14", &[7, 6], 31, 0),
        ("quipper/perf.data.hybrid_topology", &[7, 0, 0], 107, 0),
        ("quipper/perf.data.lost_samples-4.4", &[97, 80, 14], 45, 2),
        ("quipper/perf.data.weight_struct", &[14, 0], 6945, 0),
        ("autofdo/propeller_sample_1.perfdata1", &[3740], 4, 0),
        ("gematria/simple_x86_elf_object.perf.data", &[16, 16, 0], 7, 0),
    ] {
        let Some(path) = recording(name) else { continue };
        let recording = read(&path).unwrap();
        assert_eq!(by_event(&recording), counts, "{name}");
        let mapped = recording.records.iter().filter(|r| matches!(r, Record::Map { .. })).count();
        assert_eq!((mapped, recording.lost), (maps, lost), "{name}");
        assert_eq!(recording.notes, [""; 0], "{name}");
        let times: Vec<_> = samples(&recording).iter().map(|s| s.time).collect();
        assert!(times.is_sorted(), "{name}");
    }
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    for (name, cause) in [
        ("quipper/perf.data.piped.corrupted.zero_size_sample-3.2", "at byte 49104"),
        ("autofdo/propeller_sample_1.bin", "does not begin as"),
        ("llvm-profgen/noprobe.perfscript", "does not begin as"),
        ("perf-stat/zen4-pipeline.csv", "does not begin as"),
    ] {
        let Some(path) = recording(name) else { continue };
        let error = read(&path).unwrap_err();
        assert!(error.cause().is_some_and(|c| c.contains(cause)), "{name}: {error}");
        assert!(error.what().contains(name), "{error}");
    }
    let nowhere = read(Path::new("/nowhere/perf.data")).unwrap_err();
    assert!(nowhere.what().contains("/nowhere/perf.data"), "{nowhere}");
    // The first file of `perf record --threads` in a folder.
    let folder = read(Path::new("/")).unwrap_err();
    assert!(folder.what().contains("/data"), "{folder}");
    let turned = parse(b"2ELIFREP\0\0\0\0\0\0\0\x68", "ppc").unwrap_err();
    assert!(turned.cause().is_some_and(|c| c.contains("big-endian")), "{turned}");
}
