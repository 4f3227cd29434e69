//! Reproducible random numbers: a program does the same work in every run.

use tma::{Error, Result};

/// A random cycle through all of `0..n`: `next[i]` follows `i` (Sattolo's algorithm).
///
/// # Errors
/// The memory cannot be allocated.
pub(super) fn cycle(n: u32) -> Result<Vec<u32>> {
    // A fixed seed: every run has the same order.
    let mut random = fastrand::Rng::with_seed(0x9E37_79B9_7F4A_7C15);
    let mut next: Vec<u32> = Vec::new();
    next.try_reserve_exact(n as usize).map_err(|e| {
        Error::failed(format!("cannot allocate a random order of {n} elements"))
            .because(e)
            .hint("choose a smaller --size")
    })?;
    next.extend(0..n);
    for i in (1..n).rev() {
        next.swap(i as usize, random.usize(..i as usize));
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_visits_everything_once() {
        for n in [1u32, 2, 3, 64, 1000] {
            let next = cycle(n).unwrap();
            let (mut at, mut seen) = (0, vec![false; n as usize]);
            for _ in 0..n {
                assert!(!std::mem::replace(&mut seen[at as usize], true), "{at} twice of {n}");
                at = next[at as usize];
            }
            assert_eq!(at, 0, "back at the start after {n}");
        }
    }
}
