//! A region decoded for fast evaluation.

use super::address::Address;
use super::operation::Operation;
use super::select_action::counts_in_rcx;
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
    /// The branch that ends the region, if it goes back to its start.
    pub back: Option<Back>,
}

/// When the branch at the end of a region is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    /// While a condition on the flags holds.
    If(ConditionCode),
    /// While rcx is not 0.
    Counter,
}

impl Program {
    /// Decodes `code`.
    pub fn of(code: &Code) -> Self {
        let mut program = Self { back: back(code), ..Self::default() };
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

/// When the last instruction jumps back to the first one, if it does.
fn back(code: &Code) -> Option<Back> {
    let (first, last) = (code.instructions.first()?, code.instructions.last()?);
    if last.mnemonic() == Mnemonic::Loop && last.near_branch_target() == first.ip() {
        return counts_in_rcx(last).then_some(Back::Counter);
    }
    let back = last.is_jcc_short_or_near() && last.near_branch_target() == first.ip();
    let condition = last.condition_code();
    // `inc` and `dec` preserve the carry flag, but the flags' origins do not include the carry's.
    let leaves_carry = |i: &Instruction| matches!(i.mnemonic(), Mnemonic::Inc | Mnemonic::Dec);
    let by_carry = matches!(
        condition,
        ConditionCode::b | ConditionCode::ae | ConditionCode::be | ConditionCode::a
    ) && code.instructions.iter().any(leaves_carry);
    (back && !by_carry).then_some(Back::If(condition))
}
