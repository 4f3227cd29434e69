//! The time that a list of measurements may spend waiting for an uncontended core, in total.

use std::time::{Duration, Instant};

/// Time left for waiting. A measurement's time beyond the shortest successful one counts as waiting,
/// an unsuccessful one's entire time.
pub struct WaitBudget {
    left: Duration,
    shortest: Option<Duration>,
}

impl WaitBudget {
    /// The whole of `budget`.
    pub fn of(budget: Duration) -> Self {
        Self { left: budget, shortest: None }
    }

    /// The remaining time.
    pub fn left(&self) -> Duration {
        self.left
    }

    /// Subtracts what a measurement begun at `start` spent waiting.
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
    fn time_beyond_the_shortest_success_counts_as_waiting() {
        let seconds = Duration::from_secs;
        let mut wait_budget = WaitBudget::of(seconds(5));
        wait_budget.took(seconds(1), true);
        assert_eq!(wait_budget.left(), seconds(5));
        wait_budget.took(seconds(2), true);
        assert_eq!(wait_budget.left(), seconds(4));
        wait_budget.took(seconds(3), false);
        wait_budget.took(seconds(3), false);
        assert_eq!(wait_budget.left(), Duration::ZERO);
    }
}
