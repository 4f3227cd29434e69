//! How often a loop goes round, from executions that branch stacks show in part.

/// Ends from which a mean is taken: its standard error is then below a third.
const ENOUGH: u64 = 10;
/// Whole executions from which equal trips are taken to be always equal.
const EQUAL: u64 = 20;

/// Recorded trips of a loop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trips {
    /// Trips of executions seen from beginning to end, and how many had them.
    pub whole: Vec<(u64, u64)>,
    /// How often the head was entered again, as by the back edge.
    pub taken: u64,
    /// How often the loop was seen to be entered, …
    pub entered: u64,
    /// … and to be left.
    pub left: u64,
    /// Most trips seen of an execution that is not whole.
    pub at_least: Option<u64>,
    /// Whether that is all there was: counts, not samples.
    pub is_complete: bool,
}

/// How often an execution enters the head of a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TripCount {
    /// Always this number, as far as was seen.
    Exactly(u64),
    /// This number on average: entries of the head ÷ ends, both as recorded.
    About(f64),
    /// Executions are longer than what is recorded of one: at least so often on average. With at most k ends
    /// seen, the expected number is below k + 2 √k + 3 with 95 % confidence (for k = 0: Hanley and
    /// Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 1983).
    AtLeast(f64),
    /// Nothing was recorded.
    Unknown,
}

impl Trips {
    /// The trip count.
    pub fn count(&self) -> TripCount {
        let whole: u64 = self.whole.iter().map(|(_, n)| n).sum();
        if let [(trips, _)] = self.whole[..]
            && whole >= EQUAL
            && self.at_least.is_none_or(|least| least <= trips)
        {
            return TripCount::Exactly(trips);
        }
        let entries = (self.taken + self.entered) as f64;
        if entries == 0.0 {
            return TripCount::Unknown;
        }
        if self.left >= ENOUGH || self.is_complete && self.left > 0 {
            return about(entries, self.left as f64);
        }
        if self.taken == 0 {
            return TripCount::Unknown;
        }
        let most = self.left as f64 + 2.0 * (self.left as f64).sqrt() + 3.0;
        let seen = self.at_least.map_or(0.0, |least| least as f64);
        // Several executions must have been seen before one of them shows the mean.
        TripCount::AtLeast((entries / most).max(if self.left == 0 { seen } else { 1.0 }))
    }
}

/// The mean. An execution enters the head at least once: where far more ends than entries are seen, the addresses are no
/// loop with one head, as in code that is not known.
fn about(entries: f64, ends: f64) -> TripCount {
    match entries / ends {
        mean if mean >= 1.0 - 2.0 / ends.sqrt() => TripCount::About(mean.max(1.0)),
        _ => TripCount::Unknown,
    }
}

impl TripCount {
    /// The number, or the least that it can be.
    pub fn least(self) -> Option<f64> {
        match self {
            Self::Exactly(trips) => Some(trips as f64),
            Self::About(trips) | Self::AtLeast(trips) => Some(trips),
            Self::Unknown => None,
        }
    }

    /// Whether it is at least so often; `None` if that is not known.
    pub fn is_at_least(self, times: f64) -> Option<bool> {
        match self {
            Self::AtLeast(trips) => (trips >= times).then_some(true),
            other => other.least().map(|trips| trips >= times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trips_are_exact_a_mean_or_a_bound() {
        let inner = Trips {
            whole: vec![(4, 482)],
            taken: 1655,
            entered: 540,
            left: 545,
            at_least: Some(4),
            is_complete: false,
        };
        assert_eq!(inner.count(), TripCount::Exactly(4));
        let varied = Trips { whole: vec![(3, 10), (5, 10)], ..inner };
        assert_eq!(varied.count(), TripCount::About(2195.0 / 545.0));
        // 836 back edges and no end: 3 ends could have been expected to go unseen.
        let long = Trips { taken: 836, at_least: Some(32), ..Trips::default() };
        assert_eq!(long.count(), TripCount::AtLeast(836.0 / 3.0));
        assert_eq!(long.count().is_at_least(40.0), Some(true));
        assert_eq!(long.count().is_at_least(1000.0), None);
        // Counts of all there was: 2 ends are enough.
        let counted =
            Trips { taken: 98, entered: 2, left: 2, is_complete: true, ..Trips::default() };
        assert_eq!(counted.count(), TripCount::About(50.0));
        assert_eq!(Trips::default().count(), TripCount::Unknown);
        assert_eq!(Trips { left: 50, ..Trips::default() }.count(), TripCount::Unknown);
        // Fewer than one trip is none: by the error of the ends about one, or no loop.
        let once = |entered| Trips { entered, left: 100, ..Trips::default() }.count();
        assert_eq!((once(90), once(30)), (TripCount::About(1.0), TripCount::Unknown));
    }
}
