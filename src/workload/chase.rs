//! A chain of pointers in random order: every load depends on the one before.
//!
//! `pointer-chase` spreads it over more memory than the caches hold; `tlb-walk` has one link per
//! page, so that the data fits a cache but its translations fit no TLB.

use super::memory::{Pages, Region};
use super::random::cycle;
use super::{Program, Setup};
use tma::{Error, Result};

/// Bytes between links that share no cache line (64 on x86; where lines are longer, links share).
const LINE: u64 = 64;
/// Bytes of the small page.
const PAGE: u64 = 4096;
/// Bytes of the control of pointer-chase: half of the smallest first-level data cache in use.
const IN_L1: u64 = 16 << 10;
/// Loads between two readings of the clock.
const SLICE: u64 = 1 << 14;
/// Fewest links per repeat, so that reading the clock is negligible for short chains.
const LEAST: u64 = 1 << 16;

/// `pointer-chase`: one link a line over `size` bytes; control: over 16 KiB.
pub(super) fn pointer_chase(setup: Setup) -> Result<Box<dyn Program>> {
    let bytes = if setup.control { setup.size.min(IN_L1) } else { setup.size };
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
        let loads = self.left.min(SLICE);
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
}
