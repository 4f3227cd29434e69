//! What `code::effects` says of thousands of instructions, against the processor itself: each is run
//! natively, again and again with one register, group of flags or other memory changed. What then
//! comes out differently was read, what comes out different from what went in was written; both must
//! have been said, with the way from the one to the other.
//!
//! Values tell the truth on every processor, so the effects for all kinds of cores are held against
//! them. That a read which is said changes nothing proves no error: such are printed, not counted.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "effects_native/forms.rs"]
mod forms;
#[path = "effects_native/runner.rs"]
mod runner;

use forms::{Forms, Random};
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};
use isa::effects::{Access, Effects, Place, Role};
use runner::{Answer, INSIDE, OUTSIDE, Runner, State, UPPER};
use std::collections::BTreeMap;

/// Cores of which something else is said than of others.
const CORES: [Option<&str>; 5] = [None, Some("emr"), Some("skl"), Some("hsw"), Some("zen3")];
/// SIGILL: the processor lacks it, whatever the state.
const ILLEGAL: u64 = 4;
/// Pairs of states of each instruction.
const STATES: u64 = 2;

#[test]
fn nothing_is_read_or_written_that_is_not_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut runner = match Runner::new(folder.path()) {
        Ok(runner) => runner,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let mut forms = Forms::default();
    forms.catalog();
    forms.random(40_000);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/blocks/bhive-dev.csv");
    match std::fs::read_to_string(path) {
        Ok(text) => forms.blocks(text.lines().skip(1).filter_map(|line| line.split(',').next())),
        Err(_) => eprintln!("skipped: the blocks of {path}"),
    }
    let mut tally = Tally::default();
    for bytes in &forms.all {
        tally.ran += usize::from(tried(&mut runner, bytes, &mut tally.findings));
    }
    eprintln!("{} of {} instructions ran through", tally.ran, forms.all.len());
    for (finding, texts) in &tally.findings.idle {
        eprintln!("not seen: {finding}: {} such as {}", texts.len(), texts[0]);
    }
    let wrong: Vec<String> = (tally.findings.wrong.iter())
        .map(|(finding, texts)| {
            format!("{finding}: {}: {}", texts.len(), texts[..texts.len().min(8)].join(" | "))
        })
        .collect();
    assert!(tally.ran > 1000, "{} of {}", tally.ran, forms.all.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Default)]
struct Tally {
    ran: usize,
    findings: Findings,
}

/// By what was found, the instructions of which it was.
#[derive(Default)]
struct Findings {
    wrong: BTreeMap<String, Vec<String>>,
    idle: BTreeMap<String, Vec<String>>,
}

/// Runs one instruction from several states; false where none of them ran through.
fn tried(runner: &mut Runner, bytes: &[u8], findings: &mut Findings) -> bool {
    let instruction = Decoder::with_ip(64, bytes, 0x3000_0000_0000, DecoderOptions::NONE).decode();
    let cores = CORES.map(|core| Effects::of(&instruction, core));
    // Its memory is where the instruction lies, which is not known here.
    let relative = instruction.is_ip_rel_memory_operand();
    // Prefixes that no compiler writes: string instructions of 32-bit addresses, `data16 leave`.
    let odd = instruction.is_string_instruction() && cores[0].memory.iter().any(|m| !m.wide)
        || matches!(instruction.code(), iced_x86::Code::Leavew);
    if cores[0].unmodelled.is_some() || relative || odd {
        return false;
    }
    let mut acted = [0u64; 64];
    let mut ran = 0;
    for number in 0..STATES {
        let base = state(2 * number, number, &instruction);
        let other = state(2 * number + 1, number, &instruction);
        let ranges = |want: fn(&Access) -> bool| -> Vec<(u64, u64)> {
            let wanted = cores[0].memory.iter().filter(|m| want(m));
            wanted.map(|m| (address(m, &instruction, &base), m.bytes.into())).collect()
        };
        let answer = runner.ask(bytes, &base, &other, &ranges(|m| m.load));
        if answer.status == ILLEGAL {
            break;
        }
        if answer.status != 0 {
            continue;
        }
        ran += 1;
        for (at, (effects, core)) in cores.iter().zip(CORES).enumerate() {
            if cores[..at].contains(effects) {
                continue;
            }
            let look = Look { effects, instruction: &instruction, base: &base };
            for finding in look.findings(&answer, &ranges(|m| m.store)) {
                let texts = findings.wrong.entry(finding).or_default();
                let text = format!("{} [{}]", instruction, core.unwrap_or("any"));
                if texts.last() != Some(&text) {
                    texts.push(text);
                }
            }
        }
        for (seen, change) in acted.iter_mut().zip(&answer.changes) {
            *seen |= change.places;
        }
        for (at, upper) in answer.changes[UPPER..].iter().enumerate() {
            acted[16 + at] |= upper.places | u64::from(upper.upper) << 16;
            acted[16 + at] |= u64::from(answer.changes[16 + at].upper) << 16;
        }
    }
    // A place that is only kept has no effect; addresses act where loads or stores are seen.
    for read in cores[0].reads.iter().filter(|r| r.role == Role::Data && ran > 2) {
        let idle = |what: String| {
            let what = format!("{:?}: {}{what}", instruction.mnemonic(), class(read.place));
            findings.idle.entry(what).or_default().push(instruction.to_string());
        };
        let seen = acted[read.place.index()];
        let said = cores[0].writes.iter().filter(|w| cores[0].flows(read, w));
        let unseen = |to: &Place| seen >> to.index() & 1 == 0;
        let ways: Vec<Place> = said.map(|w| w.place).filter(unseen).collect();
        ways.iter().map(|to| format!(" leads to {}", class(*to))).for_each(idle);
    }
    ran > 0
}

fn all_places() -> impl Iterator<Item = Place> {
    let all =
        (0..16).map(Place::gpr).chain((0..32).map(Place::vector)).chain((0..8).map(Place::mask));
    all.chain([Place::CARRY, Place::OVERFLOW, Place::SIGN_ZERO, Place::DIRECTION])
}

/// One run, and what is said of it.
struct Look<'a> {
    effects: &'a Effects,
    instruction: &'a Instruction,
    base: &'a State,
}

impl Look<'_> {
    fn findings(&self, answer: &Answer, stores: &[(u64, u64)]) -> Vec<String> {
        let mut all = Vec::new();
        self.written(answer, &mut all);
        for place in all_places() {
            self.read(place, answer, &mut all);
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

    fn whole(&self, place: Place) -> Option<bool> {
        self.effects.writes.iter().find(|w| w.place == place).map(|w| w.whole)
    }

    fn written(&self, answer: &Answer, all: &mut Vec<String>) {
        let (before, after) = (self.base, &answer.out);
        for place in all_places() {
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
    fn leads(&self, from: Place, to: Place) -> bool {
        let reads = self.effects.reads.iter().filter(|r| r.place == from);
        reads
            .flat_map(|r| self.effects.writes.iter().filter(|w| w.place == to).map(move |w| (r, w)))
            .any(|(read, write)| self.effects.flows(read, write))
    }

    /// What changed although `place` alone was another.
    fn read(&self, place: Place, answer: &Answer, all: &mut Vec<String>) {
        let change = &answer.changes[place.index()];
        if !change.failed {
            for to in all_places().filter(|to| change.places >> to.index() & 1 != 0) {
                // What the manual leaves undefined, a processor may leave as it was.
                let undefined = self.instruction.rflags_undefined() != 0 && to.is_flag();
                let kept = to == place && (self.whole(to) != Some(true) || undefined);
                if !kept && !self.leads(place, to) {
                    all.push(format!("{} leads to {} too", class(place), class(to)));
                }
            }
            let wide = all_places().filter(|to| to.is_vector());
            for to in wide.filter(|to| change.upper >> (to.index() - 16) & 1 != 0) {
                if !self.leads(place, to) {
                    all.push(format!(
                        "{} leads to the upper part of {} too",
                        class(place),
                        class(to)
                    ));
                }
            }
            let stored = self.effects.reads.iter().filter(|r| r.place == place).any(|r| {
                let located = matches!(r.role, Role::Address(at)
                    if self.effects.memory.get(usize::from(at)).is_some_and(|m| m.store));
                located || self.effects.stored(r)
            });
            if change.memory && !stored {
                all.push(format!("{} is stored too", class(place)));
            }
        }
        if place.is_vector() && !self.clears() {
            self.read_upper(place, answer, all);
        }
    }

    fn read_upper(&self, place: Place, answer: &Answer, all: &mut Vec<String>) {
        let change = &answer.changes[UPPER + place.index() - 16];
        if change.failed {
            return;
        }
        for to in all_places() {
            let low = change.places >> to.index() & 1 != 0;
            let high = to.is_vector() && change.upper >> (to.index() - 16) & 1 != 0;
            let kept = to == place && self.whole(to) != Some(true) && !low;
            let said = self.wide() && self.leads(place, to);
            if (low || high) && !kept && !said {
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
        let loads = self.effects.memory.iter().any(|m| m.load);
        for to in all_places().filter(|_| !inside.failed) {
            let high = to.is_vector() && inside.upper >> (to.index() - 16) & 1 != 0;
            if inside.places >> to.index() & 1 == 0 && !high {
                continue;
            }
            let write = self.effects.writes.iter().find(|w| w.place == to);
            if !(loads && write.is_some_and(|w| self.effects.loaded_flows(w))) {
                all.push(format!("memory leads to {} too", class(to)));
            }
        }
    }
}

/// Kinds of places, for findings.
fn class(place: Place) -> String {
    match place {
        p if p == Place::gpr(4) => "rsp".to_owned(),
        p if p.as_gpr().is_some() => "a register".to_owned(),
        p if p.is_vector() => "a vector".to_owned(),
        p if p.index() < 56 => "a mask".to_owned(),
        p => p.name(),
    }
}

fn value(state: &State, place: Place) -> [u64; 2] {
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

fn upper(state: &State, place: Place) -> &[u64] {
    &state.vectors[place.index() - 16][2..]
}

/// Where an access goes.
fn address(access: &Access, instruction: &Instruction, state: &State) -> u64 {
    let register = |r: Register| match r {
        Register::None => 0,
        r => state.gpr[r.full_register().number() & 15],
    };
    let index = match access.lane {
        None => register(access.index),
        Some(lane) => {
            let vector = &state.vectors[access.index.number() & 31];
            let lane = usize::from(lane);
            match instruction.is_vsib64() {
                true => vector[lane],
                false => (vector[lane / 2] >> (lane % 2 * 32)) as i32 as u64,
            }
        }
    };
    let sum = register(access.base)
        .wrapping_add(index.wrapping_mul(access.scale.into()))
        .wrapping_add(access.displacement as u64);
    if access.wide { sum } else { sum & u64::from(u32::MAX) }
}

/// A state of the kind `kind`: bits, floats, doubles, small integers, few bits. Where memory is
/// touched, registers are such that addresses made of them are those of a program.
fn state(seed: u64, kind: u64, instruction: &Instruction) -> State {
    let mut random = Random(seed.wrapping_mul(0x1234_5678_9abc_def1));
    let memory = Effects::of(instruction, None).memory;
    let mut number = |vector: bool| {
        let bits = random.next();
        match kind % 6 {
            1 if vector => bits & 0x807f_ffff_807f_ffff | 0x3f80_0000_3f80_0000,
            2 if vector => bits & 0x800f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000,
            3 if vector => bits & 0xff,
            4 if vector => [0, u64::MAX, u64::MAX << 32, u64::MAX >> 32][(bits & 3) as usize],
            3 if memory.is_empty() => bits & 0xff,
            4 if memory.is_empty() => bits & bits >> 17 & bits >> 31,
            _ if vector || memory.is_empty() => bits,
            _ => bits >> 21,
        }
    };
    let mut state = State {
        gpr: std::array::from_fn(|_| number(false)),
        flags: 0,
        masks: std::array::from_fn(|_| number(true)),
        vectors: std::array::from_fn(|_| std::array::from_fn(|_| number(true))),
    };
    if kind % 6 == 5 {
        // Aligned, and with a quotient that fits.
        for register in &mut state.gpr {
            *register &= !63;
        }
        state.gpr[2] &= 0xff;
    }
    let flags = random.next();
    // Bit 1 is always set; the direction flag is that of the second state alone.
    state.flags = 2 | flags & 0x8d5 | if seed % 2 == 1 { 0x400 } else { 0 };
    state
}
