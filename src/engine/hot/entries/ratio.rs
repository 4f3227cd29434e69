//! How much more often a hot place is entered than its enclosing reference point, from windows of time
//! in which both were counted, and how well that is known.

use pmu::breakpoints::Together;
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
/// The hot place is reached as often for each entry of the reference point (`reference` in all, with its own
/// error) as in the windows. The error is the delete-one jackknife of the quotient of the
/// sums over the windows, times Student's t (Efron and Stein 1981; as `topdown::jackknife`): windows
/// that begin and end between two entries of the reference point, and phases in which it goes around
/// more often than in others, are in it. `None`: too few windows or entries, or windows so unlike
/// that they do not stand for the run, as where few entries of the reference point take most of the time.
pub fn scaled(together: &Together, (reference, error): (f64, f64)) -> Option<(f64, f64)> {
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
    let error = error.hypot(own);
    (error <= MOST).then_some((reference * ratio, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_windows_give_a_small_error() {
        // 12 windows, 30 entries of the reference point in all but one.
        let mut windows = vec![(30_000, 30); 12];
        windows[4] = (30_000, 20);
        let together = Together { windows, ..Together::default() };
        let (total, error) = scaled(&together, (1_000.0, 0.0)).expect("known");
        let ratio = 360_000.0 / 350.0;
        assert!((total - 1_000.0 * ratio).abs() < 1e-6, "{total}");
        // Leaving one out: 330,000/320 eleven times, 330,000/330 once. By hand: mean 1,028.6458, sum of
        // squares 895.18, times 11/12, root 28.646; t(11) = 2.201; 6.13 % of the ratio.
        assert!((error - 0.0613).abs() < 3e-4, "{error}");
    }

    #[test]
    fn growing_loops_are_not_taken_for_even_ones() {
        // std::unordered_map: each growth goes around twice as often as the one before. The first
        // thirteen are counted; the last ones hold nearly everything, one window after another
        // inside a single entry.
        let together = Together { first: (53_000, 13), windows: vec![(3_000, 0); 40] };
        assert_eq!(scaled(&together, (17.0, 0.0)), None);
        // As before with many small maps beside it in a few windows alone.
        let mut windows = vec![(3_000, 0); 40];
        windows[7] = (3_000, 300);
        let together = Together { first: (50_000, 900), windows };
        assert_eq!(scaled(&together, (9_000.0, 0.0)), None);
    }

    #[test]
    fn few_windows_give_no_number() {
        let together = Together { first: (50_000, 50), windows: vec![(3_000, 3); 5] };
        assert_eq!(scaled(&together, (1_000.0, 0.0)), None);
    }
}
