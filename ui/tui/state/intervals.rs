//! The intervals of a measurement over time: their values, phases, and the part that is in view; the history of
//! nodes and software counts.

use super::list::List;
use engine::phases;
use report::documents::report::Place;
use report::documents::report_parts::Phase;
use report::documents::series::{Interval, Series};
use report::documents::{NodeRow, Report};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Intervals that are kept; of a longer measurement the last ones.
const MOST: usize = 4096;

/// The screen.
#[derive(Debug, Default)]
pub struct Intervals {
    /// Level 1 and the software counts of each interval.
    kept: Vec<Report>,
    /// Intervals that are not kept any more.
    pub left_out: usize,
    /// Level 1, else software counts.
    pub series: Vec<Series>,
    pub phases: Vec<Phase>,
    /// The phases.
    pub list: List,
    /// Seconds in view; `None`: all.
    window: Option<Range<f64>>,
    /// Intervals from which the phases are looked for again.
    next: usize,
}

impl Intervals {
    /// Keeps what is shown of an interval.
    pub fn add(&mut self, report: &Report) {
        if report.interval.is_none() {
            return;
        }
        if self.kept.len() >= MOST {
            let half = self.kept.len() / 2;
            self.kept.drain(..half);
            self.left_out += half;
        }
        let mut own = Report::new(report.source);
        own.interval = report.interval;
        own.nodes = report.nodes.iter().filter(|node| node.level == 1).cloned().collect();
        own.software.clone_from(&report.software);
        self.kept.push(own);
    }

    /// Whether there are enough new intervals to look for phases again.
    pub fn is_due(&self) -> bool {
        self.kept.len() >= self.next
    }

    /// Finds the phases; the cursor stays at its time.
    pub fn refresh(&mut self) {
        let at = self.phase().map(|phase| phase.from);
        (self.series, self.phases) = phases::of(&self.kept);
        self.next = self.kept.len() + self.kept.len() / 16 + 1;
        let same = at.and_then(|at| self.phases.iter().position(|phase| at < phase.to));
        self.list.refill(self.phases.len(), same);
    }

    /// The phase at the cursor.
    pub fn phase(&self) -> Option<&Phase> {
        self.phases.get(self.list.at)
    }

    /// All seconds.
    fn all(&self) -> Option<Range<f64>> {
        Some(self.phases.first()?.from..self.phases.last()?.to)
    }

    /// The seconds in view.
    pub fn view(&self) -> Option<Range<f64>> {
        let all = self.all()?;
        let Range { start, end } = self.window.clone().unwrap_or(all.clone());
        let window = start.max(all.start)..end.min(all.end);
        Some(if window.is_empty() { all } else { window })
    }

    /// The mean length of an interval.
    fn step(&self) -> f64 {
        let all = self.series.first().map_or(&[][..], |one| &one.intervals);
        let sum: f64 = all.iter().map(|interval| interval.span.1 - interval.span.0).sum();
        sum / all.len().max(1) as f64
    }

    /// Shows the phase at the cursor only, or half of what is in view.
    pub fn zoom_in(&mut self) {
        let (Some(Range { start: from, end: to }), Some(phase)) = (self.view(), self.phase())
        else {
            return;
        };
        let (begin, end) = (phase.from, phase.to);
        let is_wider = from < begin && begin < to || from < end && end < to;
        let half = (to - from).max(4.0 * self.step()) / 4.0;
        let middle = f64::midpoint(from, to);
        let is_outside = end <= from || to <= begin;
        self.window = Some(match is_wider || is_outside {
            true => begin..end,
            false => middle - half..middle + half,
        });
    }

    /// Shows twice as much.
    pub fn zoom_out(&mut self) {
        let (Some(Range { start: from, end: to }), Some(all)) = (self.view(), self.all()) else {
            return;
        };
        let more = (to - from) / 2.0;
        let window = (from - more).max(all.start)..(to + more).min(all.end);
        self.window = Some(window).filter(|window| *window != all);
    }

    /// Shows what is this share of the view later.
    pub fn shift(&mut self, share: f64) {
        let (Some(Range { start: from, end: to }), Some(all)) = (self.view(), self.all()) else {
            return;
        };
        let by = (share * (to - from)).clamp(all.start - from, all.end - to);
        self.window = self.window.as_ref().map(|_| from + by..to + by);
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        let values = self.phases.get(row).map(|phase| &phase.values);
        values.into_iter().flatten().map(|value| format!("{} ", value.label)).collect()
    }
}

/// The mean of a value over some seconds, by the time that intervals have in them; `None`: not measured.
pub fn mean(intervals: &[Interval], label: usize, time: &Range<f64>) -> Option<f64> {
    let first = intervals.partition_point(|interval| interval.span.1 <= time.start);
    let (mut sum, mut seconds) = (0.0, 0.0);
    for interval in intervals[first..].iter().take_while(|interval| interval.span.0 < time.end) {
        let own = interval.span.1.min(time.end) - interval.span.0.max(time.start);
        if let Some(value) = interval.values.get(label).copied().flatten() {
            sum += value * own;
            seconds += own;
        }
    }
    (seconds > 0.0).then(|| sum / seconds)
}

/// Intervals whose values are stored.
const INTERVALS: usize = 240;

/// Values by part of the measurement and name, oldest first; `None` where there was none.
#[derive(Debug, Default)]
pub struct History(HashMap<String, VecDeque<Option<f64>>>);

impl History {
    /// Adds the values of an interval.
    pub fn add(&mut self, report: &Report) {
        let nodes = report.nodes.iter().map(|n| (node_key(&n.place, &n.id), n.value));
        let seconds = report.interval.map(|(a, b)| b - a).filter(|s| *s > 0.0);
        let rate = |value: &Option<f64>| Some(value.as_ref()? / seconds?);
        let software = report.software.iter().map(|(name, v)| (software_key(name), rate(v)));
        for (key, value) in nodes.chain(software) {
            let values = self.0.entry(key).or_default();
            if values.len() == INTERVALS {
                values.pop_front();
            }
            values.push_back(value);
        }
    }

    /// The values of a node.
    pub fn of_node(&self, node: &NodeRow) -> Option<&VecDeque<Option<f64>>> {
        self.0.get(&node_key(&node.place, &node.id))
    }

    /// The rates of a software count.
    pub fn of_software(&self, name: &str) -> Option<&VecDeque<Option<f64>>> {
        self.0.get(&software_key(name))
    }
}

/// Without the interval, which is what the history runs over.
fn node_key(place: &Place, id: &str) -> String {
    format!("{} {} {id}", place.core.as_deref().unwrap_or(""), place.scope.as_deref().unwrap_or(""))
}

fn software_key(name: &str) -> String {
    format!("software {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: half of the first second (0.2) and all of the second (0.8); the third was not measured.
    #[test]
    fn a_column_is_the_mean_of_its_time() {
        let of = |from, value| Interval { span: (from, from + 1.0), values: vec![value] };
        let all = [of(0.0, Some(0.2)), of(1.0, Some(0.8)), of(2.0, None)];
        assert!((mean(&all, 0, &(0.5..2.0)).unwrap() - 0.6).abs() < 1e-12);
        assert_eq!(mean(&all, 0, &(2.0..3.0)), None);
        assert_eq!(mean(&all, 0, &(5.0..6.0)), None);
    }
}
