//! Criteria for a critical load or branch: the thresholds of Litz et al., "CRISP: Critical Slice Prefetching" (ASPLOS
//! 2022).

/// A critical load is more than this share of all executed loads.
pub const LEAST_EXECUTED: f64 = 0.05;
/// More than this share of its executions misses the last cache.
pub const LEAST_MISSES: f64 = 0.2;
/// Fewer misses than this are under way at the same time (memory-level parallelism).
pub const MOST_PARALLEL: f64 = 5.0;
/// A hard branch is mispredicted more often than this.
pub const HARD_BRANCH: f64 = 0.15;

/// Whether a hardware prefetcher can be expected to follow the addresses of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regularity {
    /// Constant, or a constant distance from one to the next.
    Regular,
    /// Neither constant nor at a constant distance.
    Irregular,
    /// Not known.
    Unknown,
}

/// Known properties of a load.
#[derive(Debug, Clone, Copy)]
pub struct Judgement {
    /// Its share of all executed loads, or of the sampled ones.
    pub executed: f64,
    /// The share of its executions that misses the last cache, if known.
    pub misses: Option<f64>,
    /// Its addresses.
    pub addresses: Regularity,
    /// Misses under way at the same time, if known.
    pub parallel: Option<f64>,
}

/// Whether a load is critical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Critical {
    /// As far as is known.
    Yes,
    /// Only if its addresses are irregular, which is not known.
    Perhaps,
    /// No.
    No,
}

/// Judges a load. What is not known of its parallelism does not decide.
///
/// ```
/// use loads::recorded::{Critical, Judgement, Regularity, judge};
///
/// let load = Judgement {
///     executed: 0.08,
///     misses: Some(0.6),
///     addresses: Regularity::Irregular,
///     parallel: None,
/// };
/// assert_eq!(judge(&load), Critical::Yes);
/// assert_eq!(judge(&Judgement { executed: 0.01, ..load }), Critical::No);
/// assert_eq!(judge(&Judgement { addresses: Regularity::Regular, ..load }), Critical::No);
/// assert_eq!(judge(&Judgement { addresses: Regularity::Unknown, ..load }), Critical::Perhaps);
/// ```
pub fn judge(load: &Judgement) -> Critical {
    let often = load.executed > LEAST_EXECUTED;
    let misses = load.misses.is_some_and(|share| share > LEAST_MISSES);
    let serial = load.parallel.is_none_or(|misses| misses < MOST_PARALLEL);
    match load.addresses {
        _ if !(often && misses && serial) => Critical::No,
        Regularity::Regular => Critical::No,
        Regularity::Irregular => Critical::Yes,
        Regularity::Unknown => Critical::Perhaps,
    }
}

/// A branch with fewer known executions is not judged: two or three mispredictions are chance.
const LEAST_SEEN: u64 = 10;
/// Standard deviations of a 95 % interval.
const Z: f64 = 1.96;

/// Whether a branch is hard: the share of its `seen` executions that were mispredicted is above
/// [`HARD_BRANCH`] with 95 % certainty (lower end of Wilson's interval, JASA 22, 1927).
///
/// ```
/// use loads::recorded::is_hard;
///
/// assert!(is_hard(50, 100) && is_hard(5, 10));
/// assert!(!is_hard(1, 1), "too few to know");
/// assert!(!is_hard(14, 100));
/// ```
pub fn is_hard(mispredicted: u64, seen: u64) -> bool {
    if seen < LEAST_SEEN {
        return false;
    }
    let (n, p) = (seen as f64, mispredicted.min(seen) as f64 / seen as f64);
    let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let low = (p + Z * Z / (2.0 * n) - spread) / (1.0 + Z * Z / n);
    low > HARD_BRANCH
}
