//! Sums, intervals and trees of parts, by hand.

use super::*;
use crate::{Dominant, bottleneck, rivals};

/// By hand: with 0.5 or more elsewhere, 0.5 is left; what retires is not minded.
#[test]
fn no_part_has_what_the_others_have_at_least() {
    let mut parts = Parts::default();
    let all =
        [(Part::BadSpeculation, 0.6, 0.5), (Part::Retiring, 0.3, 0.2), (Part::CoreBound, 0.1, 0.0)];
    for (part, value, low) in all {
        parts.set(part, Share::known(Interval::new(value, low, 1.0), Source::Inferred));
    }
    let parts = parts.tightened();
    let high = |part| parts.of(part).high;
    assert_eq!((high(Part::CoreBound), high(Part::Retiring)), (0.5, 0.5));
    assert_eq!(high(Part::BadSpeculation), 1.0);
}

/// By hand: of four seconds two are retiring (within 1 %). In one of them that may be none or all of it; in three,
/// it is a third at least, and two thirds at most.
#[test]
fn a_part_of_the_time_may_divide_otherwise() {
    let mut half = Parts::default();
    let share = Interval::relative(0.5, 0.01);
    half.set(Part::Retiring, Share::known(share, Source::Counted));
    let of = |share: f64| half.within(share).of(Part::Retiring).interval();
    assert_eq!(of(0.25), Interval::new(0.5, 0.0, 1.0));
    let most = of(0.75);
    assert!((most.low - 0.245 / 0.75).abs() < 1e-12, "{most:?}");
    assert!((most.high - 0.505 / 0.75).abs() < 1e-12, "{most:?}");
    assert!((of(1.0).low - share.low).abs() < 1e-12);
    // By hand: a half of 100 samples is known within 2 × 5 %.
    let sampled = half.sampled(100).of(Part::Retiring).interval();
    assert!((sampled.high - 0.5 - 0.1_f64.hypot(0.005)).abs() < 1e-12, "{sampled:?}");
}

/// By hand: 3 of 4 seconds half retiring, 1 second all unexplained: 37.5 % retiring, 62.5 % unexplained; what
/// is not known may be retiring, too: 0.75 × 0.6 + 0.25.
#[test]
fn parts_are_weighted_by_time() {
    let mut half = Parts::default();
    let share = |value: f64| Share::known(Interval::relative(value, 0.2), Source::Counted);
    half.set(Part::Retiring, share(0.5));
    half.set(Part::Unexplained, share(0.5));
    let none = Parts::unknown(Reason::given("no counts"));
    let sum = Parts::sum([(3.0, &half), (1.0, &none)].into_iter());
    assert_eq!(sum.of(Part::Retiring).value, 0.375);
    assert!((sum.of(Part::Retiring).high - 0.7).abs() < 1e-12);
    assert_eq!(sum.of(Part::Unexplained).value, 0.625);
    let total: f64 = sum.iter().map(|(_, share)| share.value).sum();
    assert!((total - 1.0).abs() < 1e-12);
    assert_eq!(sum.of(Part::Unexplained).reason, None, "the first has more of it");
}

/// A share that may be anything up to a bound is not shown as 0.
#[test]
fn what_is_bounded_has_no_value() {
    let of = |value, source| Share { value, source, ..Share::default() };
    let (none, unknown) = (of(0.0, Source::Excluded), of(0.0, Source::Bounded));
    assert!(!unknown.has_value());
    assert!(of(0.1, Source::Bounded).has_value());
    assert!(of(0.0, Source::Residual).has_value());
    // Nor is the sum of nothing and of that.
    assert!(!none.plus(&unknown).has_value() && !unknown.plus(&none).has_value());
    assert!(none.plus(&none).has_value());
}

/// By hand: 0.5 (0.4 to 0.6) and 0.2 (0.1 to 0.5) are 0.7 (0.5 to 1, the whole), if others may have the rest.
#[test]
fn backend_bound_is_the_sum_of_its_parts_with_both_errors() {
    let of = |value, low, high, source| Share { value, low, high, source, reason: None };
    let parts = Parts {
        core_bound: of(0.5, 0.4, 0.6, Source::Isolated),
        memory_bound: of(0.2, 0.1, 0.5, Source::Inferred),
        unexplained: of(0.3, 0.0, 0.5, Source::Residual),
        ..Parts::default()
    };
    let tree = parts.tree();
    let backend = tree.iter().find(|node| node.id == "backend_bound").unwrap();
    let Share { value, low, high, source, .. } = backend.share;
    assert!((value - 0.7).abs() < 1e-12 && (low - 0.5).abs() < 1e-12, "{backend:?}");
    assert_eq!((high, source), (1.0, Source::Sum));
    assert!((parts.level1()[3] - 0.7).abs() < 1e-12);
}

/// Of two pieces with as much of it, one in isolation; and of pieces of which one has nearly none.
#[test]
fn a_sum_names_the_sources_of_all_that_has_much_of_it() {
    let of = |value, source| {
        let share = Share::known(Interval::exact(value), source);
        (1.0, Parts { memory_bound: share, ..Parts::default() })
    };
    let source = |a: (f64, Parts), b: (f64, Parts)| {
        Parts::sum([(a.0, &a.1), (b.0, &b.1)].into_iter()).memory_bound.source
    };
    let isolated = of(0.4, Source::Isolated);
    assert_eq!(source(isolated.clone(), of(0.4, Source::Inferred)), Source::IsolatedInferred);
    assert_eq!(source(isolated.clone(), of(0.01, Source::Inferred)), Source::Isolated);
    assert_eq!(source(isolated.clone(), of(0.0, Source::Bounded)), Source::Isolated);
    assert_eq!(
        source(isolated.clone(), of(0.4, Source::IsolatedInferred)),
        Source::IsolatedInferred
    );
    assert_eq!(source(isolated, of(0.4, Source::Compared)), Source::Sum);
}

fn parts(all: &[(Part, f64, f64)]) -> Parts {
    let mut parts = Parts::default();
    for (part, value, half) in all {
        let share = Interval::new(*value, value - half, value + half);
        parts.set(*part, Share::known(share, Source::Counted));
    }
    parts
}

/// By hand: 0.6 − 0.4 = 0.2 against √(0.12² + 0.12²) = 0.17 and √(0.15² + 0.15²) = 0.21: then Backend Bound, of which they are.
#[test]
fn parts_within_their_errors_are_not_named() {
    use crate::part::Part::{CoreBound, MemoryBound, Unexplained};
    let of = |half| bottleneck(&parts(&[(CoreBound, 0.6, half), (MemoryBound, 0.4, half)]));
    let (core, backend) = (Dominant::Part(CoreBound), Dominant::Backend);
    assert_eq!((of(0.12), of(0.15)), (Some(core), Some(backend)));
    assert_eq!(bottleneck(&parts(&[(CoreBound, 0.4, 0.0), (Unexplained, 0.6, 0.0)])), None);
    assert_eq!(bottleneck(&Parts::unknown(Reason::NoTime)), None);
}

/// By hand: Core Bound may be 0.9 by itself, but at least 0.62 retire, and 0.05 go to mispredicted branches: 0.33 at most.
#[test]
fn slots_that_retire_are_no_other_part_s() {
    use crate::part::Part::{BadSpeculation, CoreBound, Retiring};
    let mut all = parts(&[(Retiring, 0.72, 0.1), (BadSpeculation, 0.05, 0.0)]);
    all.set(CoreBound, Share::known(Interval::new(0.23, 0.05, 0.9), Source::Modelled));
    assert_eq!(bottleneck(&all), Some(Dominant::Part(Retiring)));
    assert_eq!(all.share(Dominant::Backend).high, 0.9, "without its cause less may retire");
}

/// Intel's tree flags Retiring above 0.7, Bad Speculation above 0.15, Backend Bound above 0.2: below that what loses most
/// is named, if anything loses much.
#[test]
fn what_loses_most_is_named_unless_most_retires() {
    use crate::part::Part::{BadSpeculation, CoreBound, Retiring};
    let of = |retiring, core| {
        let wrong = 1.0 - retiring - core;
        let all = [(Retiring, retiring, 0.0), (CoreBound, core, 0.0), (BadSpeculation, wrong, 0.0)];
        bottleneck(&parts(&all)).and_then(Dominant::part)
    };
    assert_eq!(of(0.72, 0.25), Some(Retiring));
    assert_eq!(of(0.68, 0.25), Some(CoreBound));
    assert_eq!(of(0.68, 0.19), Some(Retiring), "no loss is large");
    assert_eq!(of(0.6, 0.19), Some(BadSpeculation), "0.21");
    assert_eq!(of(0.5, 0.2), Some(BadSpeculation));
}

/// By hand: 0.4 against 0.3 at level 1; in it 0.1 more against √2 × 0.02 and √2 × 0.15.
#[test]
fn the_search_ends_above_parts_that_may_be_as_large() {
    use crate::part::Part::{BadSpeculation, CoreBound, MemoryBound, Retiring};
    let of = |half| {
        let waits = [(CoreBound, 0.25, half), (MemoryBound, 0.15, half)];
        bottleneck(&parts(
            &[&waits[..], &[(BadSpeculation, 0.3, 0.0), (Retiring, 0.3, 0.0)]].concat(),
        ))
    };
    assert_eq!(of(0.02), Some(Dominant::Part(CoreBound)));
    assert_eq!(of(0.15), Some(Dominant::Backend));
}

/// By hand: 0.35 − 0.05 = 0.3 of which 2 × 0.14 may go from one to the other, √(0.28² + 0.05²) with what retires less;
/// with 0.16 it is 0.32.
#[test]
fn what_a_node_lacks_is_unexplained_and_counts_twice() {
    use crate::part::Part::{CoreBound, MemoryBound, Retiring, Unexplained};
    let of = |half| {
        let waits = [(CoreBound, 0.2, half / 2.0), (MemoryBound, 0.15, half / 2.0)];
        let mut all = parts(&[&waits[..], &[(Retiring, 0.6, 0.05)]].concat());
        all.set(Unexplained, Share::known(Interval::new(0.05, 0.0, 0.6), Source::Residual));
        bottleneck(&all)
    };
    assert_eq!((of(0.14), of(0.16)), (Some(Dominant::Backend), None));
}

/// Where nothing is certain, the sentence has two nodes.
#[test]
fn rivals_are_nodes_of_level_1() {
    use crate::part::Part::{BadSpeculation, CoreBound, MemoryBound, Retiring, Unexplained};
    let of = |all: &[(Part, f64, f64)]| rivals(&parts(all)).map(|of| of.map(Dominant::name));
    let waits = [(CoreBound, 0.25, 0.2), (MemoryBound, 0.2, 0.2)];
    let wrong = (BadSpeculation, 0.4, 0.1);
    let both = [&waits[..], &[wrong, (Retiring, 0.15, 0.0)]].concat();
    assert_eq!(of(&both), [Some("backend_bound"), Some("bad_speculation")]);
    let one = [(CoreBound, 0.4, 0.4), (Retiring, 0.6, 0.4)];
    assert_eq!(of(&one), [Some("core_bound"), Some("retiring")]);
    let left = [(CoreBound, 0.3, 0.2), (Unexplained, 0.4, 0.1), (Retiring, 0.3, 0.0)];
    assert_eq!(of(&left), [Some("unexplained"), Some("core_bound")]);
}

/// By hand: Core and Memory Bound may each be 0 or 0.6, but both together 0.5 at least and 0.7 at most.
#[test]
fn backend_bound_may_be_known_better_than_its_parts() {
    use crate::part::Part::{BackendBound, CoreBound, MemoryBound, Unexplained};
    let mut all = parts(&[(CoreBound, 0.3, 0.3), (MemoryBound, 0.3, 0.3), (Unexplained, 0.4, 0.4)]);
    assert!(all.share(Dominant::Backend).low < 0.21, "as 0.8 may be unexplained");
    all.set(BackendBound, Share::known(Interval::new(0.6, 0.5, 0.7), Source::Sum));
    let known = |of: &Parts| (of.share(Dominant::Backend).low, of.share(Dominant::Backend).high);
    assert_eq!(known(&all), (0.5, 0.7));
    // Beside as much time of which nothing is known.
    let none = Parts::unknown(Reason::NoTime);
    assert_eq!(known(&Parts::sum([(1.0, &all), (1.0, &none)].into_iter())), (0.25, 0.85));
}

/// By hand: Backend Bound is 0.3 + 0.3 = 0.6, as 1 − 0.3 − 0.1 is.
#[test]
fn a_sum_is_known_where_its_parts_are_not() {
    use crate::part::Part::{BadSpeculation, CoreBound, MemoryBound, Retiring};
    let of = |part| (part, 0.3, 0.3);
    let all = [(Retiring, 0.3, 0.0), (BadSpeculation, 0.1, 0.0), of(CoreBound), of(MemoryBound)];
    let all = parts(&all);
    let backend = all.share(Dominant::Backend);
    assert!((backend.low - 0.6).abs() < 1e-9, "{backend:?}");
    assert_eq!(bottleneck(&all), Some(Dominant::Backend));
    assert_eq!(Dominant::of("backend_bound"), Some(Dominant::Backend));
    assert!([CoreBound, MemoryBound].contains(&all.leading()));
}
