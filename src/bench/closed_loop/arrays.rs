//! The arrays that a loop accesses: the register that points into each, its extent and its place, from register
//! values as far as they are planned.

use isa::flow::{Iteration, Linear, LinearAccess, Loaded, Term};

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

/// Registers planned so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    values: [i64; 16],
}

impl Known {
    pub(super) fn register(&self, number: u8) -> i64 {
        self.values[usize::from(number)]
    }

    pub(super) fn set(&mut self, number: u8, value: i64) {
        self.values[usize::from(number)] = value;
    }
}

/// The value of a form in iteration `number`, from 0; `None` where it depends on more than registers that
/// change by a fixed amount.
pub(super) fn at(
    iteration: &Iteration,
    form: &Linear,
    known: &Known,
    number: usize,
) -> Option<i64> {
    let mut sum = form.constant;
    for (term, factor) in &form.terms {
        let Term::Register(register) = term else { return None };
        let step = iteration.step(*register)?;
        let now = known.register(*register).wrapping_add(step * number as i64);
        sum = sum.wrapping_add(now.wrapping_mul(*factor));
    }
    Some(sum)
}

/// A pointer register and the accesses through it.
#[derive(Debug, Clone)]
pub(super) struct Pointer {
    /// Encoding number.
    pub register: u8,
    /// Numbers of the accesses.
    pub accesses: Vec<usize>,
    /// Where the next node's address is, if each iteration loads the next value of the register.
    pub next_node: Option<i64>,
}

/// The pointers of an iteration. Those that are the only register of some address come first, since the values of
/// others may be relative to them.
pub(super) fn pointers(iteration: &Iteration) -> Vec<Pointer> {
    let mut found: Vec<Pointer> = Vec::new();
    let mut add =
        |register: u8, access: usize| match found.iter_mut().find(|p| p.register == register) {
            Some(pointer) => pointer.accesses.push(access),
            None => found.push(Pointer {
                register,
                accesses: vec![access],
                next_node: next_node(iteration, register),
            }),
        };
    let alone = alone(iteration);
    let candidates = |access: &LinearAccess| candidates(iteration, access);
    for (number, access) in iteration.accesses.iter().enumerate() {
        if let [register] = candidates(access)[..] {
            add(register, number);
        }
    }
    for (number, access) in iteration.accesses.iter().enumerate() {
        let own = candidates(access);
        if own.len() < 2 {
            continue;
        }
        // An unchanging register beside a pointer is the distance to another array; a changing
        // one is an index.
        let fixed = |r: &&u8| iteration.step(**r) == Some(0);
        let distance = own.iter().find(|r| fixed(r) && !alone.contains(r));
        let chosen = distance.or_else(|| own.iter().find(|r| alone.contains(r)));
        add(*chosen.unwrap_or(&own[0]), number);
    }
    found
}

/// Registers that are the only possible pointer of an access.
fn alone(iteration: &Iteration) -> Vec<u8> {
    let single = iteration.accesses.iter().map(|access| candidates(iteration, access));
    single.filter(|own| own.len() == 1).map(|own| own[0]).collect()
}

/// Registers of an address that may be its pointer: not scaled, and changed by a fixed amount or
/// loaded from where they point.
fn candidates(iteration: &Iteration, access: &LinearAccess) -> Vec<u8> {
    if spilled_pointer(iteration, access).is_some() {
        return Vec::new();
    }
    let may_point = |register: u8| {
        iteration.step(register).is_some() || next_node(iteration, register).is_some()
    };
    let registers = access.address.registers();
    registers.filter(|(r, factor)| *factor == 1 && may_point(*r)).map(|(r, _)| r).collect()
}

/// A pointer that the compiler keeps in memory, and the accesses through it.
pub(super) struct Spilled<'a> {
    pub loaded: &'a Loaded,
    pub accesses: Vec<&'a LinearAccess>,
}

/// The pointers that are loaded from where no iteration writes another.
pub(super) fn spilled(iteration: &Iteration) -> Vec<Spilled<'_>> {
    let mut found: Vec<Spilled<'_>> = Vec::new();
    for access in &iteration.accesses {
        let Some(loaded) = spilled_pointer(iteration, access) else { continue };
        match found.iter_mut().find(|pointer| pointer.loaded == loaded) {
            Some(pointer) => pointer.accesses.push(access),
            None => found.push(Spilled { loaded, accesses: vec![access] }),
        }
    }
    found
}

/// The part of an address that is loaded whole from a fixed place.
fn spilled_pointer<'a>(iteration: &Iteration, access: &'a LinearAccess) -> Option<&'a Loaded> {
    let fixed = |loaded: &Loaded| {
        let terms = &loaded.address.terms;
        terms.iter().all(|(t, _)| matches!(t, Term::Register(r) if iteration.step(*r) == Some(0)))
    };
    access.address.terms.iter().find_map(|(term, factor)| match term {
        Term::Loaded(loaded) if *factor == 1 && loaded.bytes == 8 && fixed(loaded) => {
            Some(&**loaded)
        }
        _ => None,
    })
}

/// The displacement of a list's link: an iteration loads the register from `[register + this]`.
fn next_node(iteration: &Iteration, register: u8) -> Option<i64> {
    let [(Term::Loaded(next), 1)] = &iteration.after[usize::from(register)].terms[..] else {
        return None;
    };
    let own = next.address.terms == [(Term::Register(register), 1)] && next.bytes == 8;
    (own && iteration.after[usize::from(register)].constant == 0).then_some(next.address.constant)
}

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
