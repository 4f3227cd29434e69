//! What a latency is between, and who says so.

use crate::effects::{Read, Role, Write};

/// Where a value enters an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Input {
    /// Through a register of the address of a load or store.
    Address,
    /// Through a register computed with.
    Register,
    /// Through a register whose old value is only kept in part ([`Role::Merged`]): the upper lanes
    /// of `cvtsi2sd`, what a mask leaves, the rest of rax behind a write of al.
    Merged,
    /// Through a flag.
    Flags,
    /// Through memory: the loaded value.
    Memory,
}

/// Where a value leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Output {
    /// In a register.
    Register,
    /// In the flags.
    Flags,
    /// In memory.
    Memory,
}

impl Input {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Address, Self::Register, Self::Merged, Self::Flags, Self::Memory];

    /// As files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Register => "register",
            Self::Merged => "kept",
            Self::Flags => "flags",
            Self::Memory => "memory",
        }
    }

    /// That of a read; `None` for `rsp` moved by the stack engine, which takes no time.
    pub fn of(read: &Read) -> Option<Self> {
        Some(match read.role {
            Role::Address(_) => Self::Address,
            Role::Stack => return None,
            _ if read.reg.is_flag() => Self::Flags,
            Role::Data => Self::Register,
            Role::Merged => Self::Merged,
        })
    }
}

impl Output {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Register, Self::Flags, Self::Memory];

    /// As files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Flags => "flags",
            Self::Memory => "memory",
        }
    }

    /// That of a written register or group of flags.
    pub fn of(write: &Write) -> Self {
        if write.reg.is_flag() { Self::Flags } else { Self::Register }
    }
}

/// Who says how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Measured on this processor by `tdtool kernel --calibrate`.
    Measured,
    /// A shipped table, with the name of its source for this value.
    Table(&'static str),
    /// No source has it: what instructions of its kind take, and why that was assumed.
    Assumed(&'static str),
}

/// A measured latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// Core cycles.
    pub cycles: f64,
    /// Half the range of the repetitions, in cycles.
    pub spread: f64,
}

/// A latency in core cycles: a range where it depends on values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Least.
    pub low: f64,
    /// Most.
    pub high: f64,
    /// Who says so.
    pub source: Source,
}

impl Latency {
    pub(super) fn table(cycles: f64, source: &'static str) -> Self {
        Self { low: cycles, high: cycles, source: Source::Table(source) }
    }

    pub(super) fn measured(value: Value) -> Self {
        Self { low: value.cycles, high: value.cycles, source: Source::Measured }
    }

    /// One after the other; as sure as the less sure of the two.
    pub(super) fn plus(self, other: Self) -> Self {
        let source = match (self.source, other.source) {
            (_, Source::Assumed(_)) => other.source,
            (Source::Measured, _) => other.source,
            _ => self.source,
        };
        Self { low: self.low + other.low, high: self.high + other.high, source }
    }
}

/// How a stored value reaches a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Forward {
    /// Slots addressed by `rsp`, or by `rbp` of a frame.
    Stack,
    /// Load and store begin at the same address, made of a base register and a displacement; the
    /// base moves by constants at most.
    Slot,
    /// Loaded by an instruction that stores the sum with a register to the same place
    /// (`add [m],r`).
    Update,
    /// General-purpose registers, few pairs of store and load in a loop.
    Few,
    /// General-purpose registers, many such pairs.
    Many,
    /// General-purpose registers, a single cycle of arithmetic between the load and the store that
    /// its value goes to.
    Short,
    /// 16 bytes of a vector register or fewer.
    Xmm,
    /// 32 bytes or more.
    Ymm,
    /// No forwarding: the load waits until the stores are in the cache.
    Blocked,
    /// Loaded by a locked instruction, which waits until all stores before it are in the cache.
    Locked,
}

impl Forward {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Stack,
        Self::Slot,
        Self::Update,
        Self::Few,
        Self::Many,
        Self::Short,
        Self::Xmm,
        Self::Ymm,
        Self::Blocked,
        Self::Locked,
    ];

    /// As files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::Slot => "slot",
            Self::Update => "update",
            Self::Few => "few",
            Self::Many => "many",
            Self::Short => "short",
            Self::Xmm => "xmm",
            Self::Ymm => "ymm",
            Self::Blocked => "blocked",
            Self::Locked => "locked",
        }
    }
}
