//! Recordings of several events: the share of each event in a function, block or instruction.

use super::Profile;
use super::functions::{ByEvent, added};
use super::tally::{HotFunction, Tally, half_width};
use std::ops::Range;

/// The share of one event's samples in some code.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EventShare {
    /// Index of the event.
    pub event: usize,
    /// Share of the event's samples, 0 to 1.
    pub share: f64,
    /// Half width of its 95 % interval, if samples are independent of one another.
    pub error: f64,
    /// Samples.
    pub samples: u64,
}

impl ByEvent {
    fn share(&self, event: usize, tally: Tally) -> EventShare {
        let all = self.totals.get(event).copied().unwrap_or_default();
        let share = if all.weight > 0.0 { tally.weight / all.weight } else { 0.0 };
        EventShare {
            event,
            share,
            error: half_width(share, all.effective()),
            samples: tally.samples,
        }
    }

    /// The event with the largest share in each function; samples of different events cannot be added up.
    pub(super) fn dominant(&self) -> Vec<Option<(usize, f64)>> {
        if self.totals.is_empty() {
            return Vec::new();
        }
        let largest = |events: &Vec<Vec<(u64, Tally)>>| {
            let shares = events.iter().enumerate().map(|(event, places)| {
                self.share(event, added(places.iter().map(|(_, tally)| tally)))
            });
            let mut best: Option<(usize, f64)> = None;
            for found in shares.filter(|found| found.share > 0.0) {
                if best.is_none_or(|(_, share)| found.share > share) {
                    best = Some((found.event, found.share));
                }
            }
            best
        };
        self.functions.iter().map(largest).collect()
    }
}

impl Profile {
    /// Share of each event in address ranges of a function, for a recording of several events.
    pub fn event_shares(&self, function: usize, ranges: &[Range<u64>]) -> Vec<EventShare> {
        let Some(events) = self.events_of.functions.get(function) else { return Vec::new() };
        let share = |(event, places): (usize, &Vec<(u64, Tally)>)| {
            let inside = ranges.iter().flat_map(|range| {
                let from = places.partition_point(|(address, _)| *address < range.start);
                places[from..].iter().take_while(|(address, _)| *address < range.end)
            });
            self.events_of.share(event, added(inside.map(|(_, tally)| tally)))
        };
        events.iter().enumerate().map(share).collect()
    }

    /// The functions with the largest shares of an event, the largest first.
    pub fn by_event(&self, event: usize, most: usize) -> Vec<(&HotFunction, EventShare)> {
        let own = self.functions.iter().zip(&self.events_of.functions).map(|(function, events)| {
            let places = events.get(event).into_iter().flatten();
            (function, added(places.map(|(_, tally)| tally)))
        });
        let others = self.events_of.others.iter();
        let others = others.filter_map(|(f, tallies)| Some((f, *tallies.get(event)?)));
        let mut all: Vec<(&HotFunction, EventShare)> =
            own.chain(others).map(|(f, tally)| (f, self.events_of.share(event, tally))).collect();
        all.retain(|(_, share)| share.samples > 0);
        all.sort_by(|(f, a), (g, b)| b.share.total_cmp(&a.share).then_with(|| f.name.cmp(&g.name)));
        all.truncate(most);
        all
    }

    /// The event whose samples are of time: cycles or a clock.
    pub fn time_event(&self) -> Option<usize> {
        let is_time = |name: &&String| {
            let name = name.to_lowercase();
            ["cycles", "cpu-clock", "task-clock", "cpu_clk_unhalted"]
                .iter()
                .any(|t| name.strip_prefix("cpu/").unwrap_or(&name).starts_with(t))
        };
        self.events.iter().position(|name| is_time(&name))
    }

    /// Samples of each event, for a recording of several events.
    pub fn event_samples(&self) -> Vec<u64> {
        self.events_of.totals.iter().map(|tally| tally.samples).collect()
    }
}
