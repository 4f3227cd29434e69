//! Requests to observe single instructions: branches, loads and stores of a function, and the general registers live at
//! a block's entry.

use crate::facts::{Block, Call, Function};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use isa::effects::{Access, Effects, Finder};
use std::fmt;
use tma::tables::Facts;

/// The facts to observe at each execution of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// Whether a conditional jump is taken.
    Outcome,
    /// Target of an indirect jump or call.
    Target,
    /// Address of a load or store.
    Address,
    /// Value of a load.
    Value {
        /// Its bytes: 1, 2, 4 or 8.
        width: u32,
    },
    /// Ticks of a load between fences, at random one in 1 to 2^`bits` executions; in the upper half
    /// those of a load from the first cache right before.
    Latency {
        /// Its bytes.
        width: u32,
        /// 1 to 14.
        bits: u8,
    },
    /// At the entry of a function: the bytes of the stack pointer in reverse, and the lower 16 bits
    /// (0 then) of the return address.
    Entered,
    /// Values of general registers before the instruction, limited by a quota that is refilled.
    Registers {
        /// Bit n: the register with number n in encodings.
        mask: u16,
    },
    /// At the entry of an allocator: each call, in a log of its own. It must be the first request
    /// of an instruction.
    Allocated {
        /// Its signature.
        call: Call,
    },
    /// Each execution of a marker, in a log of its own.
    Marked {
        /// The number (in encodings) of the register with its argument.
        argument: Option<u8>,
        /// Address in the process of its number.
        process: u64,
    },
}

impl What {
    /// Size of its code, in sizes of that of a plain record.
    pub fn parts(self) -> usize {
        match self {
            What::Latency { .. } => 3,
            // 122 bytes, and at most 28 per register.
            What::Registers { mask } => 1 + (mask.count_ones() as usize).div_ceil(4),
            What::Allocated { .. } => 5,
            What::Marked { .. } => 3,
            _ => 1,
        }
    }

    /// Whether it is observed before the instruction, which need not be executed in the trampoline.
    pub(super) fn is_before(self) -> bool {
        matches!(
            self,
            What::Registers { .. } | What::Entered | What::Allocated { .. } | What::Marked { .. }
        )
    }
}

/// An instruction, and what to observe of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// Its address (p_vaddr).
    pub at: u64,
    /// The observation.
    pub what: What,
}

/// Requests for the branches of a function whose outcome or target may vary.
pub fn branches(function: &Function) -> Vec<Request> {
    let request = |block: &Block| {
        let last = block.instructions.last()?;
        let what = match last {
            i if i.is_jcc_short_or_near() => What::Outcome,
            i if i.is_jmp_near_indirect() || i.is_call_near_indirect() => What::Target,
            _ => return None,
        };
        Some(Request { at: last.ip(), what })
    };
    function.blocks.iter().filter(|block| block.is_reached).filter_map(request).collect()
}

/// A load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Its address (p_vaddr).
    pub at: u64,
    /// Bytes that it loads.
    pub width: u32,
    /// Whether it stores there, too.
    pub is_written: bool,
    /// Whether it is locked: it reads and writes at once.
    pub is_locked: bool,
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
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for (instruction, effects) in accessing(function) {
        if effects.memory.iter().any(|access| access.load) {
            match load(instruction, &effects) {
                Ok(load) => found.push(load),
                Err(why) => refused.push((instruction.ip(), why)),
            }
        }
    }
    (found, refused)
}

/// The stores in blocks that are certainly code whose addresses can be recorded, in order of
/// address. Instructions that also load, and stack instructions, are no stores.
pub fn stores(function: &Function) -> Vec<Load> {
    let is_store = |(_, effects): &(&Instruction, Effects)| {
        effects.memory.iter().any(|access| access.store && !access.load)
    };
    let found = accessing(function).filter(is_store);
    let found = found.filter_map(|(instruction, effects)| load(instruction, &effects).ok());
    found.map(|store| Load { untimed: Some(Unrecorded::Store), ..store }).collect()
}

/// Instructions in blocks that are certainly code, without stack instructions and jumps, with their
/// effects.
fn accessing(function: &Function) -> impl Iterator<Item = (&Instruction, Effects)> {
    let mut finder = Finder::new(&Facts::default());
    let reached = function.blocks.iter().filter(|block| block.is_reached);
    let all = reached
        .flat_map(|block| &block.instructions)
        .filter(|i| !i.is_stack_instruction() && i.flow_control() == FlowControl::Next);
    all.map(move |instruction| (instruction, finder.effects(instruction)))
}

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
    // `xchg` with memory is locked without the prefix (Intel SDM, volume 3, 9.1.2.1).
    let is_locked = untimed.is_some() || instruction.mnemonic() == Mnemonic::Xchg;
    Ok(Load {
        at: instruction.ip(),
        width: access.bytes,
        is_written: access.store,
        is_locked,
        untimed,
    })
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
///
/// Registers are live in four parts each (bits 0–7, 8–15, 16–31, 32–63), which tells 32-bit values
/// from 64-bit ones. Callees are assumed to read no register and to overwrite the caller-saved ones
/// of the System V ABI (AMD64, 3.2.1): registers only passed to a callee or saved for the caller
/// are not live.
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
