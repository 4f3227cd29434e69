//! Generated loops and their core cycles, with a chain of additions before and after them as the
//! clock.

use super::super::memory::{Executable, Pages, Region};
use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::cell::Cell;
use tma::Result;

/// Bytes before the loop, which starts at a line.
const HEAD: usize = 64;
/// `dec rdi`, `jnz` to the loop, `ret`.
const DECREMENT: [u8; 3] = [0x48, 0xff, 0xcf];
const JUMP: [u8; 2] = [0x0f, 0x85];
const RETURN: u8 = 0xc3;
/// `nop`.
const NOP: u8 = 0x90;
/// `add rax, rcx`: a latency of one cycle on every x86-64 core (uops.info).
const ADD: [u8; 3] = [0x48, 0x01, 0xc8];
/// Additions in the clock's loop, and its rounds: some microseconds.
const ADDS: usize = 64;
const ROUNDS: u64 = 200;
/// Permitted difference of the clock before and after a run, and from the fastest recent one, which
/// decays by this share with each run.
const SAME_CLOCK: f64 = 0.02;
const FORGET: f64 = 0.9999;

/// A loop in memory. Its body may change `rax`, `rcx`, `rdx`, `rsi`, `r8` to `r11`, `xmm0` to
/// `xmm15` and the flags; `rsi` and `rdx` are parameters.
pub(super) struct Kernel(Executable);

impl Kernel {
    /// Generates a loop.
    ///
    /// # Errors
    /// There is no memory, or none that is executable.
    pub fn new(body: &[u8]) -> Result<Self> {
        let mut code = vec![NOP; HEAD];
        code.extend(body);
        code.extend(DECREMENT);
        code.extend(JUMP);
        let back = HEAD as i64 - (code.len() as i64 + 4);
        code.extend((back as i32).to_le_bytes());
        code.push(RETURN);
        let mut region = Region::new(code.len() as u64, Pages::Default)?;
        region.contents()[..code.len()].copy_from_slice(&code);
        Ok(Self(region.executable()?))
    }

    /// Ticks of `rounds` (not 0) rounds.
    ///
    /// # Safety
    /// With these values of `rsi` and `rdx`, the body must only access valid memory.
    pub unsafe fn ticks(&self, rounds: u64, rsi: *const u8, rdx: *const u8) -> u64 {
        // SAFETY: the region holds a function of this type, written by `new`, which follows the
        // calling convention and ends after `rounds`; the caller guarantees the accesses of its
        // body.
        unsafe {
            let run: extern "sysv64" fn(u64, *const u8, *const u8) =
                std::mem::transmute(self.0.entry());
            _mm_lfence();
            let begin = _rdtsc();
            _mm_lfence();
            run(rounds.max(1), rsi, rdx);
            _mm_lfence();
            let end = _rdtsc();
            _mm_lfence();
            end.wrapping_sub(begin)
        }
    }
}

/// The core's clock.
pub(super) struct Clock {
    chain: Kernel,
    /// The fastest recent rate.
    best: Cell<f64>,
}

impl Clock {
    /// A clock.
    ///
    /// # Errors
    /// As [`Kernel::new`].
    pub fn new() -> Result<Self> {
        Ok(Self { chain: Kernel::new(&ADD.repeat(ADDS))?, best: Cell::new(0.0) })
    }

    /// Core cycles per tick now.
    fn rate(&self) -> f64 {
        // SAFETY: the body accesses no memory.
        let ticks =
            (0..3).map(|_| unsafe { self.chain.ticks(ROUNDS, std::ptr::null(), std::ptr::null()) });
        (ROUNDS as f64 * ADDS as f64) / ticks.min().unwrap_or(1).max(1) as f64
    }

    /// The least core cycles of `rounds` runs; `None` if the clock changed during all of them.
    pub fn least(&self, rounds: usize, mut ticks: impl FnMut() -> u64) -> Option<f64> {
        let one = |_| {
            let before = self.rate();
            let ticks = ticks() as f64;
            let after = self.rate();
            let now = before.max(after);
            // An interrupted chain makes the core seem slow, and the run fast: a slower clock is
            // accepted only after a while.
            let best = now.max(self.best.get() * FORGET);
            self.best.set(best);
            let is_same =
                (before / after - 1.0).abs() <= SAME_CLOCK && now >= best * (1.0 - SAME_CLOCK);
            is_same.then_some(ticks * now)
        };
        (0..rounds).filter_map(one).min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `add rax, rcx` takes a cycle of this clock; a 64-bit multiplication three on Intel's cores
    /// since Nehalem and on every Zen, and never less than two.
    #[test]
    fn the_clock_tells_a_cycle_from_several() {
        let clock = Clock::new().unwrap();
        let cycles = |body: &[u8]| {
            let kernel = Kernel::new(&body.repeat(64)).unwrap();
            // SAFETY: registers only.
            let run = || unsafe { kernel.ticks(500, std::ptr::null(), std::ptr::null()) };
            Some(clock.least(40, run)? / (500.0 * 64.0))
        };
        // On a busy machine the clock may give no result.
        let (Some(add), Some(multiply)) = (cycles(&ADD), cycles(&[0x48, 0x0f, 0xaf, 0xc1])) else {
            return;
        };
        assert!(add > 0.5, "{add}");
        // imul rax, rcx
        assert!(multiply > 1.5 * add, "{multiply} {add}");
    }
}
