//! Claims about measured times, on machines that others use too.
//!
//! Contention from another process or virtual machine spoils a measurement now and then, also one
//! that the tool vouches for; a fault of the tool spoils all of them.

use std::time::{Duration, Instant};

/// One measurement, and whether the claim holds of it.
pub enum Trial {
    Holds,
    /// What was found instead.
    Fails(String),
    /// Why nothing follows from it.
    Unsettled(String),
}

impl From<Result<(), String>> for Trial {
    fn from(judged: Result<(), String>) -> Self {
        match judged {
            Ok(()) => Self::Holds,
            Err(found) => Self::Fails(found),
        }
    }
}

/// What was `found`, unless it is as claimed.
pub fn claim(holds: bool, found: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(found()) }
}

/// Measurements at most.
const TRIALS: usize = 6;
/// So many that fail, and none that holds, are the tool's fault.
const FAILURES: usize = 3;
/// For so long measurements that settle nothing are repeated.
const PATIENCE: Duration = Duration::from_secs(5);

/// Measures until the claim holds, and says whether it was settled.
///
/// # Panics
/// It fails again and again. Where too little is settled, that is skipped with a message.
pub fn assert_holds(claim: &str, mut measure: impl FnMut() -> Trial) -> bool {
    let (start, mut failures, mut reason) = (Instant::now(), Vec::new(), String::new());
    for _ in 0..TRIALS {
        match measure() {
            Trial::Holds => return true,
            Trial::Fails(found) => failures.push(found),
            Trial::Unsettled(_) if start.elapsed() > PATIENCE => break,
            Trial::Unsettled(why) => reason = why,
        }
        assert!(failures.len() < FAILURES, "{claim}: {failures:#?}");
    }
    eprintln!("skipped: {claim}: not settled: {reason} {failures:?}");
    false
}
