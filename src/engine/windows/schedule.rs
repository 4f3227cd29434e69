//! When windows begin: at multiples of a time since the start, by a clock that nobody sets, and only while CPU time so
//! far is within the budget. And that CPU time.

use nix::sys::resource::{UsageWho, getrusage};
use pmu::machine::cpu_time;
use std::time::{Duration, Instant};

/// Longest time whose unused budget is kept: afterwards a window may cost so much more.
const KEPT: Duration = Duration::from_secs(3600);

/// When windows begin.
#[derive(Debug)]
pub(super) struct Schedule {
    begin: Instant,
    every: Duration,
    /// Number of the next window.
    next: u32,
    account: Account,
}

impl Schedule {
    pub fn new(every: Duration, budget: f64) -> Self {
        let most = budget * KEPT.max(12 * every).as_secs_f64();
        let account = Account { budget, most, ..Account::default() };
        Self { begin: Instant::now(), every, next: 0, account }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Time until the next window.
    pub fn until_next(&self) -> Duration {
        self.every.saturating_mul(self.next).saturating_sub(self.elapsed())
    }

    /// Whether the next window may begin, after `spent` CPU time so far; the first one always may.
    pub fn allows(&mut self, spent: Duration) -> bool {
        let is_paid = self.account.is_paid(self.elapsed(), spent);
        is_paid || self.next == 0
    }

    /// Leaves the next window out.
    pub fn skip(&mut self) {
        self.next = self.next.saturating_add(1);
    }

    /// A window is over: how many should have begun meanwhile.
    pub fn ended(&mut self) -> u64 {
        let begun = self.elapsed().as_secs_f64() / self.every.as_secs_f64();
        let (due, next) = (begun.ceil() as u32, self.next.saturating_add(1));
        self.next = due.max(next);
        u64::from(self.next - next)
    }
}

/// CPU time of this process and of those that it has waited for.
pub(super) fn own_time() -> Duration {
    let of = |who| getrusage(who).map_or(Duration::ZERO, |usage| cpu_time(&usage));
    of(UsageWho::RUSAGE_SELF) + of(UsageWho::RUSAGE_CHILDREN)
}

/// CPU time that may be spent.
#[derive(Debug, Default)]
struct Account {
    /// Share of the wall time.
    budget: f64,
    /// Seconds that may be spent; below 0: that were spent too much.
    seconds: f64,
    /// Most of them.
    most: f64,
    wall: Duration,
    spent: Duration,
}

impl Account {
    /// Whether all that was spent is within the budget; both times are since the start.
    fn is_paid(&mut self, wall: Duration, spent: Duration) -> bool {
        let earned = self.budget * wall.saturating_sub(self.wall).as_secs_f64();
        let cost = spent.saturating_sub(self.spent).as_secs_f64();
        (self.wall, self.spent) = (wall, spent);
        self.seconds = (self.seconds + earned - cost).min(self.most);
        self.seconds >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows that cost `cost` ms every 10 s: how many of 100 begin at a budget of half a per cent.
    fn begun(cost: u64) -> u64 {
        let mut account = Account { budget: 0.005, most: 18.0, ..Account::default() };
        let mut windows = 0;
        for slot in 0..100 {
            let spent = Duration::from_millis(windows * cost);
            windows += u64::from(account.is_paid(Duration::from_secs(10 * slot), spent));
        }
        windows
    }

    #[test]
    fn windows_are_thinned_to_the_budget() {
        // 50 ms in 10 s.
        assert_eq!((begun(10), begun(50)), (100, 100));
        for cost in [60, 100, 400, 5000] {
            let windows = begun(cost);
            let most = 1000 * 5 / cost + 1;
            assert!(
                windows <= most.div_ceil(1) && windows + 3 >= most * 9 / 10,
                "{cost}: {windows}"
            );
        }
    }

    #[test]
    fn unused_budget_is_kept_for_a_limited_time() {
        let mut account = Account { budget: 0.01, most: 1.0, ..Account::default() };
        let day = Duration::from_secs(86_400);
        assert!(account.is_paid(day, Duration::ZERO));
        assert!(account.is_paid(day, Duration::from_millis(900)));
        assert!(!account.is_paid(day, Duration::from_secs(2)));
        assert!(account.is_paid(day + Duration::from_secs(101), Duration::from_secs(2)));
    }

    #[test]
    fn a_window_that_takes_too_long_leaves_out_those_meanwhile() {
        let mut schedule = Schedule::new(Duration::from_millis(20), 1.0);
        assert!(schedule.allows(Duration::from_secs(9)), "the first");
        assert_eq!(schedule.until_next(), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(70));
        assert!(schedule.ended() >= 3);
        assert!(schedule.until_next() <= Duration::from_millis(20));
    }
}
