//! Cycles of an iteration as the program runs.

/// Standard errors to each end of a 95 % interval.
const ERRORS: f64 = 1.96;

/// Cycles of an iteration in the program, without probes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Taken {
    /// Cycles.
    pub cycles: f64,
    /// The samples that say so.
    pub samples: u64,
}

impl Taken {
    /// The least and the most cycles: the 95 % interval of a Poisson number of samples, by Wilson and Hilferty's cube root
    /// ("The Distribution of Chi-Square", PNAS 1931). `None` without samples.
    pub fn range(&self) -> Option<(f64, f64)> {
        let end = |samples: f64, errors: f64| {
            samples * (1.0 - 1.0 / (9.0 * samples) + errors / (3.0 * samples.sqrt())).powi(3)
        };
        let samples = Some(self.samples as f64).filter(|samples| *samples > 0.0)?;
        let each = self.cycles / samples;
        Some((each * end(samples, -ERRORS).max(0.0), each * end(samples + 1.0, ERRORS)))
    }
}
