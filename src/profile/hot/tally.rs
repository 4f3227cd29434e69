//! Numbers of samples, and how exact a share of them is.

/// Number and weight of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Their number.
    pub samples: u64,
    /// The sum of their periods, or their number if they have none.
    pub weight: f64,
    /// The sum of the squares of their periods.
    pub squares: f64,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.weight += other.weight;
        self.squares += other.squares;
    }

    /// Number of samples of equal weight that give the same error (L. Kish, *Survey Sampling*, 1965, §8.2).
    pub fn effective(&self) -> f64 {
        if self.squares > 0.0 { self.weight * self.weight / self.squares } else { 0.0 }
    }
}

/// Half width of the 95 % interval of a share of `samples` independent samples: Wilson's (JASA 22, 1927), which is
/// not 0 where no or all samples are in it.
pub fn half_width(share: f64, samples: f64) -> f64 {
    const Z: f64 = 1.96;
    if samples <= 0.0 {
        return 1.0;
    }
    let share = share.clamp(0.0, 1.0);
    let spread = share * (1.0 - share) / samples + Z * Z / (4.0 * samples * samples);
    Z * spread.sqrt() / (1.0 + Z * Z / samples)
}
