//! The store-to-load forwarding class of each memory dependency.

use crate::deps::Overlap;
use crate::deps::code::Code;
use crate::deps::memory::MemoryDependency;
use crate::effects::{Access, ArchReg};
use crate::latency::{Forward, Latencies, Latency};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// A forwarding class, or a range between two.
#[derive(Debug, Clone, Copy)]
pub struct ForwardClass {
    /// The faster one.
    pub least: Forward,
    most: Forward,
}

impl ForwardClass {
    fn one(forward: Forward) -> Self {
        Self { least: forward, most: forward }
    }

    /// From the store's data register to the destination register of a plain load.
    pub fn latency(self, latencies: &Latencies) -> Latency {
        let (least, most) = (latencies.forwarding(self.least), latencies.forwarding(self.most));
        Latency { low: least.low.min(most.low), high: least.high.max(most.high), ..most }
    }
}

/// Up to this many store–load pairs in a loop, forwarding is fast on Zen 3 (measured,
/// docs/results/accuracy.md).
const FEW: usize = 12;
/// From this many pairs on, it is slow.
const MANY: usize = 32;

/// The class of each dependency. `is_short` is called with a dependency's index and returns whether
/// there is a single cycle of arithmetic between its load and the next store.
pub fn classes(
    code: &Code,
    memory_deps: &[MemoryDependency],
    latencies: &Latencies,
    mut is_short: impl FnMut(usize) -> bool,
) -> Vec<ForwardClass> {
    if memory_deps.is_empty() {
        return Vec::new();
    }
    let general = |c: &&MemoryDependency| access(code, c).is_some_and(|a| a.bytes <= 8);
    let pairs = memory_deps.iter().filter(general).count();
    let frame = !writes(code, 5);
    let one = |(number, c)| {
        let class = class(code, c, pairs, frame, latencies);
        let buffered = matches!(class.least, Forward::Few | Forward::Many);
        let even = access(code, c).is_none_or(|load| !drifts(code, load));
        match buffered && even && latencies.distinguishes(Forward::Short) && is_short(number) {
            true => ForwardClass::one(Forward::Short),
            false => class,
        }
    };
    memory_deps.iter().enumerate().map(one).collect()
}

fn access<'a>(code: &'a Code, dep: &MemoryDependency) -> Option<&'a Access> {
    code.effects.get(dep.reader)?.memory.get(dep.access)
}

fn class(
    code: &Code,
    dep: &MemoryDependency,
    pairs: usize,
    frame: bool,
    latencies: &Latencies,
) -> ForwardClass {
    let Some(access) = access(code, dep) else { return ForwardClass::one(Forward::Many) };
    if is_locked(&code.instructions[dep.reader], access) {
        return ForwardClass::one(Forward::Locked);
    }
    if dep.overlap != Overlap::Full {
        return ForwardClass::one(Forward::Blocked);
    }
    let vector = |instruction: usize| {
        let instruction = &code.instructions[instruction];
        (0..instruction.op_count()).any(|i| instruction.op_register(i).is_vector_register())
    };
    if access.bytes >= 32 {
        return ForwardClass::one(Forward::Ymm);
    }
    if vector(dep.reader) || vector(dep.writer) {
        return ForwardClass::one(Forward::Xmm);
    }
    let stack = access.base == Register::RSP || access.base == Register::RBP && frame;
    let stack = stack && access.index == Register::None;
    if latencies.distinguishes(Forward::Slot) {
        if access.store && adds_register(code, dep.reader) {
            return ForwardClass::one(Forward::Update);
        }
        if same_start(code, dep, access) {
            if stack {
                return ForwardClass::one(Forward::Stack);
            }
            if is_slot(code, dep, access) {
                return ForwardClass::one(Forward::Slot);
            }
        }
    } else if stack {
        return ForwardClass::one(Forward::Stack);
    }
    match pairs {
        ..=FEW => ForwardClass::one(Forward::Few),
        MANY.. => ForwardClass::one(Forward::Many),
        _ => ForwardClass { least: Forward::Few, most: Forward::Many },
    }
}

/// Whether the processor locks the cache line: with a LOCK prefix, or implicitly for `xchg` (Intel SDM
/// vol. 3, 9.1.2.1).
fn is_locked(instruction: &Instruction, access: &Access) -> bool {
    let exchange = instruction.mnemonic() == Mnemonic::Xchg;
    access.load && access.store && (exchange || instruction.has_lock_prefix())
}

/// Whether the other operand of a read-modify-write instruction is a register, not a constant.
fn adds_register(code: &Code, instruction: usize) -> bool {
    let instruction = &code.instructions[instruction];
    instruction.op_count() > 1 && instruction.op1_kind() == OpKind::Register
}

fn stores<'a>(code: &'a Code, dep: &MemoryDependency) -> impl Iterator<Item = &'a Access> {
    code.effects[dep.writer].memory.iter().filter(|a| a.store)
}

/// Whether load and store start at the same address: they have the same size (and overlap fully) or
/// the same address operands.
fn same_start(code: &Code, dep: &MemoryDependency, load: &Access) -> bool {
    stores(code, dep).any(|store| {
        let same_operands = (store.base, store.index, store.displacement)
            == (load.base, Register::None, load.displacement);
        store.bytes == load.bytes || same_operands && step(code, load.base) == Some(0)
    })
}

/// Whether memory renaming can identify the slot without computing the address. Measured on Golden
/// Cove, in loops: it does for an absolute address or base and displacement in any registers, written
/// in the same or the previous iteration, if the base changes only by multiples of the access size. It
/// does not with an index, relative to `rip`, or across two or more iterations.
fn is_slot(code: &Code, dep: &MemoryDependency, load: &Access) -> bool {
    let relative = |at: usize| code.instructions[at].is_ip_rel_memory_operand();
    let known = |access: &Access| {
        let absolute = access.base == Register::None && access.segment == Register::None;
        let step = if absolute { Some(0) } else { step(code, access.base) };
        access.index == Register::None
            && step.is_some_and(|s| s % i64::from(access.bytes.max(1)) == 0)
    };
    let near = dep.delta <= 1 && !relative(dep.reader) && !relative(dep.writer);
    near && known(load) && stores(code, dep).any(known)
}

/// Whether the base changes by a constant that is not a multiple of the access size: on Golden Cove,
/// one cycle of arithmetic then does not slow forwarding down.
fn drifts(code: &Code, load: &Access) -> bool {
    let size = i64::from(load.bytes.max(1));
    load.index == Register::None && step(code, load.base).is_some_and(|s| s % size != 0)
}

/// The change of a base register per iteration, if it changes only by constants.
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

/// The constant that an instruction adds to its first operand, a 64-bit register.
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

/// Whether any instruction writes the general-purpose register with this encoding number.
fn writes(code: &Code, register: u8) -> bool {
    let mut all = code.effects.iter().flat_map(|e| &e.writes);
    all.any(|w| w.reg.as_gpr() == Some(register))
}
