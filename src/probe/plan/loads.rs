//! The loads and stores of a function that can be recorded.

use crate::facts::{Block, Function};
use iced_x86::{Instruction, Register};
use isa::effects::{Access, Effects, Finder};
use std::fmt;
use tma::tables::Facts;

/// A load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Its address (p_vaddr).
    pub at: u64,
    /// Bytes that it loads.
    pub width: u32,
    /// Why it cannot be timed in isolation.
    pub untimed: Option<Unrecorded>,
}

/// Why a load cannot be observed, or cannot be timed in isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecorded {
    /// It is a string instruction.
    Repeated,
    /// It is a gather.
    Gather,
    /// It has several addresses for another reason.
    SeveralAddresses,
    /// Its address is relative to a segment.
    Segment,
    /// It is masked.
    Masked,
    /// Its address or width depends on more than its operand.
    OtherInputs,
    /// It is atomic: it can be observed, but not timed.
    Atomic,
    /// It is a store: it can be observed, but not timed.
    Store,
}

impl fmt::Display for Unrecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Repeated => "a string instruction",
            Self::Gather => "a gather has several addresses",
            Self::SeveralAddresses => "it has several addresses",
            Self::Segment => "its address is relative to a segment",
            Self::Masked => "it is masked, and may load nothing",
            Self::OtherInputs => "its address depends on more than its operand",
            Self::Atomic => "it is atomic",
            Self::Store => "it is a store",
        })
    }
}

impl std::error::Error for Unrecorded {}

impl Load {
    /// Whether its value fits a record.
    pub fn has_value(&self) -> bool {
        matches!(self.width, 1 | 2 | 4 | 8)
    }
}

/// The loads in blocks that are certainly code, in order of address, and those that cannot be
/// observed, with the reason. Stack instructions are no loads.
pub fn loads(function: &Function) -> (Vec<Load>, Vec<(u64, Unrecorded)>) {
    let mut finder = Finder::new(&Facts::default());
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    let reached = function.blocks.iter().filter(|block| block.is_reached);
    for instruction in reached.flat_map(|block: &Block| &block.instructions) {
        if instruction.is_stack_instruction() || instruction.flow_control() != NEXT {
            continue;
        }
        let effects = finder.effects(instruction);
        if !effects.memory.iter().any(|access| access.load) {
            continue;
        }
        match load(instruction, &effects) {
            Ok(load) => found.push(load),
            Err(why) => refused.push((instruction.ip(), why)),
        }
    }
    (found, refused)
}

/// The stores in blocks that are certainly code whose addresses can be recorded, in order of
/// address. Instructions that also load, and stack instructions, are no stores.
pub fn stores(function: &Function) -> Vec<Load> {
    let mut finder = Finder::new(&Facts::default());
    let mut found = Vec::new();
    let reached = function.blocks.iter().filter(|block| block.is_reached);
    for instruction in reached.flat_map(|block: &Block| &block.instructions) {
        if instruction.is_stack_instruction() || instruction.flow_control() != NEXT {
            continue;
        }
        let effects = finder.effects(instruction);
        if effects.memory.iter().any(|access| access.store && !access.load) {
            found.extend(load(instruction, &effects).ok());
        }
    }
    found.iter_mut().for_each(|store| store.untimed = Some(Unrecorded::Store));
    found
}

const NEXT: iced_x86::FlowControl = iced_x86::FlowControl::Next;

fn load(instruction: &Instruction, effects: &Effects) -> Result<Load, Unrecorded> {
    if instruction.is_string_instruction() {
        return Err(Unrecorded::Repeated);
    }
    if instruction.is_vsib() {
        return Err(Unrecorded::Gather);
    }
    let [access] = &effects.memory[..] else { return Err(Unrecorded::SeveralAddresses) };
    refusal(access).map_or(Ok(()), Err)?;
    // For an instruction that also stores, a load from its address is timed before it.
    let untimed = instruction.has_lock_prefix().then_some(Unrecorded::Atomic);
    Ok(Load { at: instruction.ip(), width: access.bytes, untimed })
}

fn refusal(access: &Access) -> Option<Unrecorded> {
    if access.segment != Register::None {
        return Some(Unrecorded::Segment);
    }
    if access.conditional {
        return Some(Unrecorded::Masked);
    }
    if access.bytes == 0 || !access.wide {
        return Some(Unrecorded::OtherInputs);
    }
    None
}
