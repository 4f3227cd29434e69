//! Recorded iterations and samples of loads, or counts and fenced latencies by probes → prefetch advice.
//!
//! | file | concern |
//! |---|---|
//! | `candidates` | the loads that are analysed, with the code around them |
//! | `probed` | counts and latencies by probes → advice, without a PMU |
//! | `in_flight` | how many misses this host keeps in flight |
//! | `served` | the levels that serve a load |
//! | `pace` | what bounds a loop whose misses are prefetched |
//! | `rows` | advice as rows of the document |

mod candidates;
mod in_flight;
mod pace;
mod probed;
mod rows;
mod served;

pub use candidates::NoCycles;
pub use in_flight::{HostMisses, misses_in_flight};
pub use probed::prefetch_by_probes;
pub use rows::{Cycles, Host, Measure};

use crate::hot::stream;
use crate::notes::{WithoutCode, add_new};
use candidates::Evidence;
use profile::files::SearchPaths;
use profile::module::Module;
use report::documents::prefetch::{Prefetch, SCHEMA};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tma::{Error, Result};

/// Advises on prefetches for the loads of recordings. Programs are searched in `search`; with `measure` and the name of this processor, blocks of
/// loops are measured where the recordings do not show iterations without misses.
///
/// # Errors
/// A recording cannot be read, or none has samples of loads or branch stacks.
pub fn prefetch(
    paths: &[PathBuf],
    search: &SearchPaths,
    measure: Option<(Measure<'_>, &str)>,
) -> Result<Prefetch> {
    let mut document = Prefetch { schema: SCHEMA.to_owned(), ..Prefetch::default() };
    let mut evidence = Evidence::default();
    let mut first = 0;
    let mut recorded = BTreeSet::new();
    for path in paths {
        let recording = stream(path, false)?.ok_or_else(|| {
            Error::failed(format!("{} has no samples", tma::files::name(path)))
                .because("it is neither perf.data nor a session with samples")
                .hint("record with `perf record -b` and `perf mem record`")
        })?;
        recorded.extend(recording.about.processor.clone());
        document.sources.push(recording.about.source.clone());
        document.notes.extend(recording.about.notes.clone());
        evidence.add(&recording, first, search)?;
        first += recording.about.events.len();
    }
    if evidence.events.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Error::failed(format!("nothing to advise on in {}", names.join(", ")))
            .because("no sample has a branch stack or the latency of a load")
            .hint("record with `perf record -b` and `perf mem record`, and give both files"));
    }
    evidence.finish();
    notes(&mut document, &evidence);
    let found = candidates::candidates(&mut evidence);
    let here = measure.as_ref().map(|(_, here)| (*here).to_owned());
    document.advice = rows::rows(found, &evidence, measure.map(|(measure, _)| measure));
    let measures = here.is_some();
    if let Some(here) = here.filter(|_| document.advice.iter().any(|row| row.ic_range.is_some())) {
        let recorded: Vec<String> = recorded.into_iter().collect();
        let recorded = match recorded.is_empty() {
            true => "a processor that they do not name".to_owned(),
            false => recorded.join(", "),
        };
        document.notes.push(format!(
            "measured IC is of this machine, {here}; MC and trips are of the recordings, of {recorded}"
        ));
    }
    remedies(&mut document, measures);
    without_code(&mut document, &evidence, search);
    document.events = evidence.events;
    Ok(document)
}

/// Adds the commands that would tell more.
fn remedies(document: &mut Prefetch, measures: bool) {
    let advised = || document.advice.iter().filter(|row| row.refused.is_none());
    let unknown = advised().filter(|row| row.ic.is_none()).count();
    if unknown > 0 && !measures {
        document.notes.push(format!(
            "distances of {unknown} loads are not known: `--measure` measures the loop here for an iteration \
             without misses"
        ));
    }
}

/// Says which code is not known, and why.
fn without_code(document: &mut Prefetch, evidence: &Evidence, search: &SearchPaths) {
    let mut missing = WithoutCode::default();
    let no_code = document.advice.iter().filter(|row| row.function.is_none() && row.without_code);
    no_code.for_each(|row| missing.add(&row.module, 1));
    let modules: Vec<Module> =
        evidence.codes.iter().flat_map(|code| code.modules.iter().cloned()).collect();
    let left_out = "its functions, lines and access patterns are left out, and nothing is decided";
    add_new(&mut document.notes, missing.notes(&modules, search, "load", "loads", left_out));
}

fn notes(document: &mut Prefetch, evidence: &Evidence) {
    let stacks = evidence.events.iter().any(|event| event.stacks > 0);
    let cycles = evidence.events.iter().any(|event| event.has_cycles == Some(true));
    let mut note = |text: &str| document.notes.push(text.to_owned());
    if evidence.loads.is_empty() {
        note(
            "no recording has samples of loads: no prefetch is advised without a sampled latency \
             (`perf mem record`)",
        );
    }
    if !stacks {
        note(
            "no recording has branch stacks: iterations and trips are not known (`perf record -b`)",
        );
    } else if !cycles {
        note("this LBR has no cycles: times of iterations, and so IC and distances, are not known");
    }
}
