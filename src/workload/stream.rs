//! `stream`: the triad of McCalpin's STREAM, `a[i] = b[i] + s × c[i]`, over arrays larger than the
//! caches: bound by bandwidth.

use super::memory::{Pages, Region};
use super::{Program, Setup};
use tma::Result;

/// Elements of a group: 64 bytes.
const GROUP: u64 = 8;
/// Elements between two readings of the clock.
const SLICE: u64 = 1 << 17;
/// The control's three arrays, together half of the smallest first-level data cache in use.
const IN_L1: u64 = 16 << 10;
/// STREAM's scalar.
const SCALAR: f64 = 3.0;

/// Three arrays of together `size` bytes; control: of 16 KiB, repeated until the same work is done.
pub(super) fn stream(setup: Setup) -> Result<Box<dyn Program>> {
    let elements = |bytes: u64| (bytes / 24 / GROUP).max(1) * GROUP;
    let whole = elements(setup.size);
    let length = if setup.control { elements(setup.size.min(IN_L1)) } else { whole };
    let mut region = Region::new(length * 24, Pages::Default)?;
    let arrays = region.numbers();
    let (a, rest) = arrays.split_at_mut(length as usize);
    let (b, c) = rest.split_at_mut(length as usize);
    a.fill(0.0);
    for (i, (b, c)) in b.iter_mut().zip(c).enumerate() {
        (*b, *c) = ((i % 16) as f64, (i % 5) as f64);
    }
    let per_repeat = whole * SLICE.div_ceil(whole);
    Ok(Box::new(Triad { region, length, at: 0, per_repeat, left: per_repeat }))
}

struct Triad {
    region: Region,
    /// Elements of each array, a multiple of [`GROUP`].
    length: u64,
    /// Start of the next slice.
    at: u64,
    per_repeat: u64,
    left: u64,
}

impl Program for Triad {
    fn slice(&mut self) -> u64 {
        let all = self.left.min(SLICE);
        let mut todo = all;
        while todo > 0 {
            let now = todo.min(self.length - self.at);
            let (from, to) = (self.at as usize, (self.at + now) as usize);
            let length = self.length as usize;
            let (a, rest) = self.region.numbers().split_at_mut(length);
            let (b, c) = rest.split_at_mut(length);
            triad(&mut a[from..to], &b[from..to], &c[from..to]);
            self.at = (self.at + now) % self.length;
            todo -= now;
        }
        self.left = if self.left == all { self.per_repeat } else { self.left - all };
        all
    }

    fn per_repeat(&self) -> u64 {
        self.per_repeat
    }

    /// Sum of a at about a thousand places (all of it would read the arrays once more).
    fn checksum(&self) -> u64 {
        let step = (self.length / 1009).max(1) as usize;
        let start = self.region.start().cast::<f64>();
        let sample = (0..self.length as usize).step_by(step).map(|i| {
            // SAFETY: i < length, and `a` is the first `length` numbers of the region.
            unsafe { start.add(i).read() }
        });
        sample.fold(0u64, |sum, x| sum.wrapping_mul(31).wrapping_add(x as u64))
    }
}

/// a = b + 3 × c, two elements an instruction whatever the build profile.
#[cfg(target_arch = "x86_64")]
fn triad(a: &mut [f64], b: &[f64], c: &[f64]) {
    use std::arch::asm;
    let elements = a.len().min(b.len()).min(c.len()) / GROUP as usize * GROUP as usize;
    if elements == 0 {
        return;
    }
    let scalar = [SCALAR; 2];
    // SAFETY: `offset` counts from 0 up to 8 × elements in steps of 64, so every access lies in
    // the three slices; a is borrowed mutably and the slices do not overlap.
    unsafe {
        asm!(
            "movupd xmm7, [{scalar}]",
            "2:",
            ".irp d, 0, 16, 32, 48",
            "movupd xmm0, [{c} + {offset} + \\d]",
            "movupd xmm1, [{b} + {offset} + \\d]",
            "mulpd xmm0, xmm7",
            "addpd xmm0, xmm1",
            "movupd [{a} + {offset} + \\d], xmm0",
            ".endr",
            "add {offset}, 64",
            "cmp {offset}, {end}",
            "jb 2b",
            scalar = in(reg) scalar.as_ptr(),
            a = in(reg) a.as_mut_ptr(),
            b = in(reg) b.as_ptr(),
            c = in(reg) c.as_ptr(),
            offset = inout(reg) 0usize => _,
            end = in(reg) elements * 8,
            out("xmm0") _, out("xmm1") _, out("xmm7") _,
            options(nostack)
        );
    }
}

/// a = b + 3 × c.
#[cfg(not(target_arch = "x86_64"))]
fn triad(a: &mut [f64], b: &[f64], c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + SCALAR * c;
    }
    std::hint::black_box(a);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_triad_is_b_plus_three_c() {
        let b: Vec<f64> = (0..16).map(f64::from).collect();
        let c: Vec<f64> = (0..16).map(|i| f64::from(i * i)).collect();
        let mut a = vec![0.0; 16];
        triad(&mut a, &b, &c);
        for (i, a) in (0..16).zip(&a) {
            assert_eq!(*a, f64::from(i + 3 * i * i));
        }
    }

    #[test]
    fn a_repeat_covers_the_whole_array() {
        for control in [false, true] {
            let mut program = stream(Setup { size: 24 * 8 * 5000, control }).unwrap();
            let mut done = 0;
            while done < program.per_repeat() {
                done += program.slice();
            }
            assert_eq!(done, program.per_repeat());
            assert_eq!(done % 40_000, 0);
            assert_ne!(program.checksum(), 0);
        }
    }
}
