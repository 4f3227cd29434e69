//! How long a process runs between two tries to stop it where it can be changed.

use std::time::Duration;

/// The first pauses, and most of the others.
const SHORT: Duration = Duration::from_millis(1);
/// Short pauses before each long one.
const RUN: u32 = 8;

/// Mostly short, since what is in the way may be there most of the time; and long ones that double: the
/// timeout of some system calls begins anew with every stop (epoll_wait, say), and must end once.
#[derive(Debug)]
pub struct Pauses {
    number: u32,
    long: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { number: 0, long: 2 * SHORT }
    }
}

impl Pauses {
    /// The next one.
    pub fn next(&mut self) -> Duration {
        self.number += 1;
        if !self.number.is_multiple_of(RUN + 1) {
            return SHORT;
        }
        self.long *= 2;
        self.long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: what was waited before a pause of at least 40 ms is 9 × 8 ms and 4 to 32.
    #[test]
    fn a_timeout_ends_after_a_few_times_as_long() {
        let mut pauses = Pauses::default();
        let all: Vec<u64> = (0..45).map(|_| pauses.next().as_millis() as u64).collect();
        let long: Vec<u64> = all.iter().copied().filter(|pause| *pause > 1).collect();
        assert_eq!(long, [4, 8, 16, 32, 64]);
        assert_eq!(all.iter().sum::<u64>(), 40 + 124);
    }
}
