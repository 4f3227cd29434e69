//! Counts groups of events one after the other, each in separate runs.

use super::group::Counting;
use super::sample::{Runs, Sample, Stop, sample, uncontended};
use tma::Result;

/// Tries per accepted repetition.
const TRIES: usize = 4;

/// Repetitions of a group.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Repetitions of each group.
    pub repetitions: usize,
    /// Whether repetitions with contention are rejected.
    pub sentinel: bool,
}

/// Counts groups one after the other.
pub(super) struct Counter<'a> {
    pub(super) runs: &'a mut dyn Runs,
    pub(super) counting: &'a mut dyn Counting,
    pub(super) effort: Effort,
}

impl Counter<'_> {
    /// Repetitions of one group, cycling through the placements; the accepted ones.
    pub(super) fn group(
        &mut self,
        events: &[pmu::machine::Encoding],
    ) -> Result<std::result::Result<Vec<Sample>, Stop>> {
        let process = self.runs.process()?;
        if let Err(refused) = self.counting.open(process, events) {
            return Ok(Err(Stop::Refused(refused)));
        }
        let taken = self.repetitions();
        self.counting.close();
        let samples = match taken? {
            Ok(samples) => samples,
            Err(stop) => return Ok(Err(stop)),
        };
        if samples.iter().all(|s| !s.whole) {
            return Ok(Err(Stop::Starved));
        }
        let uncontended = uncontended(&samples, self.effort.sentinel);
        let quiet: Vec<Sample> =
            samples.into_iter().zip(uncontended).filter(|(_, ok)| *ok).map(|(s, _)| s).collect();
        let few = |samples: &[Sample]| samples.len() < 2;
        if few(&quiet) {
            return Ok(Err(Stop::Contended));
        }
        let kept: Vec<Sample> = quiet.into_iter().filter(Sample::is_sound).collect();
        Ok(if few(&kept) { Err(Stop::Noise) } else { Ok(kept) })
    }

    fn repetitions(&mut self) -> Result<std::result::Result<Vec<Sample>, Stop>> {
        let wanted = self.effort.repetitions.max(2);
        let mut samples: Vec<Sample> = Vec::new();
        for attempt in 0..wanted * TRIES {
            let placement = attempt % self.runs.placements().max(1);
            match sample(self.runs, self.counting, placement)? {
                Ok(sample) => samples.push(sample),
                Err(stop) => return Ok(Err(stop)),
            }
            let starved = samples.len() >= 2 && samples.iter().all(|s| !s.whole);
            let good = samples.iter().zip(uncontended(&samples, self.effort.sentinel));
            if starved || good.filter(|(s, c)| s.is_sound() && *c).count() >= wanted {
                break;
            }
        }
        Ok(Ok(samples))
    }
}
