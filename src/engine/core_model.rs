//! The core that a measurement or analysis is about: its description, its latencies, and the throughput and latency of
//! instruction forms measured on it.

use crate::measured;
use bench::microbench::{self, Bench, Connectors, Form, Measurement, Multiset};
use isa::latency::{Calibration, Identity, Latencies};
use report::documents::microbench::Document;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tma::tables::facts::FactName;
use tma::{Core, Error, Result};

/// A core with its latencies, built once for a command and passed down.
#[derive(Debug, Clone)]
pub struct CoreModel {
    /// Its description.
    pub core: Arc<Core>,
    /// How long its instructions take: measured here, else shipped, else assumed.
    pub latencies: Latencies,
    /// Notes on both: a table of another processor, unknown facts, a calibration that was ignored.
    pub notes: Vec<String>,
}

impl CoreModel {
    /// The latencies of `core`, and what is to be noted about both; `cache` is the user's cache
    /// folder, which holds calibrations.
    ///
    /// # Errors
    /// The file of latencies cannot be read.
    pub fn new(core: Arc<Core>, cache: Option<&Path>) -> Result<Self> {
        measured::load(&core, cache);
        let shipped = Latencies::new(&core)?;
        let calibration = cache.and_then(|cache| {
            calibration(&Calibration::path(cache, core.name()), &Identity::of(&core))
        });
        let mut notes = notes_of(&core, matches!(calibration, Some(Ok(_))));
        let latencies = match calibration {
            Some(Ok(found)) => shipped.with(found),
            Some(Err(why)) => {
                notes.push(why.to_string());
                shipped
            }
            None => shipped,
        };
        Ok(Self { core, latencies, notes })
    }
}

/// Notes of every document about `core`: a table of another processor, unknown facts.
pub fn notes(core: &Core) -> Vec<String> {
    notes_of(core, false)
}

/// [`notes`]; with a calibration, latencies are not reported as unknown.
fn notes_of(core: &Core, is_calibrated: bool) -> Vec<String> {
    let missing = core.missing();
    let (latencies, others): (Vec<_>, Vec<_>) =
        missing.iter().copied().partition(|fact| *fact == FactName::Latencies);
    let table = core.uarch().map(|name| format!("table {name}"));
    let mut notes: Vec<String> = core.warning().into_iter().chain(core.identity_note()).collect();
    if let (true, Some(width), Some(table)) = (core.foreign, core.width(), &table) {
        let of = match core.stated_width() == Some(width) {
            true => table.as_str(),
            false => "the self-test, which contradicts the table",
        };
        notes
            .push(format!("slots and issue width are those of {width} a cycle, the width of {of}"));
    }
    if let (false, false, Some(table)) = (latencies.is_empty(), is_calibrated, &table) {
        notes.push(format!(
            "{table} has no latencies: assumed ranges are used; `tdtool microbench --calibrate` measures them"
        ));
    }
    match &table {
        _ if others.is_empty() => {}
        Some(table) => notes.push(format!("{table} does not state: {}", words(&others))),
        None if core.shared.is_some() => {
            notes.push(format!("these are unknown: {}", words(&others)));
        }
        None => {
            let unknown = words(&missing);
            notes.push(format!(
                "no table describes this processor, so these are unknown: {unknown}; `tdtool doctor --measure` \
                 measures what can be"
            ));
        }
    }
    notes
}

/// The names of facts, in a row.
fn words(facts: &[FactName]) -> String {
    facts.iter().map(|fact| fact.word()).collect::<Vec<_>>().join(", ")
}

/// Why a calibration is ignored.
enum Ignored {
    /// It is of another machine.
    Foreign(PathBuf),
    /// It cannot be read.
    Unread(Error),
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(place) => {
                write!(f, "{} ignored: calibrated on another machine", place.display())
            }
            Self::Unread(error) => write!(f, "calibration ignored: {error}"),
        }
    }
}

/// Latencies measured on this machine, if its calibration exists.
fn calibration(
    place: &Path,
    machine: &Identity,
) -> Option<std::result::Result<Calibration, Ignored>> {
    if !place.is_file() {
        return None;
    }
    Some(match Calibration::load(place) {
        Ok(found) if found.machine == *machine => Ok(found),
        Ok(_) => Err(Ignored::Foreign(place.to_owned())),
        Err(error) => Err(Ignored::Unread(error)),
    })
}

fn document<T>(result: T, model: &CoreModel) -> Document<T> {
    Document::new(result, &model.core, model.notes.clone())
}

/// Measures the throughput of a multiset of instruction forms.
///
/// # Errors
/// No microbenchmark can be made of it, or the sandbox cannot be started.
pub fn throughput(
    bench: &mut Bench,
    model: &CoreModel,
    multiset: &Multiset,
) -> Result<Document<Measurement>> {
    Ok(document(microbench::measure(bench, multiset)?, model))
}

/// Measures the latency from each operand of a form to each result.
///
/// # Errors
/// The sandbox cannot be started.
pub fn latencies(
    bench: &mut Bench,
    model: &CoreModel,
    form: Form,
) -> Result<Document<microbench::Latencies>> {
    let measured = microbench::latencies(bench, &mut Connectors::default(), form)?;
    Ok(document(measured, model))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_name_the_missing_facts_and_a_table_of_another_processor() {
        let unknown = notes(&Core::default());
        assert!(unknown[0].starts_with("no table describes") && unknown[0].contains("issue width"));
        let mut core = Core::modelled(&events::library(), "zen3").unwrap();
        assert!(notes(&core).is_empty(), "{:?}", notes(&core));
        core.foreign = true;
        assert!(notes(&core)[0].contains("does not describe this processor"));
        let paper = notes(&Core::modelled(&events::library(), "paper").unwrap());
        assert!(paper[0].starts_with("table paper has no latencies: "), "{paper:?}");
        assert!(paper[1].starts_with("table paper does not state: "), "{paper:?}");
    }
}
