//! `random-branches`: branches on the bits of a random number generator.

use super::super::{Program, Setup};
use super::Rounds;
use std::arch::asm;
use tma::Result;

/// Branches per round: one on each of the lowest bits of the generator.
const BRANCHES: u64 = 8;

/// Eight branches on random bits a round; control: the same instructions with all bits set.
pub(crate) fn random_branches(setup: Setup) -> Result<Box<dyn Program>> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let always = if setup.control { u64::MAX } else { 0 };
    Rounds::program(1 << 13, BRANCHES, move |rounds| {
        let (next, ones) = branch(state, always, rounds);
        state = next;
        ones
    })
}

/// Runs `rounds` (not 0) from `state`, with the bits of `always` set; returns the next state and
/// how many bits were set.
fn branch(mut state: u64, always: u64, rounds: u64) -> (u64, u64) {
    let mut ones = 0u64;
    // SAFETY: registers only; `rounds` is not 0, so the loop ends.
    unsafe {
        asm!(
            "2:",
            // xorshift64, as in random.rs
            "mov {bits}, {state}",
            "shl {bits}, 13",
            "xor {state}, {bits}",
            "mov {bits}, {state}",
            "shr {bits}, 7",
            "xor {state}, {bits}",
            "mov {bits}, {state}",
            "shl {bits}, 17",
            "xor {state}, {bits}",
            "mov {bits}, {state}",
            "or {bits}, {always}",
            ".rept 8",
            "shr {bits}, 1",
            "jnc 3f",
            "add {ones}, {one}",
            "3:",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            state = inout(reg) state,
            bits = out(reg) _,
            always = in(reg) always,
            ones = inout(reg) ones,
            one = in(reg) 1u64,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem)
        );
    }
    (state, ones)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_random_branches_are_taken_and_all_of_the_control() {
        let (state, ones) = branch(0x9E37_79B9_7F4A_7C15, 0, 10_000);
        assert_ne!(state, 0);
        // 80,000 fair bits: standard deviation 141; six of them either way.
        assert!((39_150..=40_850).contains(&ones), "{ones} of 80000");
        assert_eq!(branch(1, u64::MAX, 100).1, 800);
    }
}
