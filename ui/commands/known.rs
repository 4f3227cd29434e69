//! What is known of a processor's latencies: shipped, and measured on this machine.

use crate::cli::Global;
use isa::latency::{Calibration, Identity, Latencies};
use pmu::machine::{self, Machine};
use tma::Result;
use tma::tables::Library;

/// The microarchitecture and its latencies.
pub struct Known {
    /// Name of its event table.
    pub uarch: Option<String>,
    /// How long its instructions take.
    pub latencies: Latencies,
}

impl Known {
    /// That of `--uarch`, else this machine's; `notes` tells of a calibration that is not used.
    pub fn find(global: &Global, notes: &mut Vec<String>) -> Result<Self> {
        Self::of(&global.library()?, global.uarch.as_deref(), notes)
    }

    /// The same for the table `forced` of `library`, else this machine's.
    pub fn of(library: &Library, forced: Option<&str>, notes: &mut Vec<String>) -> Result<Self> {
        let machine = Machine::detect();
        let tables = machine::choose(&machine, library, forced)?;
        let uarch = tables.into_iter().next().map(|t| t.table);
        let latencies = latencies(uarch.as_deref(), &machine, notes);
        Ok(Self { uarch, latencies })
    }
}

/// The shipped latencies; where this machine is of the microarchitecture and was calibrated, what
/// was measured comes first.
fn latencies(uarch: Option<&str>, machine: &Machine, notes: &mut Vec<String>) -> Latencies {
    let shipped = Latencies::of(uarch);
    let (Some(uarch), Some(cache)) = (uarch, super::cache_folder()) else { return shipped };
    let place = Calibration::place(&cache, uarch);
    if !place.is_file() {
        return shipped;
    }
    match Calibration::load(&place) {
        Ok(found) if found.machine == Identity::of(uarch, &machine.cpu) => shipped.with(found),
        Ok(_) => {
            notes.push(format!("{} is of another machine: not used", place.display()));
            shipped
        }
        Err(error) => {
            notes.push(format!("{error}: not used"));
            shipped
        }
    }
}
