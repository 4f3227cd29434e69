//! Counted events: group × interval × scope, scaled once and never again.
//!
//! Live collection and imports both end here; the top-down evaluation starts here. Values stay in the group they were
//! counted in, because a ratio's terms belong to one group.
//!
//! ```
//! use tma::counts::{GroupCounts, Reading};
//! use tma::quantity::Missing;
//!
//! // Multiplexed: 10 events in the 25 of 100 ns that the group had counters; 40 in all.
//! let group = |running, counted| GroupCounts::Live {
//!     events: vec![0],
//!     readings: vec![Reading { enabled: 100, running, values: vec![counted] }],
//!     enabled: 100,
//! };
//! assert_eq!(group(25, 10).total(0), Ok(40.0));
//! assert_eq!(group(25, 10).running_share(), Some(0.25));
//! // A group that never ran has no count; that is not a count of 0.
//! assert!(matches!(group(0, 0).total(0), Err(Missing::NotCounted(_))));
//! ```

use crate::quantity::Missing;
use crate::tables::EventId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One reading of a group: what came in since the previous one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Nanoseconds the group was enabled.
    pub enabled: u64,
    /// Nanoseconds the group really counted.
    pub running: u64,
    /// Raw (unscaled) counts, in the order of the group's events.
    pub values: Vec<u64>,
}

/// How a group's counts are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum GroupCounts {
    /// Counted live: raw readings, scaled by enabled/running here.
    Live {
        /// Events of the group.
        events: Vec<EventId>,
        /// Successive readings, oldest first. Readings with `running == 0` are dropped.
        readings: Vec<Reading>,
        /// Nanoseconds enabled in all, readings dropped for `running == 0` included. On hybrids
        /// the running time of the reference on this kind of core.
        enabled: u64,
    },
    /// Imported: already scaled by the recording tool.
    Imported {
        /// Event and its scaled count, or why it is missing.
        events: Vec<(EventId, Result<f64, Missing>)>,
        /// Share of the enabled time the group ran (0..=1), if the recording has it.
        running: Option<f64>,
        /// The scaled counts of each recorded interval, in the order of `events`, where the
        /// totals are sums over intervals and every interval has all of them; else empty.
        #[serde(default)]
        intervals: Vec<Vec<f64>>,
    },
    /// Never counted at all, and why.
    Missing {
        /// Events of the group.
        events: Vec<EventId>,
        /// Why.
        why: Missing,
    },
}

impl GroupCounts {
    /// The group's events, in order.
    pub fn events(&self) -> impl Iterator<Item = EventId> + '_ {
        let (own, imported) = match self {
            GroupCounts::Live { events, .. } | GroupCounts::Missing { events, .. } => {
                (events.as_slice(), [].as_slice())
            }
            GroupCounts::Imported { events, .. } => ([].as_slice(), events.as_slice()),
        };
        own.iter().copied().chain(imported.iter().map(|(e, _)| *e))
    }

    /// Whether any of its events has a count.
    pub fn has_counts(&self) -> bool {
        match self {
            GroupCounts::Live { events, readings, .. } => {
                !events.is_empty() && readings.iter().any(|reading| reading.running > 0)
            }
            GroupCounts::Imported { events, .. } => events.iter().any(|(_, count)| count.is_ok()),
            GroupCounts::Missing { .. } => false,
        }
    }

    /// Scaled count of the event at `index`, or why it is missing.
    pub fn total(&self, index: usize) -> Result<f64, Missing> {
        match self {
            GroupCounts::Live { readings, enabled, .. } => {
                // Sums in 128 bits: a file may hold anything.
                let (running, value) = readings.iter().fold((0u128, 0u128), |(r, v), reading| {
                    let value = reading.values.get(index).copied().unwrap_or(0);
                    (r + u128::from(reading.running), v + u128::from(value))
                });
                if running == 0 {
                    return Err(Missing::NotCounted("its group".into()));
                }
                Ok(value as f64 * (*enabled as f64 / running as f64))
            }
            GroupCounts::Imported { events, .. } => match events.get(index) {
                Some((_, value)) => value.clone(),
                None => Err(Missing::NotMeasured("no such event in the group".into())),
            },
            GroupCounts::Missing { why, .. } => Err(why.clone()),
        }
    }

    /// Share of the enabled time the group ran (0..=1), where it is known.
    pub fn running_share(&self) -> Option<f64> {
        match self {
            GroupCounts::Live { readings, enabled, .. } => {
                let running: u128 = readings.iter().map(|r| u128::from(r.running)).sum();
                (*enabled > 0).then(|| (running as f64 / *enabled as f64).min(1.0))
            }
            GroupCounts::Imported { running, .. } => *running,
            GroupCounts::Missing { .. } => None,
        }
    }
}

/// Counts of one table's events over one interval, for one scope and one kind of core.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Kind of core on hybrids: the table's name (`adl`, `adl-e`); `None` elsewhere.
    pub core: Option<String>,
    /// `cpu3`, `core0`, `socket1`, `tid 4711`, a cgroup; `None` for the whole measurement.
    pub scope: Option<String>,
    /// Begin and end since the start of the measurement; `None` for the whole of it.
    pub interval: Option<(Duration, Duration)>,
    /// All groups.
    pub groups: Vec<GroupCounts>,
    /// Values of [`crate::tables::Const`] that are known, by index.
    pub constants: [Option<f64>; 5],
    /// Facts about these counts that the report must say, e.g. "user mode only".
    pub notes: Vec<String>,
}
