//! A region made ready to be evaluated many times.

use super::address::Address;
use super::operation::Operation;
use crate::deps::code::Code;
use iced_x86::{ConditionCode, Instruction, Mnemonic};

/// Operations and their accesses.
#[derive(Debug, Default)]
pub struct Program {
    /// One for each instruction.
    pub operations: Vec<Operation>,
    /// Accesses of all of them.
    pub addresses: Vec<Address>,
    /// For each access its instruction, and its index among that one's accesses.
    pub owners: Vec<(usize, usize)>,
    /// Under which condition the region begins again, where its last instruction says so.
    pub again: Option<ConditionCode>,
}

impl Program {
    /// Makes `code` ready.
    pub fn of(code: &Code) -> Self {
        let mut program = Self { again: again(code), ..Self::default() };
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
            last.leaves_region();
        }
        program
    }
}

/// The condition of a last instruction that jumps back to the first one.
fn again(code: &Code) -> Option<ConditionCode> {
    let (first, last) = (code.instructions.first()?, code.instructions.last()?);
    let back = last.is_jcc_short_or_near() && last.near_branch_target() == first.ip();
    let condition = last.condition_code();
    // `inc` and `dec` leave a carry of which the flags' origins do not tell.
    let leaves_carry = |i: &Instruction| matches!(i.mnemonic(), Mnemonic::Inc | Mnemonic::Dec);
    let by_carry = matches!(
        condition,
        ConditionCode::b | ConditionCode::ae | ConditionCode::be | ConditionCode::a
    ) && code.instructions.iter().any(leaves_carry);
    (back && !by_carry).then_some(condition)
}

/// Which calls the region follows into the callee: it goes on elsewhere than behind them, or holds
/// the return that belongs to them.
fn followed(code: &Code) -> Vec<bool> {
    let mut found = vec![false; code.instructions.len()];
    let mut open = Vec::new();
    for (number, pair) in code.instructions.windows(2).enumerate() {
        match pair[0].mnemonic() {
            Mnemonic::Call => {
                found[number] = pair[1].ip() != pair[0].next_ip();
                open.push(number);
            }
            Mnemonic::Ret => returned(&mut open, &mut found),
            _ => {}
        }
    }
    if code.instructions.last().is_some_and(|last| last.mnemonic() == Mnemonic::Ret) {
        returned(&mut open, &mut found);
    }
    found
}

fn returned(open: &mut Vec<usize>, found: &mut [bool]) {
    if let Some(call) = open.pop() {
        found[call] = true;
    }
}
