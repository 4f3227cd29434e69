//! How much more often a hot place is entered than its enclosing reference point, from windows in which
//! both were counted, and how well that is known: windows between entries of the reference point, or of time.

use pmu::breakpoints::{Sampled, Together, Window};
use tma::tree::student_t95;

/// Entries of the reference point in the windows that a ratio needs.
const LEAST: u64 = 8;
/// Windows with anything in them that a ratio needs: the error is what they differ by.
const LEAST_WINDOWS: usize = 6;
/// Entries of the reference point that a window needs on average. A window ends with a hit of the hot
/// place: of windows with one or two entries of the reference point, where they end biases the ratio (a
/// loop of 3,000 iterations in windows of 3,000 hits read a third of the truth, within 5 % of itself).
const LEAST_EACH: u64 = 10;
/// Largest relative error that is one: beyond it the windows are too unlike one another for the
/// quotient of two sums to be nearly normal, and the interval would be made up.
const MOST: f64 = 0.5;

/// Entries of the hot place, and the half width of a 95 % confidence interval as a ratio.
///
/// The start of the run, where both places were counted throughout, is taken as it is (`exact`); in
/// the rest the hot place is reached as often for each entry of the reference point (`reference` in all, with
/// its own error) as in the windows. The error is the delete-one jackknife of the quotient of the
/// sums over the windows, times Student's t (Efron and Stein 1981; as `topdown::jackknife`): windows
/// that begin and end between two entries of the reference point, and phases in which it goes around
/// more often than in others, are in it. `None`: too few windows or entries, or windows so unlike
/// that they do not stand for the run, as where few entries of the reference point take most of the time.
pub fn scaled(
    together: &Together,
    (reference, error): (f64, f64),
    exact: bool,
) -> Option<(f64, f64)> {
    let windows: Vec<(u64, u64)> =
        together.windows.iter().copied().filter(|(hits, base)| hits + base > 0).collect();
    let number = windows.len();
    let (hits, base) = windows.iter().fold((0, 0), |sum, w| (sum.0 + w.0, sum.1 + w.1));
    let few = base < LEAST_EACH.saturating_mul(number as u64);
    if number < LEAST_WINDOWS || base < LEAST || few || hits == 0 {
        return None;
    }
    let quotient = |hits: u64, base: u64| (base > 0).then(|| hits as f64 / base as f64);
    let ratio = quotient(hits, base)?;
    let without: Option<Vec<f64>> =
        windows.iter().map(|w| quotient(hits - w.0, base - w.1)).collect();
    let without = without?;
    let mean = without.iter().sum::<f64>() / number as f64;
    let squares: f64 = without.iter().map(|r| (r - mean).powi(2)).sum();
    let spread = (squares * (number as f64 - 1.0) / number as f64).sqrt();
    let own = student_t95(number - 1) * spread / ratio;
    let first = if exact { together.first } else { (0, 0) };
    let rest = reference - first.1 as f64;
    if rest < 0.0 {
        return None;
    }
    let total = first.0 as f64 + rest * ratio;
    // `error` is of all of the reference point, `own` of the rest alone.
    let error = (error * reference * ratio).hypot(own * rest * ratio) / total;
    (error <= MOST).then_some((total, error))
}

/// Of windows between entries of the reference point: entries of the hot place, and the half width of a 95 % confidence
/// interval as a ratio. `reference`: entries of its reference point, with their own error.
///
/// The start of the run is taken as it is. The rest is the stratified estimate (Cochran, Sampling
/// Techniques, 3rd edition, 1977, section 5.3): the reference entries of each stratum times the hits for each
/// in its window. `None`: too few windows, or such as do not stand for the run.
pub fn carried(sampled: &Sampled, (reference, error): (f64, f64)) -> Option<(f64, f64)> {
    let (hits, first) = (sampled.first.0 as f64, sampled.first.1 as f64);
    let rest = reference - first;
    if sampled.unusable.is_some() || rest < 0.0 {
        return None;
    }
    if rest == 0.0 {
        return (hits > 0.0).then_some((hits, error));
    }
    let (ratio, own) = hits_per_reference_entry(&sampled.windows)?;
    let total = hits + rest * ratio;
    // Windows that are all alike do not exclude that another one differs: the hits of one reference entry are the least error.
    let looked: u64 = sampled.windows.iter().map(|w| w.reference_entries).sum();
    let least = if rest > looked as f64 { ratio } else { 0.0 };
    let own = (own * rest * ratio).max(least);
    let error = (error * reference * ratio).hypot(own) / total;
    (total > 0.0 && error <= MOST).then_some((total, error))
}

/// Hits for each reference entry, averaged over all strata, and the half width of its 95 % interval as a ratio.
///
/// There is one window in a stratum, so the variance within one is estimated from
/// adjacent ones: half the square of their difference (successive differences: Wolter, Introduction
/// to Variance Estimation, 2nd edition, 2007, section 8.2), less the part of the stratum that was
/// sampled (finite population correction: Cochran 1977, section 2.6). For normal values that has
/// two thirds of the degrees of freedom of all windows (von Neumann and others 1941), for Student's t.
fn hits_per_reference_entry(windows: &[Window]) -> Option<(f64, f64)> {
    let windows: Vec<&Window> = windows.iter().filter(|w| w.reference_entries > 0).collect();
    if windows.len() < LEAST_WINDOWS {
        return None;
    }
    let each = |w: &Window| w.hits as f64 / w.reference_entries as f64;
    let stands_for = |w: &Window| w.stratum.max(w.reference_entries) as f64 * w.weight;
    let of_all: f64 = windows.iter().map(|w| stands_for(w)).sum();
    let hits: f64 = windows.iter().map(|w| stands_for(w) * each(w)).sum();
    let squares = windows.iter().enumerate().map(|(at, window)| {
        let beside = [at.checked_sub(1), Some(at + 1)];
        let beside: Vec<f64> = beside
            .into_iter()
            .flatten()
            .filter_map(|b| windows.get(b))
            .map(|b| (each(b) - each(window)).powi(2) / 2.0)
            .collect();
        let within = beside.iter().sum::<f64>() / beside.len() as f64;
        let left = 1.0
            - window.reference_entries as f64 / window.stratum.max(window.reference_entries) as f64;
        stands_for(window).powi(2) * within * left
    });
    let spread = squares.sum::<f64>().sqrt();
    let degrees = (2 * (windows.len() - 1) / 3).max(1);
    (hits > 0.0).then(|| (hits / of_all, student_t95(degrees) * spread / hits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(hits: u64, reference_entries: u64, size: u64) -> Window {
        Window { hits, reference_entries, stratum: size, weight: 1.0 }
    }

    fn sampled(first: (u64, u64), windows: Vec<Window>) -> Sampled {
        Sampled { reference: 1, first, windows, unusable: None }
    }

    #[test]
    fn strata_count_by_their_reference_entries() {
        // 10 reference entries of 100 hits each at the start. 90 are left: one in ten was sampled, but
        // for the last, larger stratum; hits 100, 120, 100, 120, 100, 120 of sizes 10 five times and 40.
        let hits = [100, 120, 100, 120, 100, 120];
        let mut windows: Vec<Window> = hits.iter().map(|h| window(*h, 1, 10)).collect();
        windows[5].stratum = 40;
        // By hand: 10 × (100+120+100+120+100) + 40 × 120 = 10,200 hits.
        let (total, error) = carried(&sampled((1_000, 10), windows), (100.0, 0.0)).expect("known");
        assert!((total - 11_200.0).abs() < 1e-6, "{total}");
        // Adjacent ones differ by 20: 200 within each stratum. 5 × 10² × 200 × 0.9 + 40² × 200 × 0.975
        // = 402,000, root 634.0; t(3) = 3.182: 2,017 of 11,200.
        assert!((error - 0.18013).abs() < 1e-4, "{error}");
    }

    #[test]
    fn what_was_counted_whole_is_exact() {
        let windows = (1..=8).map(|n| window(100 * n, 10, 10)).collect();
        let found = carried(&sampled((0, 0), windows), (80.0, 0.0)).expect("known");
        assert_eq!(found, (3_600.0, 0.0));
    }

    /// gzip's longest_match, 153 reference entries: ten windows that were all alike gave 0.3 % too many.
    #[test]
    fn windows_all_alike_leave_one_reference_entry_in_doubt() {
        let windows = vec![window(32_768, 1, 15); 10];
        let (total, error) = carried(&sampled((98_304, 3), windows), (153.0, 0.0)).expect("known");
        assert!((error * total - 32_768.0).abs() < 1e-3, "{error} of {total}");
    }

    #[test]
    fn a_window_too_long_to_be_counted_leaves_no_number() {
        let windows = vec![window(100, 1, 10); 20];
        let mut too_long = sampled((1_000, 10), windows);
        assert!(carried(&too_long, (300.0, 0.0)).is_some());
        too_long.unusable = Some(pmu::breakpoints::Unusable::WindowTooLong(200_000));
        assert_eq!(carried(&too_long, (300.0, 0.0)), None);
        assert_eq!(carried(&sampled((1_000, 10), vec![window(9, 1, 9); 5]), (55.0, 0.0)), None);
    }

    #[test]
    fn each_window_of_a_stratum_may_stand_for_many_of_the_run() {
        // Half of the strata lie where one reference entry in ten was counted, half where one in a hundred: by
        // hand (10 × 50 + 100 × 70) / 110.
        let mut windows = vec![window(50, 1, 4); 6];
        windows.extend([window(70, 1, 4); 6]);
        windows[..6].iter_mut().for_each(|w| w.weight = 10.0);
        windows[6..].iter_mut().for_each(|w| w.weight = 100.0);
        let (total, _) = carried(&sampled((0, 0), windows), (1_000.0, 0.0)).expect("known");
        assert!((total - 1_000.0 * 7_500.0 / 110.0).abs() < 1e-6, "{total}");
    }

    #[test]
    fn even_windows_give_a_small_error_and_the_start_is_exact() {
        // 50 entries of 1,000 at the start; 12 windows, 30 entries of the reference point
        // in all but one; 950 entries of it are left.
        let mut windows = vec![(30_000, 30); 12];
        windows[4] = (30_000, 20);
        let together = Together { first: (50_000, 50), windows };
        let (total, error) = scaled(&together, (1_000.0, 0.0), true).expect("known");
        let ratio = 360_000.0 / 350.0;
        assert!((total - (50_000.0 + 950.0 * ratio)).abs() < 1e-6, "{total}");
        // Leaving one out: 330,000/320 eleven times, 330,000/330 once. By hand: mean 1,028.6458, sum of
        // squares 895.18, times 11/12, root 28.646; t(11) = 2.201; 6.13 % of the ratio, 95.1 % of it.
        assert!((error - 0.0583).abs() < 3e-4, "{error}");
    }

    #[test]
    fn growing_loops_are_not_taken_for_even_ones() {
        // std::unordered_map: each growth goes around twice as often as the one before. The first
        // thirteen are counted; the last ones hold nearly everything, one window after another
        // inside a single entry.
        let together = Together { first: (53_000, 13), windows: vec![(3_000, 0); 40] };
        assert_eq!(scaled(&together, (17.0, 0.0), true), None);
        // As before with many small maps beside it in a few windows alone.
        let mut windows = vec![(3_000, 0); 40];
        windows[7] = (3_000, 300);
        let together = Together { first: (50_000, 900), windows };
        assert_eq!(scaled(&together, (9_000.0, 0.0), true), None);
    }

    #[test]
    fn few_windows_give_no_number() {
        let together = Together { first: (50_000, 50), windows: vec![(3_000, 3); 5] };
        assert_eq!(scaled(&together, (1_000.0, 0.0), true), None);
    }
}
