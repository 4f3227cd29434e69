//! A region made ready to be evaluated many times.

use super::address::Address;
use super::operation::Operation;
use crate::deps::code::Code;

/// Operations and their accesses.
#[derive(Debug, Default)]
pub struct Program {
    /// One for each instruction.
    pub operations: Vec<Operation>,
    /// Accesses of all of them.
    pub addresses: Vec<Address>,
    /// For each access its instruction, and its index among that one's accesses.
    pub owners: Vec<(usize, usize)>,
}

impl Program {
    /// Makes `code` ready.
    pub fn of(code: &Code) -> Self {
        let mut program = Self::default();
        let count = code.instructions.len();
        for (number, (instruction, effects)) in
            code.instructions.iter().zip(&code.effects).enumerate()
        {
            let start = program.addresses.len() as u32;
            for (index, access) in effects.memory.iter().enumerate() {
                program.addresses.push(Address::of(access, instruction));
                program.owners.push((number, index));
            }
            let accesses = start..program.addresses.len() as u32;
            let next = code.instructions[(number + 1) % count].ip();
            // Of a call at the end of a block by itself, the caller is meant.
            let followed = number + 1 < count && next != instruction.next_ip();
            program.operations.push(Operation::of(instruction, effects, followed, accesses));
        }
        program
    }
}
