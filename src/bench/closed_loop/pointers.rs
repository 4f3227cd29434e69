//! Which register of an address is the pointer of its array.

use isa::flow::{Iteration, LinearAccess, Loaded, Term};

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
