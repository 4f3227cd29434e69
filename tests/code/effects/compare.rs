//! One run of an instruction against what is said of it.

use super::runner::{Answer, INSIDE, OUTSIDE, State, UPPER};
use iced_x86::{Instruction, OpKind};
use isa::effects::{ArchReg, Effects, Role};
use std::sync::LazyLock;

/// All places, by their number.
static PLACES: LazyLock<Vec<ArchReg>> = LazyLock::new(|| {
    let registers = (0..16)
        .map(ArchReg::gpr)
        .chain((0..32).map(ArchReg::vector))
        .chain((0..8).map(ArchReg::mask));
    let flags = [ArchReg::CARRY, ArchReg::OVERFLOW, ArchReg::SZAP, ArchReg::DIRECTION];
    let all: Vec<ArchReg> = registers.chain(flags).collect();
    assert!(all.iter().enumerate().all(|(number, place)| place.index() == number));
    all
});

/// The places whose bits are set, those of the vectors from 16 on.
fn places(mut bits: u64) -> impl Iterator<Item = ArchReg> {
    std::iter::from_fn(move || {
        let number = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        PLACES.get(number).copied()
    })
}

/// The bits of [`places`] for a set of vectors.
fn vectors(bits: u32) -> u64 {
    u64::from(bits) << 16
}

/// One run, and what is said of it.
pub struct Look<'a> {
    pub effects: &'a Effects,
    pub instruction: &'a Instruction,
    pub base: &'a State,
}

impl Look<'_> {
    pub fn findings(&self, answer: &Answer, stores: &[(u64, u64)]) -> Vec<String> {
        let mut all = Vec::new();
        self.written(answer, &mut all);
        for place in PLACES.iter() {
            self.read(*place, answer, &mut all);
        }
        self.memory(answer, stores, &mut all);
        all
    }

    /// Whether it has a vector operand of more than 16 bytes.
    fn wide(&self) -> bool {
        (0..self.instruction.op_count()).any(|i| {
            self.instruction.op_kind(i) == OpKind::Register
                && self.instruction.op_register(i).is_vector_register()
                && self.instruction.op_register(i).size() > 16
        })
    }

    /// Whether it is one that clears vectors' upper parts: renaming does it, and it is said to
    /// write nothing.
    fn clears(&self) -> bool {
        use iced_x86::Mnemonic::{Vzeroall, Vzeroupper};
        matches!(self.instruction.mnemonic(), Vzeroall | Vzeroupper)
    }

    fn whole(&self, place: ArchReg) -> Option<bool> {
        self.effects.writes.iter().find(|w| w.reg == place).map(|w| w.whole)
    }

    fn written(&self, answer: &Answer, all: &mut Vec<String>) {
        let (before, after) = (self.base, &answer.out);
        for place in PLACES.iter().copied() {
            let changed = value(before, place) != value(after, place);
            let upper = place.is_vector() && upper(before, place) != upper(after, place);
            match self.whole(place) {
                None if changed || (upper && !self.clears()) => {
                    all.push(format!("writes {} too", class(place)));
                }
                Some(false) if upper && !self.instruction.has_op_mask() => {
                    all.push("writes the upper part too".to_owned())
                }
                _ => {}
            }
        }
    }

    /// Whether the value of `from` may be part of what `to` becomes.
    fn leads(&self, from: ArchReg, to: ArchReg) -> bool {
        let reads = self.effects.reads.iter().filter(|r| r.reg == from);
        reads
            .flat_map(|r| self.effects.writes.iter().filter(|w| w.reg == to).map(move |w| (r, w)))
            .any(|(read, write)| self.effects.flows(read, write))
    }

    /// What changed although `place` alone was another.
    fn read(&self, place: ArchReg, answer: &Answer, all: &mut Vec<String>) {
        let change = &answer.changes[place.index()];
        if !change.failed {
            for to in places(change.places) {
                // What the manual leaves undefined, a processor may leave as it was.
                let undefined = self.instruction.rflags_undefined() != 0 && to.is_flag();
                let kept = to == place && (self.whole(to) != Some(true) || undefined);
                if !kept && !self.leads(place, to) {
                    all.push(format!("{} leads to {} too", class(place), class(to)));
                }
            }
            for to in places(vectors(change.upper)) {
                if !self.leads(place, to) {
                    all.push(format!(
                        "{} leads to the upper part of {} too",
                        class(place),
                        class(to)
                    ));
                }
            }
            let stored = self.effects.reads.iter().filter(|r| r.reg == place).any(|r| {
                let located = matches!(r.role, Role::Address(at)
                    if self.effects.memory.get(usize::from(at)).is_some_and(|m| m.store));
                located || self.effects.flows_to_store(r)
            });
            if change.memory && !stored {
                all.push(format!("{} is stored too", class(place)));
            }
        }
        if place.is_vector() && !self.clears() {
            self.read_upper(place, answer, all);
        }
    }

    fn read_upper(&self, place: ArchReg, answer: &Answer, all: &mut Vec<String>) {
        let change = &answer.changes[UPPER + place.index() - 16];
        if change.failed {
            return;
        }
        for to in places(change.places | vectors(change.upper)) {
            let low = change.places >> to.index() & 1 != 0;
            let kept = to == place && self.whole(to) != Some(true) && !low;
            let said = self.wide() && self.leads(place, to);
            if !kept && !said {
                all.push(format!("the upper part of {} leads to {} too", class(place), class(to)));
            }
        }
        if change.memory && !(self.wide() && self.effects.read().has(place)) {
            all.push("the upper part is stored too".to_owned());
        }
    }

    fn memory(&self, answer: &Answer, stores: &[(u64, u64)], all: &mut Vec<String>) {
        let within = |address: &u64| stores.iter().any(|(at, n)| address.wrapping_sub(*at) < *n);
        if !answer.stores.iter().all(within) {
            all.push("stores elsewhere".to_owned());
        }
        let outside = &answer.changes[OUTSIDE];
        if !outside.failed && (outside.places != 0 || outside.upper != 0) {
            all.push("loads from elsewhere".to_owned());
        }
        let inside = &answer.changes[INSIDE];
        if inside.failed {
            return;
        }
        let loads = self.effects.memory.iter().any(|m| m.load);
        for to in places(inside.places | vectors(inside.upper)) {
            let write = self.effects.writes.iter().find(|w| w.reg == to);
            if !(loads && write.is_some_and(|w| self.effects.loaded_flows(w))) {
                all.push(format!("memory leads to {} too", class(to)));
            }
        }
    }
}

/// Kinds of places, for findings.
pub fn class(place: ArchReg) -> String {
    match place {
        p if p == ArchReg::gpr(4) => "rsp".to_owned(),
        p if p.as_gpr().is_some() => "a register".to_owned(),
        p if p.is_vector() => "a vector".to_owned(),
        p if p.index() < 56 => "a mask".to_owned(),
        p => p.name(),
    }
}

fn value(state: &State, place: ArchReg) -> [u64; 2] {
    let flags = |mask: u64| [state.flags & mask, 0];
    match place.index() {
        at @ 0..16 => [state.gpr[at], 0],
        at @ 16..48 => [state.vectors[at - 16][0], state.vectors[at - 16][1]],
        at @ 48..56 => [state.masks[at - 48], 0],
        56 => flags(1),
        57 => flags(0x800),
        58 => flags(0xd4),
        _ => flags(0x400),
    }
}

fn upper(state: &State, place: ArchReg) -> &[u64] {
    &state.vectors[place.index() - 16][2..]
}
