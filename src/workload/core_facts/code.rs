//! Speed of straight code by its length: beyond the op cache it comes from the decoders, beyond the
//! instruction cache from the second cache (Agner Fog, "The microarchitecture of Intel, AMD and VIA
//! CPUs"; uops.info and Chips and Cheese measure op caches so).

use super::super::memory::{Pages, Region};
use super::curve::Curve;
use super::kernel::{Clock, Kernel};
use tma::Result;

/// Fewest and most instructions, and sizes in an octave.
const FEWEST: f64 = 192.0;
const MOST: f64 = 24_576.0;
const STEPS: f64 = 6.0;
/// Least instructions per run, and runs, of which the fastest counts.
const RUN: usize = 60_000;
const RUNS: usize = 9;

/// Four instructions of four bytes and one slot on different units, and four on other registers, so
/// that none waits for the one before: `ds add r8d, ecx`, `ds mov r9, [rsi]`, `ds ds xor eax, eax`,
/// `pand xmm0, xmm4`
const SHORT: [&[u8]; 8] = [
    &[0x3e, 0x41, 0x01, 0xc8],
    &[0x3e, 0x4c, 0x8b, 0x0e],
    &[0x3e, 0x3e, 0x31, 0xc0],
    &[0x66, 0x0f, 0xdb, 0xc4],
    &[0x3e, 0x41, 0x01, 0xca],
    &[0x3e, 0x4c, 0x8b, 0x1e],
    &[0x3e, 0x3e, 0x31, 0xd2],
    &[0x66, 0x0f, 0xdb, 0xcc],
];
/// Additional prefixes without effect, for instructions of six bytes. No constants, of which lines
/// of some op caches hold fewer.
const LONGER: [u8; 2] = [0x3e; 2];

/// Cycles per instruction by the number of instructions, for short and for long ones.
///
/// # Errors
/// There is no memory, or none that is executable.
pub(super) fn measure(clock: &Clock) -> Result<(Curve, Curve)> {
    let memory = Region::new(4096, Pages::Default)?;
    let at: *const u8 = memory.start();
    let curve = |prefixes: &[u8]| -> Result<Curve> {
        let mut curve = Curve::new();
        for count in sizes() {
            let one = |i: usize| prefixes.iter().chain(SHORT[i % 8]).copied();
            let body: Vec<u8> = (0..count).flat_map(one).collect();
            let kernel = Kernel::new(&body)?;
            let rounds = RUN.div_ceil(count).max(3);
            // SAFETY: the instructions load 8 bytes at rsi, which is in the region.
            let run = || unsafe { kernel.ticks(rounds as u64, at, at) };
            run();
            let least = clock.least(RUNS, run);
            curve.extend(least.map(|cycles| (count as f64, cycles / (rounds * count) as f64)));
        }
        Ok(curve)
    };
    Ok((curve(&[])?, curve(&LONGER)?))
}

/// Numbers of instructions, in groups of eight.
fn sizes() -> Vec<usize> {
    let octaves = (MOST / FEWEST).log2();
    let size = |n: usize| (FEWEST * (n as f64 / STEPS).exp2()) as usize / 8 * 8;
    (0..=(octaves * STEPS) as usize).map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_length_they_are_named_by() {
        assert!(SHORT.iter().all(|i| i.len() == 4 && i.len() + LONGER.len() == 6));
        let all = sizes();
        assert_eq!((all[0], all.last()), (192, Some(&24_576)));
        assert!(all.windows(2).all(|two| two[0] < two[1]));
    }
}
