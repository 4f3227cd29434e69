//! How windows with probes are spread over a run of a command that runs for long enough.

use probe::bursts::Spread;
use std::time::Duration;

/// Seconds of a run from which on it is recorded in windows: of shorter ones they see too little.
const LONG: f64 = 0.3;
/// Share of the run in windows of all kinds, whose probes slow it about twice.
pub(super) const SHARE: f64 = 0.25;
/// Seconds of a window: the process is stopped for some milliseconds around each, and is to do much more between; at least
/// where there are only the fewest, and usually.
const SHORTEST: f64 = 0.01;
const USUAL: f64 = 0.02;
const LONGEST: f64 = 0.1;
/// Windows of each kind: a phase that is missed by all is short.
const FEWEST: f64 = 4.0;
const MOST: f64 = 24.0;

/// The windows of a run of this many seconds, for so many kinds of recordings.
pub(super) fn spread(plain: f64, kinds: usize) -> Option<Spread> {
    if plain < LONG || kinds == 0 {
        return None;
    }
    let kinds = kinds as f64;
    let of_each = SHARE * plain / kinds;
    let most = (of_each / USUAL).floor().clamp(FEWEST, MOST);
    let length = (of_each / most).clamp(SHORTEST, LONGEST);
    let pause = (plain / (kinds * most) - length).max(0.0);
    let [length, pause] = [length, pause].map(Duration::from_secs_f64);
    Some(Spread { length, pause, most: most as usize })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: a quarter of 12 s in 24 windows of each of three kinds is 1/24 s for each, and 1/8 s between.
    #[test]
    fn windows_are_a_share_of_the_run_and_spread_over_it() {
        assert_eq!(spread(0.2, 3), None);
        let found = spread(12.0, 3).expect("windows");
        assert_eq!(found.most, 24);
        assert!((found.length.as_secs_f64() - 1.0 / 24.0).abs() < 1e-6, "{found:?}");
        assert!((found.pause.as_secs_f64() - 1.0 / 8.0).abs() < 1e-6, "{found:?}");
        for plain in [0.7, 1.0, 3.0, 30.0, 300.0] {
            for kinds in 1..=3 {
                let found = spread(plain, kinds).expect("windows");
                let number = (found.most * kinds) as f64;
                let all = number * (found.length + found.pause).as_secs_f64();
                assert!((all / plain - 1.0).abs() < 0.01, "{plain} {kinds}: {found:?}");
                let share = number * found.length.as_secs_f64() / plain;
                assert!(share <= 0.36, "{plain} {kinds}: {share}");
            }
        }
    }
}
