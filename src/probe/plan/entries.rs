//! General registers live at a block's entry, and where they can be recorded.
//!
//! Registers are live in four parts each (bits 0–7, 8–15, 16–31, 32–63), which tells 32-bit values
//! from 64-bit ones. Callees are assumed to read no register and to overwrite the caller-saved ones
//! of the System V ABI (AMD64, 3.2.1): registers only passed to a callee or saved for the caller
//! are not live.

use super::request::{Request, What};
use crate::facts::{Block, Function};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};

/// The parts of a whole register.
const WHOLE: u64 = 0xf;
/// Numbers of caller-saved registers: rax, rcx, rdx, rsi, rdi, r8 to r11.
const CALLER_SAVED: [u32; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
/// Numbers of callee-saved registers: rbx, rbp, r12 to r15.
const CALLEE_SAVED: [u32; 6] = [3, 5, 12, 13, 14, 15];
/// rax, the return value.
const RESULT: u64 = WHOLE;

/// A live register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRegister {
    /// Its number in encodings.
    pub number: u8,
    /// Lower bits read later: 8, 16, 32 or 64.
    pub bits: u32,
}

/// Live registers at a block's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtEntry {
    /// First address of the block.
    pub start: u64,
    /// The last instruction before which they still have their values of the entry.
    pub at: u64,
    /// The registers, by number; without the stack pointer.
    pub registers: Vec<LiveRegister>,
}

impl AtEntry {
    /// The request to record them; `None` if there are none.
    pub fn request(&self) -> Option<Request> {
        let mask = self.registers.iter().fold(0, |mask, r| mask | 1 << r.number);
        (mask != 0).then_some(Request { at: self.at, what: What::Registers { mask } })
    }
}

/// Live registers at the entries of all blocks.
pub fn at_entries(function: &Function) -> Vec<AtEntry> {
    let mut factory = InstructionInfoFactory::new();
    let effects: Vec<Vec<Effect>> = function
        .blocks
        .iter()
        .map(|block| block.instructions.iter().map(|i| effect(&mut factory, i)).collect())
        .collect();
    let sets_result = |effect: &Effect| effect.writes & RESULT != 0 && !effect.is_call;
    let returned = if effects.iter().flatten().any(sets_result) { RESULT } else { 0 };
    let mut live = vec![0; function.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for number in (0..live.len()).rev() {
            let block = &function.blocks[number];
            let out = block.successors.iter().fold(0, |all, next| all | live[*next]);
            let is_return =
                block.instructions.last().is_some_and(|i| i.flow_control() == FlowControl::Return);
            let out = if is_return { out | returned } else { out };
            let own = effects[number].iter().rev().fold(out, |now, e| now & !e.writes | e.reads);
            changed |= own != live[number];
            live[number] = own;
        }
    }
    let at_entry = |(number, block): (usize, &Block)| {
        // rax is no argument, even if a path returns it.
        let is_start = block.start == function.range.start;
        let live = if is_start { live[number] & !RESULT } else { live[number] };
        let registers: Vec<LiveRegister> = (0..16).filter_map(|n| register(live, n)).collect();
        let whole = registers.iter().fold(0, |all, r| all | WHOLE << (4 * u32::from(r.number)));
        let changes = effects[number].iter().position(|e| e.writes & whole != 0 || e.is_call);
        let last = block.instructions.len().saturating_sub(1);
        let at = block.instructions.get(changes.unwrap_or(last)).map_or(block.start, |i| i.ip());
        AtEntry { start: block.start, at, registers }
    };
    function.blocks.iter().enumerate().map(at_entry).collect()
}

/// A register, if it is live and not the stack pointer.
fn register(live: u64, number: u8) -> Option<LiveRegister> {
    let parts = live >> (4 * number) & WHOLE;
    let bits = match parts {
        0 => return None,
        1 => 8,
        2..4 => 16,
        4..8 => 32,
        _ => 64,
    };
    (number != 4).then_some(LiveRegister { number, bits })
}

/// Parts of registers that an instruction reads, and those it always overwrites.
#[derive(Debug, Clone, Copy, Default)]
struct Effect {
    reads: u64,
    writes: u64,
    is_call: bool,
}

fn effect(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> Effect {
    let mut all = Effect::default();
    let saves = instruction.mnemonic() == Mnemonic::Push;
    for used in factory.info(instruction).used_registers() {
        let parts = parts(used.register());
        let is_callee_saved =
            used.register().is_gpr64() && CALLEE_SAVED.contains(&number(used.register()));
        match used.access() {
            OpAccess::Read if saves && is_callee_saved => {}
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadCondWrite => all.reads |= parts,
            OpAccess::ReadWrite => {
                all.reads |= parts;
                all.writes |= parts;
            }
            OpAccess::Write => all.writes |= parts,
            _ => {}
        }
    }
    if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
        all.is_call = true;
        all.writes |= CALLER_SAVED.iter().fold(0, |all, n| all | WHOLE << (4 * n));
    }
    all
}

fn number(register: Register) -> u32 {
    register.full_register().number() as u32
}

/// The parts of a general register; 0 for others.
fn parts(register: Register) -> u64 {
    use Register::{AH, BH, CH, DH};
    let own = match register {
        AH | BH | CH | DH => 2,
        r if r.is_gpr8() => 1,
        r if r.is_gpr16() => 3,
        r if r.is_gpr32() => 7,
        r if r.is_gpr64() => WHOLE,
        _ => return 0,
    };
    own << (4 * number(register))
}
