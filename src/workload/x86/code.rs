//! Programs bound by their code. `large-code`: straight instructions in blocks of one cache line, run in random
//! order through direct jumps, over more code than the instruction cache and the branch target buffer hold.
//! `random-branches`: branches on the bits of a random number generator.

use super::super::memory::{Executable, Pages, Region};
use super::super::{Program, Setup};
use super::Rounds;
use crate::memory::cycle;
use std::arch::asm;
use tma::{Error, Result};

/// Bytes of a block.
const BLOCK: u64 = 64;
/// Code of the control: half of the smallest first-level instruction cache in use.
const IN_L1: u64 = 16 << 10;
/// Minimum number of blocks between two readings of the clock.
const SLICE: u64 = 1 << 14;

/// `size` bytes of code; control: 16 KiB, repeated until the same work is done.
pub(crate) fn large_code(setup: Setup) -> Result<Box<dyn Program>> {
    let whole = setup.size / BLOCK;
    let blocks = if setup.control { whole.min(IN_L1 / BLOCK) } else { whole };
    let Some(blocks) = u32::try_from(blocks).ok().filter(|b| u64::from(*b) * BLOCK < 1 << 31)
    else {
        return Err(Error::usage("a jump reaches no further than 2 GiB of code")
            .hint("choose a smaller --size"));
    };
    let mut region = Region::new(u64::from(blocks) * BLOCK, Pages::Huge)?;
    write_code(&mut region, &cycle(blocks)?);
    let code = region.executable()?;
    let blocks = u64::from(blocks);
    // Whole laps, as the code returns only after a lap; at least one slice per repeat.
    let laps = whole.div_ceil(blocks) * SLICE.div_ceil(whole);
    Ok(Box::new(LargeCode { code, blocks, laps_per_repeat: laps, lap: 0, sum: 0 }))
}

struct LargeCode {
    code: Executable,
    blocks: u64,
    laps_per_repeat: u64,
    lap: u64,
    sum: u64,
}

impl Program for LargeCode {
    fn slice(&mut self) -> u64 {
        let left = self.laps_per_repeat - self.lap;
        let laps = SLICE.div_ceil(self.blocks).min(left);
        // SAFETY: the region holds the code that `write_code` put there.
        self.sum = unsafe { call(&self.code, laps, self.sum) };
        self.lap = if laps == left { 0 } else { self.lap + laps };
        laps * self.blocks
    }

    fn per_repeat(&self) -> u64 {
        self.laps_per_repeat * self.blocks
    }

    fn checksum(&self) -> u64 {
        self.sum
    }
}

/// `add r8, rsi` to `add r11, rsi`: four independent chains.
const ADDS: [[u8; 3]; 4] =
    [[0x49, 0x01, 0xF0], [0x49, 0x01, 0xF1], [0x49, 0x01, 0xF2], [0x49, 0x01, 0xF3]];
/// Additions in a block: as many as fit before the jump.
const PER_BLOCK: usize = (BLOCK as usize - 5) / 3;
/// `jmp rel32`.
const JUMP: u8 = 0xE9;
/// `ret`.
const RETURN: u8 = 0xC3;

/// Writes a block for every element of the cycle `next` into `region`, each jumping to its successor;
/// the last one of the cycle returns.
fn write_code(region: &mut Region, next: &[u32]) {
    let blocks = region.contents().chunks_exact_mut(BLOCK as usize);
    for ((at, &next), block) in (0i64..).zip(next).zip(blocks) {
        block.fill(RETURN);
        for (i, bytes) in block.chunks_exact_mut(3).take(PER_BLOCK).enumerate() {
            bytes.copy_from_slice(&ADDS[i % ADDS.len()]);
        }
        if next != 0 {
            let jump = PER_BLOCK * 3;
            // Relative to the end of the jump; `large_code` keeps it below 2 GiB.
            let from = at * BLOCK as i64 + jump as i64 + 5;
            let distance = (i64::from(next) * BLOCK as i64 - from) as i32;
            block[jump] = JUMP;
            block[jump + 1..jump + 5].copy_from_slice(&distance.to_le_bytes());
        }
    }
}

/// Runs `laps` (not 0) over the code, adding to `sum`.
///
/// # Safety
/// `code` must be what `write_code` wrote.
unsafe fn call(code: &Executable, laps: u64, mut sum: u64) -> u64 {
    // SAFETY: the code changes r8 to r11 and the flags and returns; the call uses the stack, which
    // asm! aligns and may use as no `nostack` is given.
    unsafe {
        asm!(
            "2:",
            "call {entry}",
            "dec {laps}",
            "jnz 2b",
            entry = in(reg) code.entry(),
            laps = inout(reg) laps => _,
            inout("r8") sum,
            out("r9") _, out("r10") _, out("r11") _,
            in("rsi") 1u64,
        );
    }
    sum
}

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
            // xorshift64 (Marsaglia, "Xorshift RNGs", 2003)
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
    fn every_block_runs_once_a_lap() {
        for blocks in [1u32, 2, 100] {
            let mut region = Region::new(u64::from(blocks) * BLOCK, Pages::Default).unwrap();
            write_code(&mut region, &cycle(blocks).unwrap());
            let code = region.executable().unwrap();
            // 19 additions a block go round four registers, so r8 takes five of them.
            // SAFETY: the code was written above.
            assert_eq!(unsafe { call(&code, 3, 0) }, 3 * 5 * u64::from(blocks));
        }
    }

    #[test]
    fn half_of_the_random_branches_are_taken_and_all_of_the_control() {
        let (state, ones) = branch(0x9E37_79B9_7F4A_7C15, 0, 10_000);
        assert_ne!(state, 0);
        // 80,000 fair bits: standard deviation 141; six of them either way.
        assert!((39_150..=40_850).contains(&ones), "{ones} of 80000");
        assert_eq!(branch(1, u64::MAX, 100).1, 800);
    }
}
