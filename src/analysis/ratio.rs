//! How much more often a hot place is reached than a colder one around it, from windows in which
//! both were counted, and how well that is known.

use crate::collect::breakpoints::Together;
use crate::topdown::student_t95;

/// Entries of the colder place in the windows that a ratio needs.
const LEAST: u64 = 8;
/// Windows with anything in them that a ratio needs: the error is what they differ by.
const LEAST_WINDOWS: usize = 6;
/// Entries of the colder place that a window needs on average. A window ends with a hit of the hot
/// place: of windows with one or two entries of the colder one, where they end biases the ratio (a
/// loop of 3,000 turns in windows of 3,000 hits read a third of the truth, within 5 % of itself).
const LEAST_EACH: u64 = 10;
/// Largest relative error that is one: beyond it the windows are too unlike one another for the
/// quotient of two sums to be nearly normal, and the interval would be made up.
const MOST: f64 = 0.5;

/// Entries of the hot place, and the half width of a 95 % confidence interval as a ratio.
///
/// The start of the run, where both places were counted throughout, is taken as it is (`exact`); in
/// the rest the hot place is reached as often for each entry of the colder one (`colder` in all, with
/// its own error) as in the windows. The error is the delete-one jackknife of the quotient of the
/// sums over the windows, times Student's t (Efron and Stein 1981; as `topdown::jackknife`): windows
/// that begin and end between two entries of the colder place, and phases in which it goes around
/// more often than in others, are in it. `None`: too few windows or entries, or windows so unlike
/// that they do not stand for the run, as where few entries of the colder place take most of the time.
pub fn scaled(together: &Together, (colder, error): (f64, f64), exact: bool) -> Option<(f64, f64)> {
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
    let rest = colder - first.1 as f64;
    if rest < 0.0 {
        return None;
    }
    let total = first.0 as f64 + rest * ratio;
    // `error` is of all of the colder place, `own` of the rest alone.
    let error = (error * colder * ratio).hypot(own * rest * ratio) / total;
    (error <= MOST).then_some((total, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_windows_give_a_small_error_and_the_start_is_exact() {
        // 50 entries of 1,000 at the start; 12 windows, 30 entries of the colder place
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
