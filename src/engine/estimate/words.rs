//! The bottleneck in a sentence.

use super::grounds::Grounds;
use bench::Class;
use estimate::{Part, Parts, Share, Source};
use report::format::percent_bounds;

/// Where the time of a bottleneck goes.
fn usual(part: Part) -> &'static str {
    match part {
        Part::Retiring => "is the work itself, at the core's full width",
        Part::BadSpeculation => "goes to mispredicted branches",
        Part::FetchBandwidth => "goes to decoding: the front end delivers too little",
        Part::FetchLatency => "goes to fetching code: the hot code exceeds L1",
        Part::CoreBound => "goes to ports, dependencies or store forwarding",
        Part::MemoryBound => "goes to loads and stores beyond L1",
        Part::Unexplained => "is not explained",
    }
}

/// Where the time of a bottleneck goes, as precisely as is known.
fn cause(part: Part, grounds: &Grounds) -> String {
    let usual = usual(part);
    let with = |known: &str| format!("{usual} ({known})");
    match (part, grounds.bound, &grounds.memory) {
        (Part::CoreBound, _, _) if grounds.is_division => "goes to division".to_owned(),
        (Part::CoreBound, Some(Class::Ports), _) => "goes to execution ports".to_owned(),
        (Part::CoreBound, Some(Class::Dependency), _) => {
            "goes to a loop-carried dependency".to_owned()
        }
        (Part::CoreBound, Some(Class::StoreForwarding), _) => {
            "goes to loads that wait for earlier stores (store forwarding)".to_owned()
        }
        (Part::CoreBound, Some(Class::L1Access), _) => {
            "goes to banks or lines of the L1 data cache".to_owned()
        }
        (Part::CoreBound, _, _) => with("which of them is not known"),
        (Part::MemoryBound, _, Some(accesses)) => with(accesses),
        _ => usual.to_owned(),
    }
}

/// Advice for loads that take far longer than memory.
fn advice(part: Part, grounds: &Grounds) -> String {
    match (part, grounds.walks) {
        (Part::MemoryBound, Some((load, memory))) => format!(
            " Its costliest load takes {load:.0} ns where memory takes {memory:.0}, probably TLB misses: huge pages may help \
             (madvise; of malloc GLIBC_TUNABLES=glibc.malloc.hugetlb=1)."
        ),
        _ => String::new(),
    }
}

/// Unexplained share from which on nothing else is named.
const ALL: f64 = 0.995;

/// The bottleneck in a sentence or two, with what is known of why.
pub(super) fn sentence(parts: &Parts, bottleneck: Option<Part>, grounds: &Grounds) -> String {
    let percent = |part: Part| {
        let share = parts.of(part);
        let (low, high) = percent_bounds(share.low, share.high);
        match share.source {
            Source::Bounded => format!("up to {high} %"),
            _ => format!("{:.0} % ({low}-{high} %)", 100.0 * share.value),
        }
    };
    if let Some(part) = bottleneck {
        let (why, advice) = (cause(part, grounds), advice(part, grounds));
        return format!("{}: {} of its time {why}.{advice}", part.label(), percent(part));
    }
    let unexplained = parts.of(Part::Unexplained);
    if let (true, Some(why)) = (unexplained.value >= ALL, &unexplained.reason) {
        return format!("No estimate: {why}.");
    }
    let first = largest(parts, None, |share| share.value);
    // Another part that may be the largest.
    let second = largest(parts, first, |share| share.high);
    let named = |part: Part| format!("{} {}", part.label(), percent(part));
    if first == Some(Part::Unexplained) {
        let why = unexplained.reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let other = second.map_or(String::new(), |part| format!("; it may be {}", named(part)));
        let share = percent(Part::Unexplained);
        return format!("Not explained: {share} of its time{why}{other}.");
    }
    if let (Some(first), Some(Part::Unexplained)) = (first, second) {
        return format!(
            "Undecided: {}; {} is unexplained.",
            named(first),
            percent(Part::Unexplained)
        );
    }
    let two: Vec<String> = [first, second].into_iter().flatten().map(named).collect();
    format!("Undecided between {}.", two.join(" and "))
}

/// The part of which this is the largest, but for one; none where it is 0 of all.
fn largest(parts: &Parts, but: Option<Part>, of: impl Fn(&Share) -> f64) -> Option<Part> {
    let others = parts.iter().filter(|(part, _)| Some(*part) != but);
    let most = others.max_by(|a, b| of(a.1).total_cmp(&of(b.1)))?;
    (of(most.1) > 0.0).then_some(most.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::{Interval, Reason};

    #[test]
    fn what_is_not_divided_has_its_reason() {
        let parts = Parts::unknown(Reason::given("interrupted"));
        assert_eq!(sentence(&parts, None, &Grounds::default()), "No estimate: interrupted.");
    }

    #[test]
    fn loads_far_above_the_latency_of_memory_get_advice() {
        let mut parts = Parts::default();
        parts.set(Part::MemoryBound, Share::known(Interval::exact(1.0), Source::Inferred));
        let grounds = Grounds {
            memory: Some("`mov rax,[rax]` at 0x20".to_owned()),
            walks: Some((213.9, 52.6)),
            ..Grounds::default()
        };
        let said = sentence(&parts, Some(Part::MemoryBound), &grounds);
        assert!(said.contains(
            "(`mov rax,[rax]` at 0x20). Its costliest load takes 214 ns where memory takes 53"
        ));
        assert!(said.contains("huge pages"), "{said}");
    }

    #[test]
    fn a_sentence_names_the_part_with_its_interval() {
        let mut parts = Parts::default();
        let share =
            |value, low, high| Share::known(Interval::new(value, low, high), Source::Inferred);
        parts.set(Part::CoreBound, share(0.8, 0.7, 0.85));
        parts.set(Part::Unexplained, share(0.2, 0.1, 0.3));
        let core = |bound: Class, is_division| {
            let grounds = Grounds { bound: Some(bound), is_division, ..Grounds::default() };
            sentence(&parts, Some(Part::CoreBound), &grounds)
        };
        for (bound, is_division, why) in [
            (Class::Dependency, false, "a loop-carried dependency"),
            (Class::Dependency, true, "division"),
            (Class::Ports, true, "division"),
            (
                Class::Undecided,
                false,
                "ports, dependencies or store forwarding (which of them is not known)",
            ),
        ] {
            let said = format!("Core Bound: 80 % (70-85 %) of its time goes to {why}.");
            assert_eq!(core(bound, is_division), said);
        }
        let nothing = &Grounds::default();
        assert_eq!(
            sentence(&parts, None, nothing),
            "Undecided: Core Bound 80 % (70-85 %); 20 % (10-30 %) is unexplained."
        );
        // A part that may be as large is named, also where its own value is small.
        parts.set(Part::Retiring, share(0.1, 0.05, 0.1));
        parts.set(Part::MemoryBound, share(0.0, 0.0, 0.9));
        let said = sentence(&parts, None, nothing);
        assert!(said.ends_with("and Memory Bound 0 % (0-90 %)."), "{said}");
        // An unknown share has no value.
        parts.set(Part::BadSpeculation, Share::unknown(0.95, Reason::given("no cost")));
        let said = sentence(&parts, None, nothing);
        assert!(said.ends_with("and Bad Speculation up to 95 %."), "{said}");
        // Unexplained time is named once, with its cause.
        parts.set(Part::CoreBound, Share::default());
        let left = share(0.8, 0.1, 0.9).because(Some(Reason::given("no cost of a misprediction")));
        parts.set(Part::Unexplained, left);
        assert_eq!(
            sentence(&parts, None, nothing),
            "Not explained: 80 % (10-90 %) of its time: no cost of a misprediction; it may be Bad Speculation up to 95 %."
        );
    }
}
