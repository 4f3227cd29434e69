//! Pauses between tries to stop a process where it can be changed.

use std::time::Duration;

/// Length of a short pause.
const SHORT: Duration = Duration::from_millis(1);
/// Short pauses before each long one.
const RUN: u32 = 8;

/// Mostly short pauses, since an obstacle may be frequent, but long ones for half of the time: some
/// timeouts (epoll_wait, say) restart with every stop, and must expire once.
#[derive(Debug, Default)]
pub struct Pauses {
    number: u32,
}

impl Pauses {
    /// The next pause, `since` after the first try.
    pub fn next(&mut self, since: Duration) -> Duration {
        self.number += 1;
        if self.number.is_multiple_of(RUN + 1) { since.max(SHORT) } else { SHORT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 8 tries of 1 ms and their pauses, 16 as long; each round doubles the time and adds
    /// 17 ms.
    #[test]
    fn a_timeout_ends_within_a_few_times_as_long() {
        let (mut pauses, mut since) = (Pauses::default(), Duration::ZERO);
        let mut longest = Vec::new();
        for _ in 0..4 * 9 {
            since += Duration::from_millis(1);
            let pause = pauses.next(since);
            since += pause;
            if pause > SHORT {
                longest.push((pause.as_millis(), since.as_millis()));
            }
        }
        assert_eq!(longest, [(17, 34), (51, 102), (119, 238), (255, 510)]);
    }
}
