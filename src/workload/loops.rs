//! Portable loops.
//!
//! `pointer-chase` and `tlb-walk` follow a chain of pointers in random order: every load depends on the one before. The
//! former spreads it over more memory than the caches hold; the latter has one link per page, so that the data fits a cache
//! but its translations fit no TLB. `stream` is the triad of McCalpin's STREAM, `a[i] = b[i] + s × c[i]`, over arrays larger
//! than the caches: bound by bandwidth. `idle` sleeps, invisible to a top-down analysis.

use crate::memory::{Pages, Region, cycle};
use crate::{Program, Setup};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Bytes between links that share no cache line (64 on x86; where lines are longer, links share).
const LINE: u64 = 64;
/// Bytes of the small page.
const PAGE: u64 = 4096;
/// Bytes of the control of pointer-chase: half of the smallest first-level data cache in use.
const CHAIN_IN_L1: u64 = 16 << 10;
/// Loads between two readings of the clock.
const CHAIN_SLICE: u64 = 1 << 14;
/// Fewest links per repeat, so that reading the clock is negligible for short chains.
const LEAST: u64 = 1 << 16;

/// `pointer-chase`: one link a line over `size` bytes; control: over 16 KiB.
pub(super) fn pointer_chase(setup: Setup) -> Result<Box<dyn Program>> {
    let bytes = if setup.control { setup.size.min(CHAIN_IN_L1) } else { setup.size };
    let chain = Chain::new(bytes / LINE, Pages::Huge, |i| i * LINE)?;
    Ok(Box::new(chain.repeating(setup.size / LINE)))
}

/// `tlb-walk`: one link a page, each at another line of its page so that they spread over the
/// cache's sets; control: the same links in adjacent lines.
pub(super) fn tlb_walk(setup: Setup) -> Result<Box<dyn Program>> {
    let links = setup.size / PAGE;
    let chain = if setup.control {
        Chain::new(links, Pages::Huge, |i| i * LINE)?
    } else {
        Chain::new(links, Pages::Small, |i| i * PAGE + (i % (PAGE / LINE)) * LINE)?
    };
    Ok(Box::new(chain.repeating(links)))
}

/// A closed chain of absolute addresses in a region of its own, and the current position.
struct Chain {
    // Owns the links; `at` points into it.
    _region: Region,
    at: *const usize,
    first: *const usize,
    per_repeat: u64,
    left: u64,
    sum: u64,
}

impl Chain {
    /// `links` links in random order, link `i` at byte `place(i)`, which must grow with `i` and
    /// be a multiple of [`LINE`].
    fn new(links: u64, pages: Pages, place: impl Fn(u64) -> u64) -> Result<Self> {
        let links = u32::try_from(links).map_err(|_| {
            Error::usage("more than 4294967295 links").hint("choose a smaller --size")
        })?;
        let bytes = place(u64::from(links));
        let region = Region::new(bytes.max(LINE), pages)?;
        let first = region.start().cast::<usize>();
        let link = |i: u32| {
            // `place` grows with i, so every link lies below place(links) = the region's size.
            first.wrapping_byte_add(place(u64::from(i)) as usize)
        };
        for (i, next) in (0u32..).zip(cycle(links)?) {
            // SAFETY: i < links, so by the above the aligned word lies in the region, which is
            // writable and not shared.
            unsafe { link(i).write(link(next) as usize) };
        }
        Ok(Self { _region: region, at: first, first, per_repeat: 0, left: 0, sum: 0 })
    }

    /// Current position, in bytes from the first link.
    fn offset(&self) -> u64 {
        (self.at as usize - self.first as usize) as u64
    }

    /// Sets a repeat to `loads` loads, or a multiple of at least [`LEAST`].
    fn repeating(mut self, loads: u64) -> Self {
        self.per_repeat = loads.max(1) * LEAST.div_ceil(loads.max(1));
        self.left = self.per_repeat;
        self
    }
}

impl Program for Chain {
    fn slice(&mut self) -> u64 {
        let loads = self.left.min(CHAIN_SLICE);
        // SAFETY: `at` is a link, every link holds the address of a link, and all of them lie in
        // the region, which lives as long as `self`.
        self.at = unsafe { walk(self.at, loads) };
        self.sum = self.sum.wrapping_mul(31).wrapping_add(self.offset() + 1);
        self.left = if self.left == loads { self.per_repeat } else { self.left - loads };
        loads
    }

    fn per_repeat(&self) -> u64 {
        self.per_repeat
    }

    fn checksum(&self) -> u64 {
        self.sum
    }
}

/// Follows `loads` links from `at`.
///
/// # Safety
/// `at` must be a link whose followers are all links.
#[cfg(target_arch = "x86_64")]
unsafe fn walk(mut at: *const usize, loads: u64) -> *const usize {
    use std::arch::asm;
    let (rounds, rest) = (loads / 16, loads % 16);
    if rounds > 0 {
        // SAFETY: loads only, from links guaranteed by the caller; no stack, no flags.
        unsafe {
            asm!(
                "2:",
                ".rept 16",
                "mov {at}, [{at}]",
                ".endr",
                "dec {rounds}",
                "jnz 2b",
                at = inout(reg) at,
                rounds = inout(reg) rounds => _,
                options(nostack, readonly)
            );
        }
    }
    for _ in 0..rest {
        // SAFETY: as above.
        at = unsafe { at.read() as *const usize };
    }
    at
}

/// Follows `loads` links from `at`.
///
/// # Safety
/// `at` must be a link whose followers are all links.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn walk(mut at: *const usize, loads: u64) -> *const usize {
    for _ in 0..loads {
        // SAFETY: guaranteed by the caller.
        at = unsafe { at.read() as *const usize };
    }
    std::hint::black_box(at)
}

/// Elements of a group: 64 bytes.
const GROUP: u64 = 8;
/// Elements between two readings of the clock.
const TRIAD_SLICE: u64 = 1 << 17;
/// The control's three arrays, together half of the smallest first-level data cache in use.
const ARRAYS_IN_L1: u64 = 16 << 10;
/// STREAM's scalar.
const SCALAR: f64 = 3.0;

/// Three arrays of together `size` bytes; control: of 16 KiB, repeated until the same work is done.
pub(super) fn stream(setup: Setup) -> Result<Box<dyn Program>> {
    let elements = |bytes: u64| (bytes / 24 / GROUP).max(1) * GROUP;
    let whole = elements(setup.size);
    let length = if setup.control { elements(setup.size.min(ARRAYS_IN_L1)) } else { whole };
    let mut region = Region::new(length * 24, Pages::Default)?;
    let arrays = region.numbers();
    let (a, rest) = arrays.split_at_mut(length as usize);
    let (b, c) = rest.split_at_mut(length as usize);
    a.fill(0.0);
    for (i, (b, c)) in b.iter_mut().zip(c).enumerate() {
        (*b, *c) = ((i % 16) as f64, (i % 5) as f64);
    }
    let per_repeat = whole * TRIAD_SLICE.div_ceil(whole);
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
        let all = self.left.min(TRIAD_SLICE);
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

/// Duration of one iteration.
const PERIOD: Duration = Duration::from_millis(1);

/// Sleeps of a millisecond; control: computing for a millisecond.
pub(super) fn idle(setup: Setup) -> Result<Box<dyn Program>> {
    Ok(Box::new(Idle { control: setup.control, iterations: 0 }))
}

struct Idle {
    control: bool,
    iterations: u64,
}

impl Program for Idle {
    fn slice(&mut self) -> u64 {
        if self.control {
            let begin = Instant::now();
            while begin.elapsed() < PERIOD {
                (0..1000u64).for_each(|i| {
                    black_box(i);
                });
            }
        } else {
            std::thread::sleep(PERIOD);
        }
        self.iterations += 1;
        1
    }

    fn per_repeat(&self) -> u64 {
        1
    }

    fn checksum(&self) -> u64 {
        self.iterations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_ends_where_it_began_and_visits_every_link() {
        for links in [1u64, 2, 63, 1000] {
            let mut chain = Chain::new(links, Pages::Small, |i| i * PAGE).unwrap().repeating(links);
            let mut seen = std::collections::HashSet::new();
            for _ in 0..links {
                assert!(seen.insert(chain.at as usize), "link twice of {links}");
                // SAFETY: `at` is a link of a chain that lives.
                chain.at = unsafe { walk(chain.at, 1) };
            }
            assert_eq!(chain.offset(), 0);
            let (mut done, whole) = (0, chain.per_repeat());
            assert_eq!(whole % links, 0);
            while done < whole {
                done += chain.slice();
            }
            assert_eq!((done, chain.offset()), (whole, 0));
        }
    }

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
