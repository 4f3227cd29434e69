//! The code of a function, with effects, in the form that paths through it need, and values of one iteration in
//! terms of registers and words of memory at its start.

use iced_x86::{Instruction, Mnemonic, OpKind};
use isa::effects::{ArchReg, Effects, Finder};
use isa::flow::{Flow, merged};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tma::tables::Facts;

/// Parts after which a value is reduced to what it depends on.
const MOST_PARTS: usize = 48;
/// Masks from here on cut off what addresses do not have: a register written with 32 bits.
const WIDE: u64 = u32::MAX as u64;

/// Location of a value from one iteration to the next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Number of an [`isa::effects::ArchReg`].
    Register(usize),
    /// The word at an address that stays the same.
    Word(Rc<Value>),
}

/// How a value is computed that is no sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// A bitwise and of registers.
    And,
    /// One of the first two, by the others (`cmov`).
    Choice,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    /// Value of a place at the start of the iteration.
    Start(Place),
    /// Value loaded by the instruction at this address.
    Load(u64, Rc<Value>),
    /// A sum of multiples of values and a constant. A single value with factor 1 is not a sum.
    Sum(Vec<(Value, i64)>, i64),
    /// The low bits of a value.
    Mask(Rc<Value>, u64),
    /// Unknown, but unchanged in each iteration; the number distinguishes such values.
    Fixed(u64),
    /// Computed from these.
    Computed(Operation, Rc<Vec<Value>>),
    /// Not known: the result of a call.
    Unknown,
}

impl Value {
    /// A number.
    pub fn constant(value: i64) -> Self {
        Self::Sum(Vec::new(), value)
    }

    /// The number that it is, if it is one.
    pub fn as_constant(&self) -> Option<i64> {
        match self {
            Self::Sum(terms, constant) if terms.is_empty() => Some(*constant),
            _ => None,
        }
    }

    /// As terms with factors, and a constant.
    pub fn terms(&self) -> (Vec<(Self, i64)>, i64) {
        match self {
            Self::Sum(terms, constant) => (terms.clone(), *constant),
            other => (vec![(other.clone(), 1)], 0),
        }
    }

    fn sum(terms: Vec<(Self, i64)>, constant: i64) -> Self {
        let mut merged = merged(terms, i64::wrapping_add);
        if constant == 0 && merged.len() == 1 && merged[0].1 == 1 {
            return merged.remove(0).0;
        }
        Self::Sum(merged, constant)
    }

    /// Its sum with another.
    pub fn plus(&self, other: &Self) -> Self {
        let ((mut terms, constant), (more, further)) = (self.terms(), other.terms());
        terms.extend(more);
        Self::sum(terms, constant.wrapping_add(further)).reduced()
    }

    /// A multiple.
    pub fn times(&self, factor: i64) -> Self {
        let (mut terms, constant) = self.terms();
        terms.iter_mut().for_each(|term| term.1 = term.1.wrapping_mul(factor));
        Self::sum(terms, constant.wrapping_mul(factor))
    }

    /// Its low bits; arithmetic of 32 bits is taken to be exact.
    pub fn masked(self, mask: u64) -> Self {
        match self.as_constant() {
            Some(constant) => Self::constant(constant & mask.cast_signed()),
            None if mask >= WIDE => self,
            None => Self::Mask(Rc::new(self), mask).reduced(),
        }
    }

    /// The value that the instruction at `site` loads from `address`.
    pub fn load(site: u64, address: Self) -> Self {
        Self::Load(site, Rc::new(address)).reduced()
    }

    /// The result of an operation on others.
    pub fn computed(how: Operation, from: Vec<Self>) -> Self {
        Self::Computed(how, Rc::new(from)).reduced()
    }

    /// Calls `visit` with each part, and whether it is within the address of a load.
    pub fn each(&self, in_load: bool, visit: &mut impl FnMut(&Self, bool)) {
        visit(self, in_load);
        match self {
            Self::Sum(terms, _) => terms.iter().for_each(|(value, _)| value.each(in_load, visit)),
            Self::Load(_, address) => address.each(true, visit),
            Self::Mask(value, _) => value.each(in_load, visit),
            Self::Computed(_, from) => from.iter().for_each(|value| value.each(in_load, visit)),
            Self::Start(_) | Self::Fixed(_) | Self::Unknown => {}
        }
    }

    /// The places it depends on, and whether through a load.
    pub fn places(&self) -> BTreeSet<(Place, bool)> {
        let mut places = BTreeSet::new();
        self.each(false, &mut |part, in_load| {
            if let Self::Start(place) = part {
                places.insert((place.clone(), in_load));
            }
        });
        places
    }

    /// The loads in it, with their addresses.
    pub fn loads(&self) -> Vec<(u64, Rc<Self>)> {
        let mut loads = Vec::new();
        self.each(false, &mut |part, _| {
            if let Self::Load(site, address) = part {
                loads.push((*site, Rc::clone(address)));
            }
        });
        loads
    }

    /// Depth of words between it and a register: the address of a word may itself be in another.
    pub fn nesting(&self) -> usize {
        let mut most = 0;
        self.each(false, &mut |part, _| {
            if let Self::Start(Place::Word(address)) = part {
                most = most.max(1 + address.nesting());
            }
        });
        most
    }

    fn is_too_large(&self) -> bool {
        let mut parts = 0;
        self.each(false, &mut |_, _| parts += 1);
        parts > MOST_PARTS
    }

    /// Itself, or if that is too large, only what it depends on.
    fn reduced(self) -> Self {
        if !self.is_too_large() {
            return self;
        }
        let mut leaves = BTreeSet::new();
        let last = self.loads().first().map_or(0, |(site, _)| *site);
        self.each(false, &mut |part, in_load| match part {
            Self::Start(_) if in_load => _ = leaves.insert(Self::Load(last, Rc::new(part.clone()))),
            Self::Start(_) | Self::Unknown => _ = leaves.insert(part.clone()),
            _ => {}
        });
        let reduced = Self::Computed(Operation::Other, Rc::new(leaves.into_iter().collect()));
        if reduced.is_too_large() { Self::Unknown } else { reduced }
    }
}

/// Longest function that is looked at, in instructions.
const LONGEST: usize = 20_000;

/// An instruction and what it does.
#[derive(Debug)]
pub(super) struct Code {
    pub instruction: Instruction,
    pub effects: Effects,
}

/// Registers that a loop writes: whether only by adding constants, and the instructions.
type Writes = BTreeMap<usize, (bool, BTreeSet<u64>)>;

/// A function whose loads are classified.
#[derive(Debug)]
pub struct Function<'a> {
    pub(super) flow: &'a Flow,
    blocks: Vec<Vec<Code>>,
    writes: Vec<Writes>,
    stores: Vec<BTreeSet<u64>>,
}

impl<'a> Function<'a> {
    /// The function with this control flow and these instructions, in order of address
    /// ([`isa::flow::decoded_flow`]). A function of more than 20,000 instructions is left out: none of its loads
    /// is classified.
    pub fn new(flow: &'a Flow, instructions: &[Instruction]) -> Self {
        let instructions = if instructions.len() > LONGEST { &[] } else { instructions };
        let mut finder = Finder::new(&Facts::default());
        let mut code = |one: &Instruction| Code { instruction: *one, effects: finder.effects(one) };
        let blocks: Vec<Vec<Code>> = flow
            .blocks
            .iter()
            .map(|block| {
                let from = instructions.partition_point(|one| one.ip() < block.start);
                let to = instructions.partition_point(|one| one.ip() < block.end);
                instructions.get(from..to).unwrap_or_default().iter().map(&mut code).collect()
            })
            .collect();
        let of = |blocks_of: &[usize]| -> Vec<&Code> {
            blocks_of.iter().filter_map(|number| blocks.get(*number)).flatten().collect()
        };
        let writes = flow.loops.iter().map(|one| writes(&of(&one.blocks))).collect();
        let stores = flow.loops.iter().map(|one| stores(&of(&one.blocks))).collect();
        Self { flow, blocks, writes, stores }
    }

    /// As [`Function::new`], from a flow with instructions ([`isa::flow::flow`]).
    pub fn of(flow: &'a Flow) -> Self {
        let decoded: Vec<Instruction> =
            flow.instructions.iter().map(|(_, inst)| inst.decoded).collect();
        Self::new(flow, &decoded)
    }

    pub(super) fn block(&self, number: usize) -> &[Code] {
        self.blocks.get(number).map(|block| &block[..]).unwrap_or_default()
    }

    /// The instruction at an address, and its block.
    pub(super) fn at(&self, address: u64) -> Option<(&Code, usize)> {
        let block = self.flow.block_at(address)?;
        let code = self.block(block).iter().find(|code| code.instruction.ip() == address)?;
        Some((code, block))
    }

    /// The loops that are left between two blocks, inner ones first.
    pub(super) fn left(&self, from: usize, to: usize) -> impl Iterator<Item = usize> {
        let mut next = self.flow.blocks.get(from).and_then(|block| block.innermost);
        std::iter::from_fn(move || {
            let one = self.flow.loops.get(next?)?;
            let is_left = one.blocks.binary_search(&to).is_err();
            let number = std::mem::replace(&mut next, one.parent);
            is_left.then_some(number?)
        })
    }

    /// The registers that a loop writes.
    pub(super) fn writes(&self, number: usize) -> &Writes {
        &self.writes[number]
    }

    /// The instructions of a loop that store.
    pub(super) fn stores(&self, number: usize) -> &BTreeSet<u64> {
        &self.stores[number]
    }

    /// Registers of an iteration that some instruction in a loop writes.
    pub(super) fn written(&self, number: usize) -> BTreeSet<Place> {
        self.writes(number).keys().map(|register| Place::Register(*register)).collect()
    }
}

fn writes(code: &[&Code]) -> Writes {
    let mut writes = Writes::new();
    for one in code {
        for write in &one.effects.writes {
            let entry = writes.entry(write.reg.index()).or_insert((true, BTreeSet::new()));
            entry.0 &= is_step(&one.instruction, write.reg);
            entry.1.insert(one.instruction.ip());
        }
    }
    writes
}

fn stores(code: &[&Code]) -> BTreeSet<u64> {
    let stores = code.iter().filter(|one| one.effects.memory.iter().any(|m| m.store));
    stores.map(|one| one.instruction.ip()).collect()
}

/// Whether an instruction adds a constant to a register.
fn is_step(instruction: &Instruction, register: ArchReg) -> bool {
    let is_own = instruction.op0_kind() == OpKind::Register
        && ArchReg::of(instruction.op0_register()) == Some(register);
    let is_constant = !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory);
    match instruction.mnemonic() {
        Mnemonic::Inc | Mnemonic::Dec => is_own,
        Mnemonic::Add | Mnemonic::Sub => is_own && is_constant,
        Mnemonic::Lea => {
            is_own
                && ArchReg::of(instruction.memory_base()) == Some(register)
                && instruction.memory_index() == iced_x86::Register::None
        }
        _ => false,
    }
}
