//! The bottleneck in a sentence.

use crate::format::percent_bounds;
use estimate::{Interval, Part, Parts};

/// What is said of a part that is the bottleneck.
fn label(part: Part) -> (&'static str, &'static str) {
    match part {
        Part::Retiring => ("Retiring", "is the work itself, at the core's full width"),
        Part::BadSpeculation => ("Bad Speculation", "goes to mispredicted branches"),
        Part::FetchBandwidth => {
            ("Fetch Bandwidth", "goes to decoding: the front end delivers too little")
        }
        Part::FetchLatency => {
            ("Fetch Latency", "goes to fetching code: the hot code exceeds the first cache")
        }
        Part::CoreBound => ("Core Bound", "goes to ports, dependencies or store forwarding"),
        Part::MemoryBound => ("Memory Bound", "goes to loads and stores beyond the first cache"),
        Part::Unexplained => ("Unexplained", "is not explained"),
    }
}

/// From this share on nothing else is worth a word.
const ALL: f64 = 0.995;

/// The bottleneck in a sentence; `bound` is what bounds the code in isolation, or its loads and stores.
pub(super) fn sentence(parts: &Parts, bottleneck: Option<Part>, bound: Option<&str>) -> String {
    let percent = |part: Part| {
        let share = parts.of(part).share;
        let (low, high) = percent_bounds(share.low, share.high);
        match parts.of(part).source {
            None => format!("up to {high} %"),
            Some(_) => format!("{:.0} % ({low}-{high} %)", 100.0 * share.value),
        }
    };
    if let Some(part) = bottleneck {
        let (name, why) = label(part);
        let bound = bound.map_or(String::new(), |bound| format!(" ({bound})"));
        return format!("{name}: {} of its time {why}{bound}.", percent(part));
    }
    let unexplained = parts.of(Part::Unexplained);
    if let (true, Some(why)) = (unexplained.share.value >= ALL, &unexplained.reason) {
        return format!("Not divided: {why}.");
    }
    let first = largest(parts, None, |share| share.value);
    // What may be the largest, too.
    let second = largest(parts, first, |share| share.high);
    let named = |part: Part| format!("{} {}", label(part).0, percent(part));
    if first == Some(Part::Unexplained) {
        let why = unexplained.reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let other = second.map_or(String::new(), |part| format!("; it may be {}", named(part)));
        let share = percent(Part::Unexplained);
        return format!("Not explained: {share} of its time{why}{other}.");
    }
    let two: Vec<String> = [first, second].into_iter().flatten().map(named).collect();
    format!("Undecided between {}.", two.join(" and "))
}

/// The part of which this is the largest, but for one; none where it is 0 of all.
fn largest(parts: &Parts, but: Option<Part>, of: impl Fn(Interval) -> f64) -> Option<Part> {
    let others = parts.iter().filter(|(part, _)| Some(*part) != but);
    let most = others.max_by(|a, b| of(a.1.share).total_cmp(&of(b.1.share)))?;
    (of(most.1.share) > 0.0).then_some(most.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::{Share, Source};

    #[test]
    fn what_is_not_divided_has_its_reason() {
        let parts = Parts::unknown("interrupted".to_owned());
        assert_eq!(sentence(&parts, None, None), "Not divided: interrupted.");
    }

    #[test]
    fn a_sentence_names_the_part_with_its_interval() {
        let mut parts = Parts::none();
        let share =
            |value, low, high| Share::known(Interval::new(value, low, high), Source::Residual);
        parts.set(Part::CoreBound, share(0.8, 0.7, 0.85));
        parts.set(Part::Unexplained, share(0.2, 0.1, 0.3));
        assert_eq!(
            sentence(&parts, Some(Part::CoreBound), Some("dependency")),
            "Core Bound: 80 % (70-85 %) of its time goes to ports, dependencies or store forwarding (dependency)."
        );
        assert_eq!(
            sentence(&parts, None, None),
            "Undecided between Core Bound 80 % (70-85 %) and Unexplained 20 % (10-30 %)."
        );
        // What may be as large is named, also where its own value is small.
        parts.set(Part::Retiring, share(0.1, 0.05, 0.1));
        parts.set(Part::MemoryBound, share(0.0, 0.0, 0.9));
        let said = sentence(&parts, None, None);
        assert!(said.ends_with("and Memory Bound 0 % (0-90 %)."), "{said}");
        // What is not known has no value.
        parts.set(Part::BadSpeculation, Share::unknown(0.95, "no cost"));
        let said = sentence(&parts, None, None);
        assert!(said.ends_with("and Bad Speculation up to 95 %."), "{said}");
        // What is not explained is said once, with its cause.
        parts.set(Part::CoreBound, Share::none());
        let left = share(0.8, 0.1, 0.9).because(Some("no cost of a misprediction".to_owned()));
        parts.set(Part::Unexplained, left);
        assert_eq!(
            sentence(&parts, None, None),
            "Not explained: 80 % (10-90 %) of its time: no cost of a misprediction; it may be Bad Speculation up to 95 %."
        );
    }
}
