//! What is known of the core that a question is about: its description, and its latencies.

use isa::latency::{Calibration, Identity, Latencies};
use pmu::machine::Machine;
use std::path::Path;
use std::sync::Arc;
use tma::tables::Library;
use tma::{Core, Result};

/// The core, built once for a command and passed down.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its description.
    pub core: Arc<Core>,
    /// How long its instructions take: measured here, else shipped, else assumed.
    pub latencies: Latencies,
    /// What a document says about both: facts that are not known, a calibration that does not fit.
    pub notes: Vec<String>,
}

impl Known {
    /// The core of `machine` by the table that describes it, or by the one that the user `forced`;
    /// `cache` is the user's cache directory, where calibrations lie.
    ///
    /// # Errors
    /// No table has the forced name; a table or its latencies cannot be read.
    pub fn new(
        machine: &Machine,
        library: &Library,
        forced: Option<&str>,
        cache: Option<&Path>,
    ) -> Result<Self> {
        let core = Arc::new(machine.core(library, forced)?);
        let mut notes = Vec::new();
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

/// With what was measured on this very machine, where that is.
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
