//! The repeated readings of a group.

use crate::counts::GroupCounts;
use crate::tables::EventId;

/// Fewest readings of a group that give an error.
pub const MIN_READINGS: usize = 8;
/// Nanoseconds of a time slice of the kernel's multiplexing (PERF_CPU_HRTIMER in kernel/events/core.c).
const SLICE: f64 = 4e6;

/// The repeated readings of one group, however it is known.
pub(super) struct Readings {
    pub events: Vec<EventId>,
    /// Sums over all readings, by event.
    pub sums: Vec<f64>,
    /// Running time of each reading (live), or 1 each (imported intervals).
    pub weights: Vec<f64>,
    /// Counts by reading and event, in the unit of `sums`.
    pub values: Vec<Vec<f64>>,
    /// Scaled total = sum × `enabled` / sum of weights.
    pub enabled: f64,
    /// Share of the time it ran.
    pub share: f64,
    /// Number of observations of the program: time slices, at least one a reading.
    pub looks: f64,
}

impl Readings {
    pub(super) fn of(group: &GroupCounts) -> Option<Self> {
        match group {
            // The reading of an interval: nothing to compare.
            GroupCounts::Live { readings, .. } if readings.len() < MIN_READINGS => None,
            GroupCounts::Live { events, readings, enabled } => {
                let weights: Vec<f64> = readings.iter().map(|r| r.running as f64).collect();
                let values = readings.iter().map(|r| r.values.iter().map(|v| *v as f64).collect());
                let share = group.running_share().unwrap_or(1.0);
                let looks = weights.iter().sum::<f64>() / SLICE;
                Self::new(events.clone(), weights, values.collect(), *enabled as f64, share, looks)
            }
            GroupCounts::Imported { events, running, intervals } => {
                let events = events.iter().map(|(e, _)| *e).collect();
                let n = intervals.len();
                let share = running.unwrap_or(0.0);
                Self::new(events, vec![1.0; n], intervals.clone(), n as f64, share, n as f64)
            }
            GroupCounts::Missing { .. } => None,
        }
    }

    fn new(
        events: Vec<EventId>,
        weights: Vec<f64>,
        values: Vec<Vec<f64>>,
        enabled: f64,
        share: f64,
        looks: f64,
    ) -> Option<Self> {
        let complete = values.iter().all(|v| v.len() == events.len());
        if values.len() < MIN_READINGS || !complete {
            return None;
        }
        let sums = (0..events.len()).map(|i| values.iter().map(|v| v[i]).sum()).collect();
        let looks = looks.max(values.len() as f64);
        Some(Self { events, sums, weights, values, enabled, share, looks })
    }

    /// How much of the spread between readings is an error of the total. All of it where a group ran
    /// half of the time or less; a group that ran all the time counted everything. (Cochran's finite
    /// population correction, 1 - share, holds for readings drawn at random from many unlike ones; where
    /// each has seen a part of much the same it is twice too small at a share of one half.)
    pub(super) fn unseen(&self) -> f64 {
        (2.0 * (1.0 - self.share)).clamp(0.0, 1.0)
    }
}
