//! Loops in x86-64 assembly: what they measure depends on the exact instructions.
//!
//! Only instructions of the x86-64 baseline, and none that traps to a hypervisor.

mod branches;
mod code;
mod execution;
mod hazards;
mod microcode;

pub(super) use branches::random_branches;
pub(super) use code::large_code;
pub(super) use execution::{dependent_adds, divider};
pub(super) use hazards::{four_k_aliasing, store_forward_block};
pub(super) use microcode::{denormals, microcoded};

use super::Program;
use tma::Result;

/// A loop: a slice runs a fixed number of rounds, and a repeat is one slice.
struct Rounds<F> {
    kernel: F,
    rounds: u64,
    per_round: u64,
    sum: u64,
}

impl<F: FnMut(u64) -> u64 + 'static> Rounds<F> {
    /// `kernel(rounds)` runs `rounds` (not 0) of `per_round` iterations and returns a value that
    /// depends on them.
    fn program(rounds: u64, per_round: u64, kernel: F) -> Result<Box<dyn Program>> {
        Ok(Box::new(Self { kernel, rounds, per_round, sum: 0 }))
    }
}

impl<F: FnMut(u64) -> u64> Program for Rounds<F> {
    fn slice(&mut self) -> u64 {
        let value = (self.kernel)(self.rounds);
        self.sum = self.sum.wrapping_mul(31).wrapping_add(value);
        self.rounds * self.per_round
    }

    fn per_repeat(&self) -> u64 {
        self.rounds * self.per_round
    }

    fn checksum(&self) -> u64 {
        self.sum
    }
}
