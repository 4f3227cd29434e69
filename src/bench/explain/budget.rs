//! How long a list of measurements may wait for a core that nothing else uses, all of them together.

use std::time::{Duration, Instant};

/// Time that is left for waiting. What a measurement takes beyond the shortest that succeeded was
/// waiting; of one that did not succeed, all was.
pub struct Waiting {
    left: Duration,
    shortest: Option<Duration>,
}

impl Waiting {
    /// For so long.
    pub fn of(budget: Duration) -> Self {
        Self { left: budget, shortest: None }
    }

    /// What is left.
    pub fn left(&self) -> Duration {
        self.left
    }

    /// Takes off what a measurement waited that began at `start`.
    pub fn spend(&mut self, start: Instant, succeeded: bool) {
        self.took(start.elapsed(), succeeded);
    }

    fn took(&mut self, took: Duration, succeeded: bool) {
        if succeeded {
            self.shortest = Some(self.shortest.map_or(took, |shortest| shortest.min(took)));
        }
        let needed = if succeeded { self.shortest.unwrap_or(took) } else { Duration::ZERO };
        self.left = self.left.saturating_sub(took.saturating_sub(needed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_what_goes_beyond_the_shortest_that_succeeded() {
        let seconds = Duration::from_secs;
        let mut waiting = Waiting::of(seconds(5));
        waiting.took(seconds(1), true);
        assert_eq!(waiting.left(), seconds(5));
        waiting.took(seconds(2), true);
        assert_eq!(waiting.left(), seconds(4));
        waiting.took(seconds(3), false);
        waiting.took(seconds(3), false);
        assert_eq!(waiting.left(), Duration::ZERO);
    }
}
