//! Intervals → series. Counters add up for as long as the process lives, whatever becomes of what is measured; gauges
//! are those of the last interval of their measurement, and go where it has none.

use super::families::Family;
use super::rows::{Count, Counted, Interval, NotMeasured, Ratio, RatioOf, Share, Subject};
use super::text::{Form, Labels, Sample, encode};
use crate::window::{Host, Source};
use smol_str::{SmolStr, ToSmolStr as _};
use std::collections::BTreeMap;
use std::fmt;

/// Series of the program itself, which are always there: of build and processor, and those of `Exporter::own`.
const OWN: usize = 8;

/// A family and the labels of one of its series.
type Key = (Family, Labels);

/// What the program itself has used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// CPU seconds.
    pub cpu_seconds: f64,
    /// Resident memory in bytes.
    pub resident_bytes: f64,
}

/// The series of a host.
#[derive(Debug)]
pub struct Exporter {
    about: Vec<Sample>,
    interval: f64,
    most: usize,
    counters: BTreeMap<Key, f64>,
    /// By measurement.
    gauges: BTreeMap<usize, BTreeMap<Key, f64>>,
    intervals: u64,
    failures: u64,
    dropped: u64,
    cost: Option<Cost>,
}

impl Exporter {
    /// Without values; `interval` is the length in seconds that was asked for, `most` the number of series.
    pub fn new(host: &Host, interval: f64, most: usize) -> Self {
        Self {
            about: about(host),
            interval,
            most,
            counters: BTreeMap::new(),
            gauges: BTreeMap::new(),
            intervals: 0,
            failures: 0,
            dropped: 0,
            cost: None,
        }
    }

    /// Takes over an interval of a measurement, by its number: 0 is the host's.
    pub fn add(&mut self, measurement: usize, interval: &Interval) {
        if measurement == 0 && interval.seconds.is_some() {
            self.intervals += 1;
        }
        self.gauges.remove(&measurement);
        interval.counts.iter().for_each(|count| self.count(count));
        for share in &interval.shares {
            let slots = share.share.zip(share.slots).map(|(share, slots)| (share * slots).max(0.0));
            slots.into_iter().for_each(|slots| self.add_up(node(Family::NodeSlots, share), slots));
        }
        let mut gauges = BTreeMap::new();
        interval.shares.iter().for_each(|share| gauges.extend(of_share(share)));
        gauges.extend(interval.ratios.iter().map(of_ratio));
        gauges.extend(interval.not_measured.iter().map(of_missing));
        gauges.retain(|_, value| value.is_finite());
        let room = self.room();
        self.dropped += gauges.len().saturating_sub(room) as u64;
        self.gauges.insert(measurement, gauges.into_iter().take(room).collect());
    }

    /// A measurement failed in the last interval.
    pub fn fail(&mut self) {
        self.failures += 1;
    }

    /// What the program has used until now.
    pub fn set_cost(&mut self, cost: Cost) {
        self.cost = Some(cost);
    }

    /// The text.
    ///
    /// # Errors
    /// None: a text takes everything.
    pub fn text(&self, form: Form) -> Result<String, fmt::Error> {
        // Once each, also where two measurements have the same.
        let gauges = self.gauges.values().flatten();
        let series: BTreeMap<&Key, f64> =
            self.counters.iter().chain(gauges).map(|(key, value)| (key, *value)).collect();
        let mut all: BTreeMap<Family, Vec<Sample>> = BTreeMap::new();
        for ((family, labels), value) in series {
            let sample = Sample { family: *family, labels: labels.clone(), value };
            all.entry(*family).or_default().push(sample);
        }
        for sample in self.about.iter().cloned().chain(self.own()) {
            all.entry(sample.family).or_default().push(sample);
        }
        encode(all.into_values().collect(), form)
    }

    /// Series of the exporter itself.
    fn own(&self) -> Vec<Sample> {
        let cost = self.cost;
        let all = [
            (Family::Interval, Some(self.interval)),
            (Family::Intervals, Some(self.intervals as f64)),
            (Family::Failures, Some(self.failures as f64)),
            (Family::Dropped, Some(self.dropped as f64)),
            (Family::OwnCpu, cost.map(|cost| cost.cpu_seconds)),
            (Family::OwnMemory, cost.map(|cost| cost.resident_bytes)),
        ];
        let sample = |(family, value): (Family, Option<f64>)| {
            Some(Sample { family, labels: Labels::new(), value: value? })
        };
        all.into_iter().filter_map(sample).collect()
    }

    fn count(&mut self, count: &Count) {
        let mut labels = labels(&count.subject, Some(count.source));
        let family = match &count.of {
            Counted::Slots => Family::Slots,
            Counted::TaskClock => Family::TaskClock,
            Counted::Event(event) => {
                labels.push(("event", event.clone()));
                Family::Events
            }
            Counted::Mode(mode) => {
                labels.push(("mode", SmolStr::new_static(mode.word())));
                Family::Cpu
            }
        };
        self.add_up((family, labels), count.count);
    }

    /// Adds to a counter, which is new only where there is room.
    fn add_up(&mut self, key: Key, value: f64) {
        if !value.is_finite() || value < 0.0 {
            return;
        }
        let room = self.room();
        match self.counters.get_mut(&key) {
            Some(sum) => *sum += value,
            None if room > 0 => _ = self.counters.insert(key, value),
            None => self.dropped += 1,
        }
    }

    /// How many more series there may be.
    fn room(&self) -> usize {
        let gauges: usize = self.gauges.values().map(BTreeMap::len).sum();
        self.most.saturating_sub(OWN + self.counters.len() + gauges)
    }
}

/// What program and processor are.
fn about(host: &Host) -> Vec<Sample> {
    let text = |name, value: &str| (name, SmolStr::new(value));
    let mut processor = vec![
        text("uarch", host.uarch.as_deref().unwrap_or_default()),
        text("model", &host.processor),
        text("kernel", &host.kernel),
        ("cpus", host.cpus.to_smolstr()),
    ];
    processor.retain(|(_, value)| !value.is_empty());
    let build = vec![text("version", &host.tool)];
    let all = [(Family::Build, build), (Family::Processor, processor)];
    all.map(|(family, labels)| Sample { family, labels, value: 1.0 }).into()
}

/// Labels of a subject; rows of the host and of its parts differ in `scope`, so that none is added up twice.
fn labels(subject: &Subject, source: Option<Source>) -> Labels {
    let owner = &subject.owner;
    let socket = owner.socket.map(|socket| ("socket", socket.to_smolstr()));
    let named = |name, value: &Option<SmolStr>| value.clone().map(|value| (name, value));
    let part = named("command", &owner.command).or(named("cgroup", &owner.cgroup)).or(socket);
    let scope = part.as_ref().map_or("host", |(name, _)| *name);
    let mut labels = vec![("scope", SmolStr::new_static(scope))];
    labels.extend(part);
    labels.extend(named("core", &subject.core));
    labels.extend(source.map(|source| ("source", SmolStr::new_static(source.word()))));
    labels
}

fn node(family: Family, share: &Share) -> Key {
    let mut labels = labels(&share.subject, Some(share.source));
    labels.extend([("node", share.node.clone()), ("level", share.level.to_smolstr())]);
    (family, labels)
}

fn of_share(share: &Share) -> impl Iterator<Item = (Key, f64)> {
    let (low, high) = (share.interval.map(|i| i.0), share.interval.map(|i| i.1));
    let all = [(Family::Share, share.share), (Family::ShareLow, low), (Family::ShareHigh, high)];
    all.into_iter().filter_map(|(family, value)| Some((node(family, share), value?)))
}

fn of_ratio(ratio: &Ratio) -> (Key, f64) {
    let family = match ratio.of {
        RatioOf::Ipc => Family::Ipc,
        RatioOf::Frequency => Family::Frequency,
    };
    ((family, labels(&ratio.subject, Some(ratio.source))), ratio.value)
}

fn of_missing(missing: &NotMeasured) -> (Key, f64) {
    let mut labels = labels(&missing.subject, None);
    let reason = SmolStr::new_static(missing.reason.word());
    labels.extend([("node", missing.what.clone()), ("reason", reason)]);
    ((Family::NotMeasured, labels), 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::rows::Reason;
    use super::*;

    fn share(share: f64) -> Share {
        Share {
            subject: Subject::default(),
            node: "Retiring".into(),
            level: 1,
            share: Some(share),
            interval: None,
            slots: Some(100.0),
            source: Source::Counted,
        }
    }

    fn text(exporter: &Exporter) -> String {
        exporter.text(Form::OpenMetrics).expect("a text")
    }

    #[test]
    fn counters_stay_and_gauges_go_with_their_measurement() {
        let mut exporter = Exporter::new(&Host::default(), 1.0, 100);
        for value in [0.25, 0.5, f64::NAN] {
            let shares = vec![share(value)];
            exporter.add(0, &Interval { shares, seconds: Some(1.0), ..Interval::default() });
        }
        assert!(text(&exporter).contains("level=\"1\"} 75.0\n"), "{}", text(&exporter));
        assert!(!text(&exporter).contains("tdtool_node_share"), "no number, no value");
        assert!(text(&exporter).contains("tdtool_intervals_total 3.0\n"));
    }

    #[test]
    fn the_same_gauge_of_two_measurements_is_there_once() {
        let mut exporter = Exporter::new(&Host::default(), 1.0, 100);
        for measurement in 0..2 {
            let (subject, what, reason) = (Subject::default(), "a\"b\n".into(), Reason::Absent);
            let not_measured = vec![NotMeasured { subject, what, reason }];
            exporter.add(measurement, &Interval { not_measured, ..Interval::default() });
        }
        let line = r#"tdtool_not_measured{scope="host",node="a\"b\n",reason="absent"} 1.0"#;
        assert_eq!(text(&exporter).matches(line).count(), 1, "{}", text(&exporter));
    }

    #[test]
    fn beyond_the_limit_counters_go_on_and_new_series_are_counted() {
        let mut exporter = Exporter::new(&Host::default(), 1.0, OWN + 1);
        let count = |event: &str| Count {
            subject: Subject::default(),
            of: Counted::Event(event.into()),
            count: 1.0,
            source: Source::Counted,
        };
        for _ in 0..2 {
            let counts = vec![count("a"), count("b")];
            exporter.add(0, &Interval { counts, ..Interval::default() });
        }
        let text = text(&exporter);
        assert!(text.contains("event=\"a\"} 2.0\n") && !text.contains("event=\"b\""), "{text}");
        assert!(text.contains("tdtool_series_dropped_total 2.0\n"), "{text}");
    }
}
