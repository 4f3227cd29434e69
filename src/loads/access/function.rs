//! The code of a function, with effects, as paths through it need them.

use super::value::Place;
use iced_x86::{Instruction, Mnemonic, OpKind};
use isa::effects::{ArchReg, Effects, Finder};
use isa::flow::Flow;
use std::collections::{BTreeMap, BTreeSet};
use tma::tables::Facts;

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
