//! A region decoded for fast evaluation.

use super::address::Address;
use super::operation::Operation;
use crate::deps::calls::followed;
use crate::deps::code::Code;
use iced_x86::{ConditionCode, Instruction, Mnemonic};

/// The operations of a region and their accesses.
#[derive(Debug, Default)]
pub struct Program {
    /// One operation per instruction.
    pub operations: Vec<Operation>,
    /// The accesses of all operations.
    pub addresses: Vec<Address>,
    /// For each access, the index of its instruction and its index among that instruction's accesses.
    pub owners: Vec<(usize, usize)>,
    /// The condition of a loop branch that ends the region.
    pub repeat_condition: Option<ConditionCode>,
}

impl Program {
    /// Decodes `code`.
    pub fn of(code: &Code) -> Self {
        let mut program = Self { repeat_condition: repeat_condition(code), ..Self::default() };
        let followed = followed(code);
        for (number, (instruction, effects)) in
            code.instructions.iter().zip(&code.effects).enumerate()
        {
            let start = program.addresses.len() as u32;
            for (index, access) in effects.memory.iter().enumerate() {
                program.addresses.push(Address::of(access, instruction));
                program.owners.push((number, index));
            }
            let accesses = start..program.addresses.len() as u32;
            let followed = followed[number];
            program.operations.push(Operation::of(instruction, effects, followed, accesses));
        }
        if let Some(last) = program.operations.last_mut() {
            last.end_region();
        }
        program
    }
}

/// The condition of the last instruction if it jumps back to the first one.
fn repeat_condition(code: &Code) -> Option<ConditionCode> {
    let (first, last) = (code.instructions.first()?, code.instructions.last()?);
    let back = last.is_jcc_short_or_near() && last.near_branch_target() == first.ip();
    let condition = last.condition_code();
    // `inc` and `dec` preserve the carry flag, but the flags' origins do not include the carry's.
    let leaves_carry = |i: &Instruction| matches!(i.mnemonic(), Mnemonic::Inc | Mnemonic::Dec);
    let by_carry = matches!(
        condition,
        ConditionCode::b | ConditionCode::ae | ConditionCode::be | ConditionCode::a
    ) && code.instructions.iter().any(leaves_carry);
    (back && !by_carry).then_some(condition)
}
