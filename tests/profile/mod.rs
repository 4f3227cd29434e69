//! Recordings of samples: perf.data files, address maps, symbols and source lines.

mod binutils;
mod caches;
mod cut_off;
mod damage;
#[cfg(feature = "debuginfod")]
mod debuginfod;
mod go;
mod jit;
pub mod large;
pub mod made;
mod modules;
#[cfg(target_arch = "x86_64")]
mod perf;
mod perf_data;
mod split;
mod symbols;

use profile::record::Record;
use profile::recording::Recording;
use profile::sample::Sample;

/// All samples.
pub fn samples(recording: &Recording) -> Vec<&Sample> {
    let of = recording.records.iter().filter_map(|record| match record {
        Record::Sample { sample, .. } => Some(sample),
        _ => None,
    });
    of.collect()
}

/// How many samples each event has.
pub fn by_event(recording: &Recording) -> Vec<usize> {
    let mut counts = vec![0; recording.events.len()];
    for record in &recording.records {
        if let Record::Sample { event, .. } = record {
            counts[*event] += 1;
        }
    }
    counts
}
