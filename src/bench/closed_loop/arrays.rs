//! Extent and place of the array behind each pointer.

use super::known::Known;
use super::pointers::Pointer;
use isa::flow::{Iteration, Linear, LinearAccess, Term};

/// Start of the arrays' address space, and the size of each array's part of it.
const FIRST: u64 = 0x2000_0000;
const APART: u64 = 0x0100_0000;
/// Distance of the offsets of arrays within a page: no two of nine differ by a multiple of 1 KiB, so that no load
/// appears to overlap an older store of another array.
const STAGGER: u64 = 448;
/// Bytes of an array accessed at an unknown offset.
const UNKNOWN: i64 = 1024;
/// Most bytes of a table that is indexed by loaded or computed values.
pub(super) const TABLE: i64 = 2048;

/// The bytes accessed through a pointer, relative to its first value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub low: i64,
    pub high: i64,
}

/// The change of an address in one iteration; 0 where it is not fixed.
pub(super) fn stride(iteration: &Iteration, address: &Linear) -> i64 {
    let step = |(register, factor): (u8, i64)| factor * iteration.step(register).unwrap_or(0);
    address.registers().map(step).sum()
}

/// The greatest value of a term times its factor; `None` where it has none.
fn most(iteration: &Iteration, term: &Term, factor: i64) -> Option<i64> {
    let limited = |most: Option<u64>| {
        let most = i64::try_from(most?).ok()?.checked_mul(factor.abs())?;
        Some(most.min(TABLE.max(256 * factor.abs())))
    };
    match term {
        Term::Register(register) => match &iteration.after[usize::from(*register)].terms[..] {
            // Left by the previous iteration.
            [(Term::Unknown { most }, 1)] => limited(*most),
            [(Term::Loaded(loaded), 1)] => limited(Some((1 << (8 * loaded.bytes.min(4))) - 1)),
            _ => Some(0),
        },
        Term::Loaded(loaded) => limited(Some((1u64 << (8 * loaded.bytes.min(4))) - 1)),
        Term::Unknown { most } => limited(*most),
    }
}

impl Extent {
    /// Offset of an access in the first iteration from its pointer, with all other registers as `known`.
    pub(super) fn first(
        iteration: &Iteration,
        access: &LinearAccess,
        pointer: u8,
        known: &Known,
    ) -> i64 {
        let address = &access.address;
        let others = address.registers().filter(|(r, _)| *r != pointer);
        let fixed = others.filter(|(r, _)| iteration.step(*r).is_some());
        fixed.fold(address.constant, |sum, (r, factor)| {
            sum.wrapping_add(known.register(r).wrapping_mul(factor))
        })
    }

    /// The bytes that an access touches in `iterations`, with all registers but the pointer as `known`.
    pub(super) fn of(
        iteration: &Iteration,
        access: &LinearAccess,
        pointer: u8,
        known: &Known,
        iterations: usize,
    ) -> Self {
        let start = Self::first(iteration, access, pointer, known);
        let moved = stride(iteration, &access.address) * (iterations as i64 - 1);
        let varying = access.address.terms.iter().filter(|(term, _)| match term {
            Term::Register(r) => *r != pointer && iteration.step(*r).is_none(),
            _ => true,
        });
        let room: i64 = varying.map(|(term, f)| most(iteration, term, *f).unwrap_or(UNKNOWN)).sum();
        let (low, high) = (start + moved.min(0), start + moved.max(0));
        Self { low, high: high + room + access.bytes as i64 }
    }
}

impl Extent {
    /// Both.
    pub(super) fn and(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

/// Bytes accessed through a pointer.
pub(super) fn whole(
    iteration: &Iteration,
    pointer: &Pointer,
    known: &Known,
    iterations: usize,
) -> Extent {
    let own = pointer
        .accesses
        .iter()
        .map(|n| &iteration.accesses[*n])
        .map(|access| Extent::of(iteration, access, pointer.register, known, iterations));
    own.reduce(Extent::and).unwrap_or(Extent { low: 0, high: 0 })
}

/// Start addresses of arrays of these lengths in bytes: offsets within a page do not overlap if all arrays fit one
/// page.
pub(super) fn places(lengths: &[u64]) -> Vec<u64> {
    let rounded = |length: &u64| length.next_multiple_of(64) + 64;
    let fit = lengths.iter().map(rounded).sum::<u64>() <= 4096;
    let mut offset = 0;
    let place = |(number, length): (usize, &u64)| {
        let place = FIRST + APART * number as u64 + offset % 4096;
        offset += if fit { rounded(length) } else { STAGGER };
        place
    };
    lengths.iter().enumerate().map(place).collect()
}
