//! Programs with memory hazards (failed store forwarding, false dependencies between a store and a later load), and
//! programs bound by the microcode sequencer: a microcoded instruction, and an assist.

use super::super::memory::{Pages, Region};
use super::super::{Program, Setup};
use super::Rounds;
use std::arch::asm;
use tma::Result;

/// `store-forward-block`: a load of eight bytes that two four-byte stores wrote, which no single
/// store buffer entry holds; control: a load of the second store's four bytes.
pub(crate) fn store_forward_block(setup: Setup) -> Result<Box<dyn Program>> {
    let region = Region::new(4096, Pages::Default)?;
    Rounds::program(1 << 12, 4, move |rounds| {
        let p = region.start();
        // SAFETY: `p` points to 4096 bytes that are not shared, of which 8 are used.
        unsafe { if setup.control { forwarded(p, rounds) } else { blocked(p, rounds) } }
    })
}

/// The loop of both; they differ only in the load.
macro_rules! store_load {
    ($load:literal, $p:expr, $rounds:expr) => {{
        let mut value = 1u64;
        asm!(
            "2:",
            ".rept 4",
            "mov dword ptr [{p}], {value:e}",
            "mov dword ptr [{p} + 4], {value:e}",
            $load,
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            p = in(reg) $p,
            value = inout(reg) value,
            rounds = inout(reg) $rounds => _,
            options(nostack)
        );
        value
    }};
}

/// # Safety
/// `p` must be valid for writes of eight bytes; `rounds` not 0.
unsafe fn blocked(p: *mut u8, rounds: u64) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { store_load!("mov {value}, qword ptr [{p}]", p, rounds) }
}

/// # Safety
/// `p` must be valid for writes of eight bytes; `rounds` not 0.
unsafe fn forwarded(p: *mut u8, rounds: u64) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { store_load!("mov {value:e}, dword ptr [{p} + 4]", p, rounds) }
}

/// `4k-aliasing`: a chain of loads, each after a store exactly 4096 bytes higher; control: the store
/// is another 64 bytes higher.
pub(crate) fn four_k_aliasing(setup: Setup) -> Result<Box<dyn Program>> {
    let region = Region::new(3 * 4096, Pages::Default)?;
    let distance = if setup.control { 4096 + 64 } else { 4096 };
    Rounds::program(1 << 12, 8, move |rounds| {
        let load = region.start();
        // SAFETY: both lie in the region's 12288 bytes, which are zero and not shared.
        rounds + unsafe { aliasing(load, load.add(distance), rounds) }
    })
}

/// Loads what must be 0 from `load` in a chain, with a store of 0 to `store` before each.
///
/// # Safety
/// Both must be valid for writes of eight bytes, hold zeros and not overlap; `rounds` not 0.
unsafe fn aliasing(load: *mut u8, store: *mut u8, rounds: u64) -> u64 {
    let mut value = 0u64;
    // SAFETY: guaranteed by the caller: the loaded values are 0, so every address is `load`.
    unsafe {
        asm!(
            "2:",
            ".rept 8",
            "mov qword ptr [{store}], {zero}",
            "mov {value}, qword ptr [{load} + {value}]",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            store = in(reg) store,
            load = in(reg) load,
            zero = in(reg) 0u64,
            value = inout(reg) value,
            rounds = inout(reg) rounds => _,
            options(nostack)
        );
    }
    value
}

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
    fn loads_see_what_the_stores_wrote() {
        let mut word = [0u64; 2];
        let p = word.as_mut_ptr().cast();
        // SAFETY: `word` holds sixteen bytes and outlives the calls.
        let (wide, narrow) = unsafe { (blocked(p, 3), forwarded(p, 3)) };
        // Both halves of the word are stored from the low half of the value, which starts at 1.
        assert_eq!((wide, narrow), (0x1_0000_0001, 1));
    }

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
