//! Loops in x86-64 assembly: what they measure depends on the exact instructions. This file has those bound by
//! execution: a chain of additions, and the divider. `hazards` and `code` have the others.
//!
//! Only instructions of the x86-64 baseline, and none that traps to a hypervisor.

mod code;
mod hazards;

use super::Program;
use crate::Setup;
use std::arch::asm;
use tma::Result;

pub(super) use code::{large_code, random_branches};
pub(super) use hazards::{denormals, four_k_aliasing, microcoded, store_forward_block};

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

/// `dependent-adds`: each addition depends on the one before; control: eight independent chains.
///
/// Registers only: recent processors fold additions of constants away before execution.
pub(crate) fn dependent_adds(setup: Setup) -> Result<Box<dyn Program>> {
    let kernel = if setup.control { independent } else { dependent };
    Rounds::program(1 << 13, 64, kernel)
}

fn dependent(rounds: u64) -> u64 {
    let mut sum = 0u64;
    // SAFETY: registers only; `rounds` is not 0, so the loop ends.
    unsafe {
        asm!(
            "2:",
            ".rept 64",
            "add {sum}, {one}",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            sum = inout(reg) sum,
            one = in(reg) 1u64,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem)
        );
    }
    sum
}

fn independent(rounds: u64) -> u64 {
    let mut sums = [0u64; 8];
    // SAFETY: registers and the eight words of `sums`, which `s` points to; `rounds` is not 0, so
    // the loop ends.
    unsafe {
        asm!(
            ".irp r, 8, 9, 10, 11, 12, 13, 14, 15",
            "mov r\\r, 0",
            ".endr",
            "2:",
            ".rept 8",
            ".irp r, 8, 9, 10, 11, 12, 13, 14, 15",
            "add r\\r, {one}",
            ".endr",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            ".irp r, 8, 9, 10, 11, 12, 13, 14, 15",
            "mov [{s} + 8 * (\\r - 8)], r\\r",
            ".endr",
            one = in(reg) 1u64,
            s = in(reg) sums.as_mut_ptr(),
            rounds = inout(reg) rounds => _,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            options(nostack)
        );
    }
    sums.iter().sum()
}

/// A loop over eight registers, each reloaded with the dividend: the instructions are independent, so
/// the unit's throughput is the limit.
macro_rules! packed_pairs {
    ($instruction:literal, $rounds:expr) => {{
        let (dividend, divisor) = ([1.3f64; 2], [1.000_000_1f64; 2]);
        let mut result = [0f64; 2];
        // SAFETY: reads and writes only the three arrays it is given; `rounds` is not 0, so the
        // loop ends.
        unsafe {
            asm!(
                "movupd xmm8, [{dividend}]",
                "movupd xmm9, [{divisor}]",
                "2:",
                ".irp r, 0, 1, 2, 3, 4, 5, 6, 7",
                "movapd xmm\\r, xmm8",
                concat!($instruction, " xmm\\r, xmm9"),
                ".endr",
                "dec {rounds}",
                "jnz 2b",
                "movupd [{result}], xmm7",
                dividend = in(reg) dividend.as_ptr(),
                divisor = in(reg) divisor.as_ptr(),
                result = in(reg) result.as_mut_ptr(),
                rounds = inout(reg) $rounds => _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
                options(nostack)
            );
        }
        result[1].to_bits()
    }};
}

/// `divider`: packed divisions that do not depend on each other; control: multiplications.
pub(crate) fn divider(setup: Setup) -> Result<Box<dyn Program>> {
    let kernel: fn(u64) -> u64 = if setup.control {
        |rounds| packed_pairs!("mulpd", rounds)
    } else {
        |rounds| packed_pairs!("divpd", rounds)
    };
    Rounds::program(1 << 13, 8, kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_loops_add_as_often_as_they_say() {
        assert_eq!(dependent(3), 3 * 64);
        assert_eq!(independent(3), 3 * 64);
    }

    #[test]
    fn the_quotient_and_the_product_are_right() {
        assert_eq!(f64::from_bits(packed_pairs!("divpd", 2u64)), 1.3 / 1.000_000_1);
        assert_eq!(f64::from_bits(packed_pairs!("mulpd", 2u64)), 1.3 * 1.000_000_1);
    }

    /// A 32-bit multiplication takes three cycles (uops.info: every Intel core since Nehalem,
    /// every Zen), so an addition that takes one is three times as fast.
    #[test]
    fn a_dependent_addition_takes_one_cycle() {
        let time = |kernel: &dyn Fn()| {
            let fastest = (0..9).map(|_| {
                let begin = std::time::Instant::now();
                kernel();
                begin.elapsed().as_secs_f64()
            });
            fastest.fold(f64::INFINITY, f64::min)
        };
        let multiply = || {
            // SAFETY: registers only.
            unsafe {
                asm!(
                    "2:",
                    ".rept 64",
                    "imul {a:e}, {b:e}",
                    ".endr",
                    "dec {n}",
                    "jnz 2b",
                    a = inout(reg) 3u64 => _,
                    b = in(reg) 5u64,
                    n = inout(reg) 5000u64 => _,
                    options(nostack, nomem)
                );
            }
        };
        let ratios: Vec<f64> = (0..5)
            .map(|_| time(&multiply) / time(&|| _ = std::hint::black_box(dependent(5000))))
            .collect();
        assert!(ratios.iter().any(|r| (2.8..3.2).contains(r)), "{ratios:?}");
    }
}
