//! Advice on loads whose truth is known by construction (../shared/simlbr/README.md) or by hand.

use super::*;
use crate::access::{Access, Level};
use crate::class::{Ahead, Class, Kind};
use crate::latency::Level as Cache;

fn level(class: Class<u64>) -> Level {
    let (wraps, slice, after_chase, unknown) = (None, vec![], None, None);
    let (head, paths, agree, has_loops) = (0x1000, 1, 1, false);
    Level { head, class, wraps, slice, paths, agree, has_loops, after_chase, unknown }
}

fn access(classes: &[Class<u64>]) -> Access {
    Access { levels: classes.iter().cloned().map(level).collect() }
}

fn indirect() -> Class<u64> {
    Class::Indirect { of: 0x1000, scale: 8, inner: Box::new(Class::Stride(4)) }
}

fn why(refused: Option<Refusal>) -> Option<String> {
    refused.map(|one| one.to_string())
}

fn timed(iterations: &[(u64, u64)], trips: Trips) -> Option<Timed> {
    Some(Timed { iterations: iterations.to_vec(), has_cycles: true, trips, ..Timed::default() })
}

fn sampled(latencies: &[(u64, u64)], first_cache: u64) -> Option<Sampled> {
    Some(Sampled {
        samples: latencies.iter().map(|(_, n)| n).sum(),
        first_cache,
        latencies: latencies.to_vec(),
        least_latency: Some(30),
        share_of_loop: 1.0,
    })
}

/// Back edges taken in windows in which the loop does not end.
fn long(taken: u64) -> Trips {
    Trips { taken, at_least: Some(32), ..Trips::default() }
}

fn four() -> Trips {
    Trips {
        whole: vec![(4, 482)],
        taken: 1655,
        entered: 540,
        left: 540,
        at_least: Some(4),
        ..Trips::default()
    }
}

/// Hits and misses of three levels over 80 cycles: MC = 650 − 80, 570 ÷ 80 = 7.1, rounded up.
#[test]
fn iterations_without_misses_are_confirmed_by_the_latencies_of_the_others() {
    let access = access(&[indirect()]);
    let request = Request {
        access: Some(&access),
        loops: vec![timed(&[(80, 466), (230, 246), (400, 7), (650, 90)], long(836))],
        sampled: sampled(&[(155, 34), (325, 3), (575, 12)], 0),
        ..Request::default()
    };
    let advice = advise(&request);
    let modes: Vec<u64> = advice.modes.iter().map(|mode| mode.at).collect();
    assert_eq!(modes, [80, 230, 650]);
    assert_eq!(advice.ic.unwrap().cycles, 80.0);
    assert_eq!((advice.mc, advice.distance.clone()), (Ok(570.0), Ok(8)));
    assert_eq!((advice.site, advice.refused), (Ok(Site::Inner), None));
    assert!((advice.coverage.unwrap() - (1.0 - 8.0 * 3.0 / 836.0)).abs() < 1e-9);
}

/// Iterations that take 40 cycles and always miss: the lowest mode alone would give a distance of 3.
#[test]
fn iterations_that_all_miss_have_no_cost_and_short_loops_an_outer_site() {
    let access = access(&[Class::Stride(65_536), indirect()]);
    let inner = timed(&[(190, 27), (360, 180), (610, 850)], four());
    let latencies = sampled(&[(155, 3), (325, 40), (575, 66)], 0);
    let mut request = Request {
        access: Some(&access),
        loops: vec![inner, timed(&[(2191, 200)], long(500))],
        sampled: latencies,
        ..Request::default()
    };
    let advice = advise(&request);
    assert_eq!(advice.ic, Err(Missing::AllMiss(Some(30))));
    assert_eq!((advice.trips, advice.site), (TripCount::Exactly(4), Ok(Site::Outer)));
    assert!(advice.distance.is_err());
    // Measured: 570 ÷ (4 × 40) = 3.6, rounded up.
    request.measured =
        Some(Measured { cycles: 40.0, range: (40.0, 40.0), source: "measured block".to_owned() });
    let advice = advise(&request);
    let ic = advice.ic.unwrap();
    assert_eq!((ic.cycles, advice.mc, advice.distance), (160.0, Ok(570.0), Ok(4)));
    assert_eq!((ic.range, advice.distances), (Some((160.0, 160.0)), None));
    let range = (30.0, 80.0);
    let source = "measured block".to_owned();
    request.measured = Some(Measured { cycles: 40.0, range, source });
    let wide = advise(&request);
    assert_eq!((wide.distance, wide.distances), (Ok(4), Some((2, 5))));
    assert!(ic.source.contains("measured block"));
    assert_eq!(advice.site, Ok(Site::Outer));
}

#[test]
fn samples_that_hit_confirm_the_lowest_mode() {
    let access = access(&[Class::Complex { ahead: Ahead::Directly }]);
    let request = |first_cache| Request {
        access: Some(&access),
        loops: vec![timed(&[(10, 500), (200, 500)], long(5000))],
        sampled: sampled(&[(5, 40), (190, 40)], first_cache),
        ..Request::default()
    };
    let advice = advise(&request(40));
    assert_eq!((advice.ic.unwrap().cycles, advice.distance), (10.0, Ok(19)));
    let Some(level) = access.innermost() else { panic!() };
    assert!(level.class.is_computable_ahead());
}

/// No time for an iteration is no IC, and a distance beyond all bounds none.
#[test]
fn iterations_of_no_cycles_have_no_cost() {
    let access = access(&[indirect()]);
    let request = |lowest| Request {
        access: Some(&access),
        loops: vec![timed(&[(lowest, 500), (9000, 500)], long(5000))],
        sampled: sampled(&[(5, 40), (9000, 40)], 40),
        ..Request::default()
    };
    let mut none = request(0);
    let advice = advise(&none);
    assert!(advice.distance.is_err() && advice.ic == Err(Missing::NoTime));
    none.measured =
        Some(Measured { cycles: 40.0, range: (40.0, 40.0), source: "measured block".to_owned() });
    assert_eq!(advise(&none).distance, Ok(224));
    let advice = advise(&request(1));
    let far = advice.distance.unwrap_err().to_string();
    assert!(advice.ic.is_ok() && far.contains("more than 4096"), "{far}");
    // Ends without entries, and 0 trips, are no trips.
    let mut short = request(0);
    short.loops = vec![timed(&[(0, 500)], Trips { left: 50, ..Trips::default() })];
    assert_eq!(advise(&short).trips, TripCount::Unknown);
}

#[test]
fn one_mode_is_not_no_misses() {
    let access = access(&[Class::Stride(4096)]);
    let request = Request {
        access: Some(&access),
        loops: vec![timed(&[(321, 130), (571, 9531), (572, 9535)], long(19_872))],
        sampled: sampled(&[(575, 877)], 0),
        ..Request::default()
    };
    let advice = advise(&request);
    assert!(advice.ic.is_err() && advice.distance.is_err() && advice.refused.is_none());
    assert_eq!(advice.modes.len(), 1);
}

#[test]
fn without_cycles_nothing_in_cycles_is_known() {
    let access = access(&[indirect()]);
    let timed = Timed { trips: long(836), ..Timed::default() };
    let request = Request {
        access: Some(&access),
        loops: vec![Some(timed)],
        sampled: sampled(&[(155, 34), (575, 12)], 0),
        ..Request::default()
    };
    let advice = advise(&request);
    assert_eq!(advice.ic, Err(Missing::NoCycles));
    assert_eq!(advice.distance, Err(Missing::NoCycles));
}

/// A loop of 5 cycles whose load takes 400 cycles from memory, 150 from L3 and 5 from L1: 395 ÷ 5 = 79.
fn probed(dram: f64, class: Kind) -> Option<Probed> {
    let served = |level, share, cycles| Served { level, share, cycles };
    let levels = vec![
        served(Cache::L1, 0.9 - dram, 5.0),
        served(Cache::L3, 0.1, 150.0),
        served(Cache::Memory, dram, 400.0),
    ];
    Some(Probed { executions: 4000, levels, hit: 5.0, class: Some(class), ..Probed::default() })
}

/// All executions of a loop, counted.
fn counted(entries: u64, iterations: u64) -> Option<Timed> {
    let taken = iterations - entries;
    let all =
        Trips { taken, entered: entries, left: entries, is_complete: true, ..Trips::default() };
    Some(Timed { trips: all, ..Timed::default() })
}

#[test]
fn fenced_latencies_and_counts_take_the_place_of_recordings() {
    let access = access(&[indirect()]);
    let mut request = Request {
        access: Some(&access),
        loops: vec![counted(2, 10_000)],
        measured: Some(Measured {
            cycles: 5.0,
            range: (5.0, 5.0),
            source: "measured block".to_owned(),
        }),
        probed: probed(0.6, Kind::Indirect),
        ..Request::default()
    };
    let advice = advise(&request);
    assert_eq!((advice.refused, advice.distance), (None, Ok(79)));
    assert_eq!((advice.trips, advice.site), (TripCount::About(5000.0), Ok(Site::Inner)));
    assert!(advice.mc_source.unwrap().starts_with("fenced latency by probes: DRAM serves 60 %"));
    // Memory serves less than 5 %: (150 − 5) ÷ 5.
    request.probed = probed(0.04, Kind::Irregular);
    assert_eq!(advise(&request).distance, Ok(29));
    request.measured = None;
    let advice = advise(&request);
    assert!(advice.distance.is_err() && advice.ic == Err(Missing::NotMeasured));
    assert_eq!(advice.mc, Ok(145.0));
}

/// 8 trips of 5 cycles: 395 ÷ 40 = 9.9, in the loop around it.
#[test]
fn counted_trips_choose_the_loop() {
    let access = access(&[indirect(), indirect()]);
    let request = Request {
        access: Some(&access),
        loops: vec![counted(1000, 8000), counted(1, 1000)],
        measured: Some(Measured {
            cycles: 5.0,
            range: (5.0, 5.0),
            source: "measured block".to_owned(),
        }),
        probed: probed(0.6, Kind::Indirect),
        ..Request::default()
    };
    let advice = advise(&request);
    assert_eq!((advice.site, advice.distance, advice.mc), (Ok(Site::Outer), Ok(10), Ok(395.0)));
    assert_eq!(advice.coverage, Ok(1.0 - 10.0 / 1000.0));
    // Rows that lie one after the other: a break each 2,000 steps. 395 ÷ 5 = 79; 5 × 79 < 2,000.
    let steps = |taken, left| Some(Trips { taken, left, ..Trips::default() });
    let with = |steps| Request {
        probed: probed(0.6, Kind::Indirect).map(|own| Probed { steps, ..own }),
        ..request.clone()
    };
    let advice = advise(&with(steps(40_000, 20)));
    assert_eq!((advice.site, advice.distance), (Ok(Site::Inner), Ok(79)));
    assert_eq!(advice.coverage, Ok(1.0 - 79.0 / 2000.0));
    assert_eq!(advice.runs_on, Some(TripCount::About(2000.0)));
    // A break after each execution of the loop.
    assert_eq!(advise(&with(steps(7000, 1000))).site, Ok(Site::Outer));
}

#[test]
fn loads_that_hit_or_whose_class_is_not_certain_are_refused() {
    let refused = |class: Class<u64>, probed: Option<Probed>| {
        let access = access(&[class]);
        why(advise(&Request { access: Some(&access), probed, ..Request::default() }).refused)
    };
    let hits = |share: f64| {
        let level = |level, share| Served { level, share, cycles: 5.0 };
        let levels = vec![level(Cache::L1, share), level(Cache::Memory, 1.0 - share)];
        Some(Probed { executions: 4000, levels, hit: 5.0, ..Probed::default() })
    };
    assert!(
        refused(indirect(), hits(0.97))
            .unwrap()
            .contains("it already hits: 97.0 % of its timed executions in L1")
    );
    assert!(refused(Class::Stride(8), hits(0.88)).unwrap().contains("stride that already hits"));
    assert_eq!(refused(indirect(), probed(0.6, Kind::Irregular)), None);
    assert!(refused(indirect(), probed(0.6, Kind::Stride)).unwrap().contains("stride as recorded"));
    assert!(refused(Class::Stride(8), probed(0.6, Kind::PointerChase)).is_some());
    let untimed = Probed { untimed: Some("it is atomic".to_owned()), ..Probed::default() };
    assert!(refused(indirect(), Some(untimed)).unwrap().contains("not known: it is atomic"));
}

#[test]
fn prefetches_that_cannot_help_are_refused() {
    let chase = Class::Chase { scale: 1, offset: 0 };
    let refused = |class: Class<u64>, sampled: Option<Sampled>| {
        let access = access(&[class]);
        why(advise(&Request { access: Some(&access), sampled, ..Request::default() }).refused)
    };
    let misses = || sampled(&[(575, 100)], 0);
    assert!(refused(Class::Constant, misses()).unwrap().contains("always the same"));
    assert!(refused(chase.clone(), misses()).unwrap().contains("pointer chase"));
    let offset = Class::OffsetOfChase { of: 0x1004, offset: 24 };
    assert!(refused(offset, misses()).unwrap().contains("0x1004 chases"));
    let inner = Box::new(chase);
    assert!(refused(Class::Indirect { of: 0x1000, scale: 8, inner }, misses()).is_some());
    assert!(refused(indirect(), None).unwrap().contains("no sample has its latency"));
    assert!(refused(Class::Stride(8), sampled(&[(5, 90), (15, 10)], 90)).unwrap().contains("hits"));
    let leaf =
        Level { after_chase: Some(0x1004), ..level(Class::Complex { ahead: Ahead::Directly }) };
    let leaf = Access { levels: vec![leaf] };
    let request = Request { access: Some(&leaf), sampled: misses(), ..Request::default() };
    assert!(why(advise(&request).refused).unwrap().contains("0x1004 chases"));
    assert_eq!(refused(Class::Stride(4096), misses()), None);
    assert_eq!(refused(indirect(), misses()), None);
}

#[test]
fn what_is_not_known_decides_nothing() {
    let advised = |access: Option<&Access>, sampled: Option<Sampled>| {
        advise(&Request { access, sampled, ..Request::default() }).refused
    };
    let known = access(&[indirect()]);
    let undecided = |one: Option<Refusal>| one.is_some_and(|why| why.is_undecided());
    assert_eq!(advised(None, None), Some(Refusal::NoCode));
    assert!(
        undecided(advised(Some(&known), None))
            && undecided(advised(Some(&known), sampled(&[(9, 2)], 0)))
    );
    assert!(undecided(advised(Some(&access(&[Class::Irregular])), sampled(&[(575, 100)], 0))));
    let chase = access(&[Class::Chase { scale: 1, offset: 0 }]);
    assert_eq!(advised(Some(&chase), None), Some(Refusal::Chase));
}

/// A generator's next number needs all before: a copy of it may run ahead, if it is short.
#[test]
fn generators_are_copied_if_they_are_short() {
    let refused = |length: u64, has_loops| {
        let slice = (0..length).collect();
        let own = Level { slice, has_loops, ..level(Class::Complex { ahead: Ahead::ByCopy }) };
        let access = Access { levels: vec![own] };
        let sampled = sampled(&[(575, 100)], 0);
        why(advise(&Request { access: Some(&access), sampled, ..Request::default() }).refused)
    };
    assert_eq!(refused(11, false), None);
    let long = refused(100, false).unwrap();
    assert!(long.contains("needs all iterations before") && long.contains("100 instructions"));
    assert!(refused(11, true).unwrap().contains("loops within the loop"));
}

/// Records of 15 words of 4 bytes, found by a list of pointers: the first word of each misses, 395 ÷ (15 × 2) = 13.2.
#[test]
fn records_that_are_read_by_a_stride_are_prefetched_by_the_loop_around() {
    let served = |level, share, cycles| Served { level, share, cycles };
    let own = Probed {
        executions: 4000,
        levels: vec![served(Cache::L1, 0.93, 5.0), served(Cache::Memory, 0.07, 400.0)],
        hit: 5.0,
        class: Some(Kind::Stride),
        ..Probed::default()
    };
    let advice = |outer: Class<u64>, trips: u64| {
        let access = access(&[Class::Stride(4), outer]);
        let source = "measured block".to_owned();
        advise(&Request {
            access: Some(&access),
            loops: vec![counted(1000, 1000 * trips), counted(1, 1000)],
            measured: Some(Measured { cycles: 2.0, range: (2.0, 2.0), source }),
            probed: Some(own.clone()),
            ..Request::default()
        })
    };
    let found = advice(indirect(), 15);
    assert_eq!((found.refused, found.site, found.distance), (None, Ok(Site::Outer), Ok(14)));
    let refused = |advice: Advice| why(advice.refused).unwrap();
    // The rows of a matrix; and lines of a long record, which hardware prefetches fetch.
    assert!(refused(advice(Class::Stride(64), 15)).contains("already hits"));
    assert!(refused(advice(Class::Chase { scale: 1, offset: 0 }, 15)).contains("already hits"));
    assert!(refused(advice(indirect(), 5)).contains("already hits"), "0.35 misses each");
}
