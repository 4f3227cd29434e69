//! perf.data files as perf writes them, whole and damaged.
//!
//! Expected figures are those of the projects that the recordings come from (quipper, gematria,
//! autofdo), or what the system's perf prints of the same file. The recordings are not part of the
//! project: tests on them are skipped, aloud, where `../shared` is absent.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tdtool::profile::perfdata::{parse, read};
use tdtool::profile::record::Record;
use tdtool::profile::recording::Recording;
use tdtool::profile::sample::{Branch, Sample};

#[path = "fuzz/recordings.rs"]
mod recordings;

/// A file of `../shared/recordings`; `None`, said aloud, if it is not here.
fn shared(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/recordings");
    let path = folder.join(name);
    if !path.exists() {
        eprintln!("skipped: ../shared/recordings/{name} is not here");
        return None;
    }
    Some(path)
}

fn samples(recording: &Recording) -> Vec<&Sample> {
    let sample = |record| match record {
        &Record::Sample { ref sample, .. } => Some(&**sample),
        _ => None,
    };
    recording.records.iter().filter_map(sample).collect()
}

fn branches(recording: &Recording) -> Vec<Branch> {
    samples(recording).iter().flat_map(|s| s.branches.iter().copied()).collect()
}

#[test]
fn sampled_loads_have_their_latency_and_where_the_data_came_from() {
    let Some(path) = shared("quipper/perf.data.weight_struct") else { return };
    let recording = read(&path).unwrap();
    let samples = samples(&recording);
    assert_eq!(samples.len(), 14);
    // PERF_MEM_LVL_*, 14 bits from bit 5: LFB 0x10, L1 0x08, L2 0x20, L3 0x40.
    let from = |level| samples.iter().filter(|s| s.data_source.unwrap() >> 5 & level != 0).count();
    assert_eq!([0x10, 0x08, 0x20, 0x40].map(from), [5, 4, 1, 4], "LFB, L1, L2, L3");
    assert_eq!(samples[0].weight.unwrap().total, 225);
    assert_eq!(samples[0].data_source, Some(0x118_6810_0242));
    assert!(samples.iter().all(|s| s.unread == 0 && s.addr.is_some()));
    // The recording is of ldlat=64.
    assert!(samples.iter().all(|s| s.weight.unwrap().total >= 64));
    assert_eq!(recording.notes, [""; 0]);
}

#[test]
fn last_branches_have_cycles_where_the_processor_counts_them() {
    let Some(path) = shared("quipper/perf.data.branch-4.14") else { return };
    let recording = read(&path).unwrap();
    let all = branches(&recording);
    let timed = all.iter().filter(|b| b.cycles.is_some_and(|c| c > 0)).count();
    assert_eq!((timed, all.len()), (386, 416));
}

#[test]
fn a_recording_that_perf_of_debian_12_refuses_is_read() {
    let Some(path) = shared("gematria/simple_x86_elf_object.perf.data") else { return };
    let recording = read(&path).unwrap();
    assert_eq!((samples(&recording).len(), branches(&recording).len()), (32, 641));
    assert!(recording.kernel.as_deref().unwrap().starts_with("6.10"), "{:?}", recording.kernel);
}

#[test]
fn branches_of_a_whole_program_lead_back_and_forth() {
    let Some(path) = shared("autofdo/propeller_sample_1.perfdata1") else { return };
    let recording = read(&path).unwrap();
    let id = recording.build_ids.iter().find(|(path, _)| path.ends_with("propeller_sample_1.bin"));
    eprintln!("{:?} {} {}", id, samples(&recording).len(), branches(&recording).len());
}

#[test]
fn zz_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/recordings");
    for folder in std::fs::read_dir(folder).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            match read(&path) {
                Ok(r) => {
                    let s = samples(&r);
                    let mut kinds = std::collections::BTreeMap::new();
                    for rec in &r.records { *kinds.entry(format!("{:?}", rec).split([' ', '(']).next().unwrap().to_owned()).or_insert(0) += 1; }
                    eprintln!("{path:?}: {} samples {} branches {} timed, lost {} events {:?}", s.len(), branches(&r).len(), branches(&r).iter().filter(|b| b.cycles.is_some_and(|c| c > 0)).count(), r.lost, r.events.iter().map(|e| (e.name.clone(), e.ids.len(), e.precise)).collect::<Vec<_>>());
                    eprintln!("   {kinds:?} {:?} {:?} {:?} {:?} {:?} ids {}", r.architecture, r.kernel, r.processor, r.host, r.command, r.build_ids.len());
                    eprintln!("   {:?}", r.notes);
                    let unsorted = s.windows(2).filter(|w| w[0].time > w[1].time).count();
                    eprintln!("   unsorted {unsorted} exact {}", s.iter().filter(|s| s.exact).count());
                }
                Err(e) => eprintln!("{path:?}: {e:?}"),
            }
        }
    }
}
