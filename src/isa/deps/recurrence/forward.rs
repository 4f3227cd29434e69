//! How a stored value reaches its load, by the code of both.

use crate::deps::Overlap;
use crate::deps::code::Code;
use crate::deps::memory::Carried;
use crate::effects::{Access, ArchReg};
use crate::latency::{Forward, Latencies, Latency};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// One class, or between two.
#[derive(Debug, Clone, Copy)]
pub struct Class {
    /// The quicker one.
    pub least: Forward,
    most: Forward,
}

impl Class {
    fn one(forward: Forward) -> Self {
        Self { least: forward, most: forward }
    }

    /// From the store's data register to what a plain load writes.
    pub fn latency(self, latencies: &Latencies) -> Latency {
        let (least, most) = (latencies.forwarding(self.least), latencies.forwarding(self.most));
        Latency { low: least.low.min(most.low), high: least.high.max(most.high), ..most }
    }
}

/// Up to so many pairs of store and load in a loop forwarding is quick on Zen 3, measured
/// (docs/dependencies.md).
const FEW: usize = 12;
/// From so many on it is slow.
const MANY: usize = 32;

/// The class of each dependency; `is_short` tells by its number whether there is a single cycle of
/// arithmetic between its load and the next store.
pub fn classes(
    code: &Code,
    carried: &[Carried],
    latencies: &Latencies,
    mut is_short: impl FnMut(usize) -> bool,
) -> Vec<Class> {
    if carried.is_empty() {
        return Vec::new();
    }
    let general = |c: &&Carried| access(code, c).is_some_and(|a| a.bytes <= 8);
    let pairs = carried.iter().filter(general).count();
    let frame = !writes(code, 5);
    let one = |(number, c)| {
        let class = class(code, c, pairs, frame, latencies);
        let buffered = matches!(class.least, Forward::Few | Forward::Many);
        let even = access(code, c).is_none_or(|load| !drifts(code, load));
        match buffered && even && latencies.tells(Forward::Short) && is_short(number) {
            true => Class::one(Forward::Short),
            false => class,
        }
    };
    carried.iter().enumerate().map(one).collect()
}

fn access<'a>(code: &'a Code, carried: &Carried) -> Option<&'a Access> {
    code.effects.get(carried.reader)?.memory.get(carried.access)
}

fn class(
    code: &Code,
    carried: &Carried,
    pairs: usize,
    frame: bool,
    latencies: &Latencies,
) -> Class {
    let Some(access) = access(code, carried) else { return Class::one(Forward::Many) };
    if is_locked(&code.instructions[carried.reader], access) {
        return Class::one(Forward::Locked);
    }
    if carried.overlap != Overlap::Full {
        return Class::one(Forward::Blocked);
    }
    let vector = |instruction: usize| {
        let instruction = &code.instructions[instruction];
        (0..instruction.op_count()).any(|i| instruction.op_register(i).is_vector_register())
    };
    if access.bytes >= 32 {
        return Class::one(Forward::Ymm);
    }
    if vector(carried.reader) || vector(carried.writer) {
        return Class::one(Forward::Xmm);
    }
    let stack = access.base == Register::RSP || access.base == Register::RBP && frame;
    let stack = stack && access.index == Register::None;
    if latencies.tells(Forward::Slot) {
        if access.store && adds_register(code, carried.reader) {
            return Class::one(Forward::Update);
        }
        if starts_alike(code, carried, access) {
            if stack {
                return Class::one(Forward::Stack);
            }
            if is_slot(code, carried, access) {
                return Class::one(Forward::Slot);
            }
        }
    } else if stack {
        return Class::one(Forward::Stack);
    }
    match pairs {
        ..=FEW => Class::one(Forward::Few),
        MANY.. => Class::one(Forward::Many),
        _ => Class { least: Forward::Few, most: Forward::Many },
    }
}

/// Whether the processor locks the line: by a prefix, or, as `xchg` does, without (Intel 64 and IA-32
/// Architectures Software Developer's Manual, volume 3, 9.1.2.1).
fn is_locked(instruction: &Instruction, access: &Access) -> bool {
    let exchange = instruction.mnemonic() == Mnemonic::Xchg;
    access.load && access.store && (exchange || instruction.has_lock_prefix())
}

/// Whether what is computed with memory is a register, no constant.
fn adds_register(code: &Code, instruction: usize) -> bool {
    let instruction = &code.instructions[instruction];
    instruction.op_count() > 1 && instruction.op1_kind() == OpKind::Register
}

fn stores<'a>(code: &'a Code, carried: &Carried) -> impl Iterator<Item = &'a Access> {
    code.effects[carried.writer].memory.iter().filter(|a| a.store)
}

/// Whether the load begins where the store does: it lies within it and is as long, or it is named
/// alike.
fn starts_alike(code: &Code, carried: &Carried, load: &Access) -> bool {
    stores(code, carried).any(|store| {
        let alike = (store.base, store.index, store.displacement)
            == (load.base, Register::None, load.displacement);
        store.bytes == load.bytes || alike && step(code, load.base) == Some(0)
    })
}

/// Whether renaming can know the slot before there is an address. Measured on Golden Cove, in
/// loops: an absolute address, or base and displacement, in whichever registers, of the same or the last iteration, the
/// base moved by constants that are multiples of the size. Not so with an index, relative to `rip`,
/// or over two iterations and more.
fn is_slot(code: &Code, carried: &Carried, load: &Access) -> bool {
    let relative = |at: usize| code.instructions[at].is_ip_rel_memory_operand();
    let known = |access: &Access| {
        let absolute = access.base == Register::None && access.segment == Register::None;
        let step = if absolute { Some(0) } else { step(code, access.base) };
        access.index == Register::None
            && step.is_some_and(|s| s % i64::from(access.bytes.max(1)) == 0)
    };
    let near = carried.delta <= 1 && !relative(carried.reader) && !relative(carried.writer);
    near && known(load) && stores(code, carried).any(known)
}

/// Whether the base moves by a constant that is no multiple of the size: on Golden Cove a sum then
/// takes no longer than a copy.
fn drifts(code: &Code, load: &Access) -> bool {
    let size = i64::from(load.bytes.max(1));
    load.index == Register::None && step(code, load.base).is_some_and(|s| s % size != 0)
}

/// By how much an iteration moves a base register, if only by constants.
fn step(code: &Code, base: Register) -> Option<i64> {
    let reg = ArchReg::of(base).filter(|reg| reg.as_gpr().is_some())?;
    let mut sum = 0i64;
    for (instruction, effects) in code.instructions.iter().zip(&code.effects) {
        if effects.writes.iter().any(|w| w.reg == reg) {
            sum = sum.checked_add(constant(instruction)?)?;
        }
    }
    Some(sum)
}

/// The constant that an instruction adds to its first operand, a whole register.
fn constant(instruction: &Instruction) -> Option<i64> {
    let to = instruction.op0_register();
    if instruction.op0_kind() != OpKind::Register || !to.is_gpr64() {
        return None;
    }
    let immediate = || instruction.try_immediate(1).ok().map(|value| value as i64);
    match instruction.mnemonic() {
        Mnemonic::Add => immediate(),
        Mnemonic::Sub => immediate().and_then(i64::checked_neg),
        Mnemonic::Inc => Some(1),
        Mnemonic::Dec => Some(-1),
        Mnemonic::Lea
            if instruction.memory_base() == to && instruction.memory_index() == Register::None =>
        {
            Some(instruction.memory_displacement64() as i64)
        }
        _ => None,
    }
}

/// Whether any instruction writes the general-purpose register of this number.
fn writes(code: &Code, register: u8) -> bool {
    let mut all = code.effects.iter().flat_map(|e| &e.writes);
    all.any(|w| w.reg.as_gpr() == Some(register))
}
