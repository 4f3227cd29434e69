//! The core that a measurement or analysis is about: its description and its latencies.

use crate::measured;
use isa::latency::{Calibration, Identity, Latencies};
use std::path::Path;
use std::sync::Arc;
use tma::{Core, Result};

/// A core with its latencies, built once for a command and passed down.
#[derive(Debug, Clone)]
pub struct CoreModel {
    /// Its description.
    pub core: Arc<Core>,
    /// How long its instructions take: measured here, else shipped, else assumed.
    pub latencies: Latencies,
    /// What a document notes about both: a table of another processor, facts that are not known, a
    /// calibration that was ignored.
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
        let mut notes = notes(&core);
        let shipped = Latencies::new(&core)?;
        let latencies = match cache {
            Some(cache) => {
                let place = Calibration::path(cache, core.name());
                calibrated(shipped, &place, &Identity::of(&core), &mut notes)
            }
            None => shipped,
        };
        Ok(Self { core, latencies, notes })
    }
}

/// What every document about `core` notes: a table of another processor, facts that are not known.
pub fn notes(core: &Core) -> Vec<String> {
    let (latencies, others): (Vec<_>, Vec<_>) =
        core.missing().into_iter().partition(|fact| *fact == LATENCIES);
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
    if let (false, Some(table)) = (latencies.is_empty(), &table) {
        notes.push(format!("{table} {NO_LATENCIES}"));
    }
    match &table {
        _ if others.is_empty() => {}
        Some(table) => notes.push(format!("{table} does not state: {}", others.join(", "))),
        None if core.shared.is_some() => {
            notes.push(format!("these are unknown: {}", others.join(", ")));
        }
        None => {
            let unknown = core.missing().join(", ");
            notes.push(format!(
                "no table describes this processor, so these are unknown: {unknown}; `tdtool doctor --measure` \
                 measures what can be"
            ));
        }
    }
    notes
}

/// How the facts of a table call its latencies.
const LATENCIES: &str = "latencies";

/// The end of the note where a table has no latencies.
const NO_LATENCIES: &str =
    "has no latencies: assumed ranges are used; `tdtool microbench --calibrate` measures them";

/// With what was measured on this machine, if its calibration exists.
fn calibrated(
    shipped: Latencies,
    place: &Path,
    machine: &Identity,
    notes: &mut Vec<String>,
) -> Latencies {
    if !place.is_file() {
        return shipped;
    }
    match Calibration::load(place) {
        Ok(found) if found.machine == *machine => {
            notes.retain(|note| !note.ends_with(NO_LATENCIES));
            shipped.with(found)
        }
        Ok(_) => {
            notes.push(format!("{} ignored: calibrated on another machine", place.display()));
            shipped
        }
        Err(error) => {
            notes.push(format!("calibration ignored: {error}"));
            shipped
        }
    }
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
