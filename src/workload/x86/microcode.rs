//! The microcode sequencer: a microcoded instruction, and an assist.

use super::super::memory::{Pages, Region};
use super::super::{Program, Setup};
use super::Rounds;
use std::arch::asm;
use tma::Result;

/// `microcoded`: 64 bytes read by `rep lodsb`, which no processor replaces with wide moves; control:
/// by 64 plain loads.
pub(crate) fn microcoded(setup: Setup) -> Result<Box<dyn Program>> {
    let mut region = Region::new(4096, Pages::Default)?;
    region.numbers().fill(1.0);
    Rounds::program(1 << 11, 64, move |rounds| {
        let p = region.start();
        // SAFETY: `p` points to 4096 bytes that are not shared, of which 64 are read.
        unsafe { if setup.control { plain_loads(p, rounds) } else { rep_lods(p, rounds) } }
    })
}

/// # Safety
/// `p` must be valid for reads of 64 bytes; `rounds` not 0.
unsafe fn rep_lods(p: *const u8, rounds: u64) -> u64 {
    let mut last = 0u64;
    // SAFETY: reads 64 bytes from `p` each round, guaranteed by the caller; the direction flag is
    // clear, as required by the calling convention.
    unsafe {
        asm!(
            "2:",
            "mov ecx, 64",
            "mov rsi, {p}",
            "rep lodsb",
            "dec {rounds}",
            "jnz 2b",
            p = in(reg) p,
            rounds = inout(reg) rounds => _,
            out("rcx") _,
            out("rsi") _,
            inout("rax") last,
            options(nostack, readonly)
        );
    }
    last
}

/// # Safety
/// `p` must be valid for reads of 64 bytes; `rounds` not 0.
unsafe fn plain_loads(p: *const u8, rounds: u64) -> u64 {
    let mut last = 0u64;
    // SAFETY: reads 64 bytes from `p` each round, guaranteed by the caller.
    unsafe {
        asm!(
            "2:",
            ".irp line, 0, 8, 16, 24, 32, 40, 48, 56",
            ".irp byte, 0, 1, 2, 3, 4, 5, 6, 7",
            "movzx {last:e}, byte ptr [{p} + \\line + \\byte]",
            ".endr",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            p = in(reg) p,
            rounds = inout(reg) rounds => _,
            last = inout(reg) last,
            options(nostack, readonly)
        );
    }
    last
}

/// `denormals`: multiplications of a subnormal number; control: of a normal one.
pub(crate) fn denormals(setup: Setup) -> Result<Box<dyn Program>> {
    let factor = if setup.control { 0.25 } else { f64::MIN_POSITIVE / 4.0 };
    Rounds::program(1 << 11, 8, move |rounds| halve(factor, rounds).to_bits())
}

/// Multiplies `factor` by 0.5, eight times per round, independently.
fn halve(factor: f64, rounds: u64) -> f64 {
    let half = 0.5f64;
    let mut product = 0f64;
    // SAFETY: registers only; `rounds` is not 0, so the loop ends. Assists do not trap: the
    // default floating-point environment masks all exceptions.
    unsafe {
        asm!(
            "2:",
            ".irp r, 0, 1, 2, 3, 4, 5, 6, 7",
            "movapd xmm\\r, {factor}",
            "mulsd xmm\\r, {half}",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            rounds = inout(reg) rounds => _,
            factor = in(xmm_reg) factor,
            half = in(xmm_reg) half,
            out("xmm0") product, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            out("xmm5") _, out("xmm6") _, out("xmm7") _,
            options(nostack, nomem)
        );
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_read_the_last_byte() {
        let bytes: Vec<u8> = (1..=64).collect();
        // SAFETY: 64 bytes are readable.
        let (microcoded, plain) =
            unsafe { (rep_lods(bytes.as_ptr(), 2), plain_loads(bytes.as_ptr(), 2)) };
        assert_eq!((microcoded, plain), (64, 64));
    }

    #[test]
    fn half_of_a_subnormal_is_subnormal() {
        let product = halve(f64::MIN_POSITIVE / 4.0, 1);
        assert!(product.is_subnormal());
        assert_eq!(product, f64::MIN_POSITIVE / 8.0);
        assert_eq!(halve(0.25, 1), 0.125);
    }
}
