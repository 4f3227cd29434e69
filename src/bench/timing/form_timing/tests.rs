//! Results of rounds in several states.

use super::*;

/// Batches of four equal rounds.
fn timed(pairs: &[(f64, f64)]) -> FormTiming {
    let of = |v: f64| vec![v; 4];
    let batches = pairs.iter().map(|(long, short)| Batch {
        placement: 0,
        long: of(*long),
        short: of(*short),
    });
    FormTiming {
        tolerance: 0.008,
        between: 1000.0,
        batches: batches.collect(),
        ..FormTiming::default()
    }
}

#[test]
fn the_fastest_state_that_batches_agree_on_is_the_result() {
    // A third of the long runs and one short run are in a slower state.
    let t = timed(&[
        (2000.0, 1000.0),
        (2002.0, 1001.0),
        (2400.0, 1002.0),
        (1998.0, 999.0),
        (2410.0, 1200.0),
        (2000.0, 998.0),
    ]);
    assert!(t.is_reproduced());
    // The mean of 1,000, 1,001, 999 and 1,002 cycles.
    assert!((t.cycles().unwrap() - 1.0005).abs() < 1e-9);
    let (low, high) = t.range().unwrap();
    assert!(low < 1.0 && 1.0 < high && high - low < 0.01);
    // As cycles of a round: 1, 1.21 and 1.4.
    assert_eq!(t.modes().len(), 3);
}

/// Three calibrations with an error of 0.3 % each: 0.3 / √3 of the result, twice that to each side.
#[test]
fn the_error_of_the_clock_widens_the_range() {
    let t = FormTiming { clock_errors: vec![0.003; 3], ..timed(&[(2000.0, 1000.0); 4]) };
    let (low, high) = t.range().unwrap();
    let error = 2.0 * 0.003 / 3.0f64.sqrt();
    assert!((low - (1.0 - error)).abs() < 1e-9 && (high - (1.0 + error)).abs() < 1e-9);
}

/// Rounds slowed by 0 to 48 cycles, each both of its runs: every difference is 1,000.
#[test]
fn what_slows_both_runs_of_a_round_cancels() {
    let mut t = timed(&[(2000.0, 1000.0); 6]);
    for (i, batch) in t.batches.iter_mut().enumerate() {
        let slow = |n: usize| (12 * ((n + i) % 5)) as f64;
        batch.long = (0..16).map(|n| 2000.0 + slow(n)).collect();
        batch.short = (0..16).map(|n| 1000.0 + slow(n)).collect();
    }
    assert!(t.is_reproduced());
    assert!((t.cycles().unwrap() - 1.0).abs() < 1e-9, "{:?}", t.cycles());
}

/// Some long runs are faster than twice the short one: the state that no whole run was in.
#[test]
fn the_usual_state_is_that_of_most_rounds() {
    let mut t = timed(&[(3800.0, 2000.0); 6]);
    for batch in &mut t.batches {
        batch.long[1] = 2260.0;
    }
    t.usual = true;
    assert!(t.is_reproduced() && (t.cycles().unwrap() - 1.8).abs() < 1e-9, "{:?}", t.cycles());
}

#[test]
fn a_single_fast_batch_is_no_state() {
    let t = timed(&[(1500.0, 1000.0), (2000.0, 1000.0), (2001.0, 1000.0), (2002.0, 1000.0)]);
    assert!((t.cycles().unwrap() - 1.001).abs() < 1e-9);
}

#[test]
fn a_state_that_batches_are_in_for_some_rounds_only_is_found() {
    let mut t = timed(&[(2000.0, 1000.0); 6]);
    for (i, batch) in t.batches.iter_mut().enumerate() {
        // The clock counts in steps of 2.5; two stray rounds lie lower.
        let fast = 2000.0 + 2.5 * (i % 2) as f64;
        batch.long = [fast, 2402.5, fast, 2498.0].to_vec();
    }
    t.batches[0].long[3] = 1975.0;
    t.batches[1].long[3] = 1700.0;
    assert!(t.is_reproduced());
    assert!((t.cycles().unwrap() - 1.001_25).abs() < 1e-9, "{:?}", t.cycles());
    // Not reproduced where they are all of one batch.
    let mut one = timed(&[(2500.0, 1000.0), (2600.0, 1000.0), (2700.0, 1000.0), (2800.0, 1000.0)]);
    one.batches[0].long = vec![2000.0; 16];
    assert!(!one.is_reproduced());
}

/// The long run is fast where the short one is slow and the other way round: by hand, the
/// fastest states alone give (2000 − 1000) / 1000 = 1, which no round took; the batches
/// take 0.8 and 1.3.
#[test]
fn the_result_is_one_that_rounds_gave() {
    let t = timed(&[
        (2000.0, 1200.0),
        (2300.0, 1000.0),
        (2001.0, 1201.0),
        (2301.0, 1001.0),
        (1999.0, 1199.0),
        (2299.0, 999.0),
    ]);
    let (low, high) = t.batch_range().unwrap();
    let cycles = t.cycles().unwrap();
    assert!((low, high) == (0.8, 1.3) && (cycles - 0.8).abs() < 1e-9, "{cycles}");
    // Two kinds of equally fast rounds: neither is the result.
    let mixed = timed(&[(2000.0, 1200.0), (2200.0, 1000.0), (2001.0, 1201.0), (2201.0, 1001.0)]);
    assert!(!mixed.is_reproduced());
}

/// Medians of batches from 1 to 1.09, no two rounds of which are alike: all that is known is that
/// the block takes that.
#[test]
fn batches_close_together_are_a_result_with_a_wide_range() {
    let apart = |between: f64| {
        let long = |i: usize| 2000.0 + 1000.0 * between * i as f64 / 7.0;
        timed(&(0..8).map(|i| (long(i), 1000.0 + 7.0 * (i % 2) as f64)).collect::<Vec<_>>())
    };
    let mut close = apart(0.09);
    close.batches.iter_mut().for_each(|b| b.long.truncate(1));
    close.batches.iter_mut().for_each(|b| b.short.truncate(1));
    assert!(close.agreeing() == (0, 0) && close.is_reproduced());
    let ((low, high), cycles) = (close.range().unwrap(), close.cycles().unwrap());
    assert!(low < 1.0 + 1e-9 && high > 1.08 && low < cycles && cycles < high);
    let mut wide = apart(0.2);
    wide.batches.iter_mut().for_each(|b| b.long.truncate(1));
    wide.batches.iter_mut().for_each(|b| b.short.truncate(1));
    assert!(!wide.is_reproduced());
}

#[test]
fn batches_that_never_agree_are_not_reproduced() {
    let t = timed(&[(2000.0, 1000.0), (2100.0, 1000.0), (2200.0, 1000.0), (2300.0, 1000.0)]);
    assert!(!t.is_reproduced());
    assert_eq!(t.range(), Some((1.0, 1.3)));
}

/// Each run is in one of two states by itself, as `mov [rsi],rax; mov rax,[rsi]` on a Golden Cove: where the short run
/// is in the slow one and the long run in the fast one, it takes longer.
#[test]
fn runs_with_states_of_their_own_have_no_result() {
    let mut t = timed(&[(2000.0, 1000.0); 6]);
    for (i, batch) in t.batches.iter_mut().enumerate() {
        // Fast and slow by turns of another length for each, and noise.
        let state = |slow: bool, cycles: f64| if slow { 7.3 * cycles } else { cycles };
        batch.long = (0..16).map(|n| state((n + i) % 5 > 0, 2000.0)).collect();
        batch.short = (0..16).map(|n| state((n + 2 * i) % 3 > 0, 1000.0)).collect();
    }
    assert!(t.pairs().any(|(_, (long, short))| long < short));
    assert!(!t.is_reproduced(), "{:?}", t.modes());
    // Slow rounds alone are disturbances: there the short run is never the longer one.
    for batch in &mut t.batches {
        batch.short = vec![1000.0; 16];
    }
    assert!(t.is_reproduced());
}
