//! Chooses how many jobs of a batch work at once, by the rates measured while it runs.
//!
//! Processors that the topology calls separate cores may be threads of one: a virtual machine need not show it,
//! and its hypervisor moves them. Two jobs are then slower than one, since contended rounds are measured again. So
//! two numbers of jobs are compared in short alternating windows, the faster one is used, and the comparison is
//! repeated later.

/// Windows of a look: the present number of jobs, the other, the other, the present.
const LOOK: usize = 4;
/// Speedup that the other number needs.
const BETTER: f64 = 1.05;
/// Windows between looks: at first, and at most where looks confirm what is known.
const HOLD: (u32, u32) = (8, 64);

/// Decides how many jobs work at once.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Jobs there are.
    most: usize,
    /// The number found best so far.
    best: usize,
    /// Windows until the next look, and between looks now.
    left: u32,
    hold: u32,
    /// Rates of the present look.
    rates: Vec<f64>,
    /// Looks so far.
    looks: usize,
    /// Seconds in all, and with fewer jobs than there are because that was faster.
    seconds: (f64, f64),
}

impl Pace {
    /// With `most` jobs, all at work first. The first window, in which they start, is not compared.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            best: most,
            left: 1,
            hold: HOLD.0,
            rates: Vec::new(),
            looks: 0,
            seconds: (0.0, 0.0),
        }
    }

    /// Jobs at work in the present window.
    pub fn jobs(&self) -> usize {
        let other = self.left == 0 && (1..LOOK - 1).contains(&self.rates.len());
        if other { self.other() } else { self.best }
    }

    /// The number to compare with: half or twice the present one, alternately.
    fn other(&self) -> usize {
        let down = self.best == self.most || self.best > 1 && self.looks % 2 == 1;
        if down { (self.best / 2).max(1) } else { (2 * self.best).min(self.most) }
    }

    /// Ends a window of `seconds` in which `rows` were measured.
    pub fn end_window(&mut self, rows: usize, seconds: f64) {
        self.seconds.0 += seconds;
        if self.left > 0 {
            self.seconds.1 += if self.best < self.most { seconds } else { 0.0 };
            self.left -= 1;
            return;
        }
        self.rates.push(rows as f64 / seconds);
        let [first, second, third, last] = self.rates[..] else { return };
        let is_better = second + third > BETTER * (first + last);
        (self.best, self.hold) = match is_better {
            true => (self.other(), HOLD.0),
            false => (self.best, (2 * self.hold).min(HOLD.1)),
        };
        self.looks += 1;
        self.left = self.hold;
        self.rates.clear();
    }

    /// The share of the time in which fewer jobs worked because that was faster.
    pub fn fewer(&self) -> f64 {
        self.seconds.1 / self.seconds.0.max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `windows` windows of 0.1 s at the rates that `rate` gives for window and jobs; returns the windows of
    /// each number of jobs.
    fn run(pace: &mut Pace, windows: usize, rate: impl Fn(usize, usize) -> f64) -> Vec<usize> {
        let mut had = vec![0; pace.most + 1];
        for window in 0..windows {
            let jobs = pace.jobs();
            had[jobs] += 1;
            pace.end_window((0.1 * rate(window, jobs)).round() as usize, 0.1);
        }
        had
    }

    /// Rates of a batch on this project's machine, blocks a second with one job and with two.
    const SIBLINGS: [f64; 3] = [0.0, 2118.0, 1329.0];
    const CORES: [f64; 3] = [0.0, 2146.0, 3243.0];

    #[test]
    fn cores_of_their_own_all_work_most_of_the_time() {
        let mut pace = Pace::new(2);
        let had = run(&mut pace, 1000, |_, jobs| CORES[jobs]);
        assert!(had[1] <= 40 && pace.fewer() == 0.0, "{had:?}");
    }

    #[test]
    fn of_siblings_one_works_after_the_first_look() {
        let mut pace = Pace::new(2);
        let had = run(&mut pace, 1000, |_, jobs| SIBLINGS[jobs]);
        assert!(had[2] <= 42 && pace.fewer() > 0.9, "{had:?}");
        assert_eq!(pace.jobs(), 1);
    }

    #[test]
    fn processors_that_are_moved_are_noticed() {
        let mut pace = Pace::new(2);
        let moved =
            |window, jobs: usize| if window / 300 == 1 { SIBLINGS[jobs] } else { CORES[jobs] };
        let had = run(&mut pace, 900, moved);
        // No longer than the longest pause and a look, each time.
        let late = (HOLD.1 as usize) + 2 * LOOK;
        assert!((300 - late..300 + late).contains(&had[1]), "{had:?}");
    }

    #[test]
    fn noise_alone_changes_nothing() {
        let mut pace = Pace::new(2);
        // Windows differ by ± 15 %, as rows of a file do.
        let noisy = |window: usize, jobs: usize| {
            CORES[jobs] * (0.85 + 0.3 * (window * 7 % 11) as f64 / 10.0)
        };
        run(&mut pace, 1000, noisy);
        assert_eq!(pace.fewer(), 0.0);
    }

    #[test]
    fn of_many_jobs_half_work_where_that_is_faster() {
        // Eight threads of four cores.
        let mut pace = Pace::new(8);
        run(&mut pace, 400, |_, jobs| {
            1000.0 * jobs.min(4) as f64 - 300.0 * jobs.saturating_sub(4) as f64
        });
        assert_eq!(pace.best, 4);
        let mut single = Pace::new(1);
        assert_eq!((run(&mut single, 100, |_, _| 1.0)[1], single.fewer()), (100, 0.0));
    }
}
