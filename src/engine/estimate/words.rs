//! The bottleneck in a sentence.

use estimate::{Part, Parts};

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
        let [value, low, high] = [share.value, share.low, share.high].map(|x| (100.0 * x).round());
        format!("{value:.0} % ({low:.0}-{high:.0} %)")
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
    let mut order: Vec<(Part, f64)> =
        parts.iter().map(|(part, share)| (part, share.share.value)).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let two: Vec<String> = order
        .iter()
        .take(2)
        .filter(|(_, value)| *value > 0.0)
        .map(|(part, _)| format!("{} {}", label(*part).0, percent(*part)))
        .collect();
    let why = unexplained.reason.as_ref().filter(|_| order[0].0 == Part::Unexplained);
    let why = why.map_or(String::new(), |why| format!(": {why}"));
    format!("Undecided between {}{why}.", two.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::{Interval, Share};

    #[test]
    fn what_is_not_divided_has_its_reason() {
        let parts = Parts::unknown("interrupted".to_owned());
        assert_eq!(sentence(&parts, None, None), "Not divided: interrupted.");
    }

    #[test]
    fn a_sentence_names_the_part_with_its_interval() {
        let mut parts = Parts::default();
        let share =
            |value, low, high| Share { share: Interval::new(value, low, high), ..Share::default() };
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
    }
}
