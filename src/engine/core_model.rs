//! The core that a measurement or analysis is about: its description and its latencies.

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
        let mut notes = notes(&core);
        let shipped = Latencies::new(&core)?;
        let latencies = match (core.uarch(), cache) {
            (Some(uarch), Some(cache)) => {
                let place = Calibration::path(cache, uarch);
                calibrated(shipped, &place, &Identity::of(uarch, &core.cpu), &mut notes)
            }
            _ => shipped,
        };
        Ok(Self { core, latencies, notes })
    }
}

/// What every document about `core` notes: a table of another processor, facts that are not known.
pub fn notes(core: &Core) -> Vec<String> {
    let missing = core.missing();
    let about = match core.uarch() {
        Some(table) => format!("table {table} does not state"),
        None => "no table describes this processor, so these are unknown".to_owned(),
    };
    let missing = (!missing.is_empty()).then(|| format!("{about}: {}", missing.join(", ")));
    core.warning().into_iter().chain(missing).collect()
}

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
        Ok(found) if found.machine == *machine => shipped.with(found),
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
        assert_eq!(notes(&core), ["table zen3 does not state: nop fusion, store aliasing"]);
        core.foreign = true;
        assert!(notes(&core)[0].contains("does not describe this processor"));
        let paper = notes(&Core::modelled(&events::library(), "paper").unwrap());
        assert!(paper[0].starts_with("table paper does not state: "), "{paper:?}");
    }
}
