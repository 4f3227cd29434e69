//! Two loads that miss all caches, with instructions in between: the misses overlap while the
//! reorder buffer holds these instructions (Henry Wong, "Measuring Reorder Buffer Capacity", 2013).

use super::curve::Curve;
use super::kernel::{Clock, Kernel};
use super::walks::Memory;
use tma::Result;

/// Fewest and most instructions in between; the most exceed every buffer (Lion Cove's: 576
/// entries).
const FEWEST: usize = 24;
const MOST: usize = 1_200;
/// Rounds per run, of two misses each, and runs, of which the fastest counts.
const ROUNDS: u64 = 150;
const RUNS: usize = 4;
/// `mov rsi, [rsi]`, `mov rdx, [rdx]`
const LOADS: [[u8; 3]; 2] = [[0x48, 0x8b, 0x36], [0x48, 0x8b, 0x12]];

/// Instructions in between. Each kind is also limited by its registers, of which a core may have
/// fewer.
pub(super) const FILLERS: [&[&[u8]]; 3] = [
    // nop: only needs an entry, unless two share one
    &[&[0x90]],
    // add r8d, ecx, …: general registers
    &[&[0x41, 0x01, 0xc8], &[0x41, 0x01, 0xc9], &[0x41, 0x01, 0xca], &[0x41, 0x01, 0xcb]],
    // add r8d, ecx; pand xmm0, xmm4; add r9d, ecx; pand xmm1, xmm4: both kinds of registers
    &[
        &[0x41, 0x01, 0xc8],
        &[0x66, 0x0f, 0xdb, 0xc4],
        &[0x41, 0x01, 0xc9],
        &[0x66, 0x0f, 0xdb, 0xcc],
    ],
];

/// Cycles of two misses by the number of instructions in between, for each kind.
///
/// # Errors
/// There is no memory, or none that is executable.
pub(super) fn measure(clock: &Clock, memory: &mut Memory) -> Result<[Curve; 3]> {
    memory.whole()?;
    let mut curves = [const { Curve::new() }; 3];
    for (filler, curve) in FILLERS.iter().zip(&mut curves) {
        for between in sizes() {
            let fill = || (0..between).flat_map(|i| filler[i % filler.len()].iter().copied());
            let body: Vec<u8> =
                LOADS.iter().flat_map(|load| load.iter().copied().chain(fill())).collect();
            let kernel = Kernel::new(&body)?;
            let least = clock.least(RUNS, || {
                let (one, other) = (memory.link(), memory.link());
                // SAFETY: both are links of a ring, each of which leads to another one.
                unsafe { kernel.ticks(ROUNDS, one, other) }
            });
            curve.extend(least.map(|cycles| (between as f64, cycles / ROUNDS as f64)));
        }
    }
    Ok(curves)
}

/// Numbers of instructions in between, a 32nd apart.
fn sizes() -> Vec<usize> {
    let next = |n: &usize| Some(n + (n / 32).max(4));
    std::iter::successors(Some(FEWEST), next).take_while(|n| *n <= MOST).collect()
}
