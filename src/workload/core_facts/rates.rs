//! Rates of loads, of stores, and of pairs of a store and a load that it is forwarded to.

use super::super::memory::{Pages, Region};
use super::kernel::{Clock, Kernel};
use tma::Result;

/// Instructions per round, rounds per run, and runs, of which the fastest counts.
const BODY: usize = 48;
const ROUNDS: u64 = 400;
const RUNS: usize = 150;
/// Bytes of the memory, of which one line is used.
const BYTES: u64 = 4096;

/// Cycles per instruction or pair.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// The faster of loads of 8 and of 16 bytes.
    pub load: Option<f64>,
    /// A store of 8 bytes to one line.
    pub store: Option<f64>,
    /// A chain of a store and a load through the same register and displacement.
    pub slot: Option<f64>,
    /// As `slot`, with a load of the upper half: no core replaces it by the stored register.
    pub half: Option<f64>,
}

/// Measures all rates.
///
/// # Errors
/// There is no memory, or none that is executable.
pub(super) fn measure(clock: &Clock) -> Result<Rates> {
    let memory = Region::new(BYTES, Pages::Default)?;
    let at: *const u8 = memory.start();
    let cycles = |instruction: &dyn Fn(usize) -> Vec<u8>, each: usize| -> Result<Option<f64>> {
        let body: Vec<u8> = (0..BODY).flat_map(instruction).collect();
        let kernel = Kernel::new(&body)?;
        // SAFETY: the bodies below access a line at rsi and rdx, which is in the region.
        let least = clock.least(RUNS, || unsafe { kernel.ticks(ROUNDS, at, at) });
        Ok(least.map(|cycles| cycles / (ROUNDS * (BODY / each) as u64) as f64))
    };
    // mov r8..r11, [rsi + 0..56]; movups xmm0..xmm3, [rsi + 0..48]
    let load = |i: usize| vec![0x4c, 0x8b, 0x46 | (i as u8 % 4) << 3, i as u8 % 8 * 8];
    let vector = |i: usize| vec![0x0f, 0x10, 0x46 | (i as u8 % 4) << 3, i as u8 % 4 * 16];
    // mov [rsi + 0..56], rcx
    let store = |i: usize| vec![0x48, 0x89, 0x4e, i as u8 % 8 * 8];
    // mov [rsi + 8], rax; mov rax, [rsi + 8], and ds mov eax, [rsi + 12]
    let slot = |i: usize| vec![0x48, if i.is_multiple_of(2) { 0x89 } else { 0x8b }, 0x46, 8];
    let half = |i: usize| if i.is_multiple_of(2) { slot(0) } else { vec![0x3e, 0x8b, 0x46, 12] };
    let (first, second) = (cycles(&load, 1)?, cycles(&vector, 1)?);
    Ok(Rates {
        load: [first, second].into_iter().flatten().min_by(f64::total_cmp),
        store: cycles(&store, 1)?,
        slot: cycles(&slot, 2)?,
        half: cycles(&half, 2)?,
    })
}
