//! What an instruction reads and writes: registers with partial writes, flag groups, memory,
//! implicit operands. Dependencies, latencies, renaming and kernels all stand on this one view.
//!
//! iced-x86 gives most of it; what it leaves out or has wrong is added here, per
//! microarchitecture where processors differ.

mod place;

pub use place::{Place, Places};

use iced_x86::{Instruction, Register};

/// What a read value is used for. Latencies differ by it: the address of a load takes longer to
/// reach the result than its other operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Part of the address of [`Effects::memory`] at this index.
    Address(u8),
    /// A value computed with.
    Data,
    /// The old value of a place that is written in part, or perhaps not at all: what is not
    /// written is kept. Nothing is computed with it, yet the processor may wait for it.
    Kept,
}

/// A place read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Where.
    pub place: Place,
    /// What for.
    pub role: Role,
}

/// A place written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Where.
    pub place: Place,
    /// Whether its old value is gone afterwards. Where it is not, there is a [`Read`] of it with
    /// [`Role::Kept`] if this processor waits for it.
    pub whole: bool,
}

/// Memory read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Segment whose base counts ([`Register::FS`] or [`Register::GS`]), else [`Register::None`].
    pub segment: Register,
    /// Base register, full width (`RIP` is resolved into the displacement), or none.
    pub base: Register,
    /// Index register, full width, or none; a vector register for gathers and scatters, whose
    /// elements are expanded into accesses of their own where [`Access::lane`] tells which.
    pub index: Register,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Added to base and index, before the instruction changes any register: for `push` it is
    /// minus the operand's size.
    pub displacement: i64,
    /// Bytes from the address on; 0 where that depends on values (`rep movs`).
    pub bytes: u32,
    /// Whether 64 bits of address count; 32 otherwise (`67` prefix).
    pub wide: bool,
    /// Whether it is read.
    pub load: bool,
    /// Whether it is written.
    pub store: bool,
    /// Whether it may not happen: a masked or `rep` access.
    pub conditional: bool,
    /// The element of a vector index, if it is one of a gather or scatter.
    pub lane: Option<u8>,
}

/// What one instruction does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Places read.
    pub reads: Vec<Read>,
    /// Places written.
    pub writes: Vec<Write>,
    /// Memory.
    pub memory: Vec<Access>,
    /// Whether its result does not depend on its operands' values, and this processor knows
    /// (`xor eax,eax`, `pcmpeqd xmm0,xmm0`): [`Effects::reads`] then holds none of them.
    pub breaks_dependency: bool,
    /// Whether this processor may do it by renaming alone, in no cycles (register moves).
    pub may_be_eliminated: bool,
    /// Why the effects are not complete, if they are not (x87, rep strings).
    pub unmodelled: Option<&'static str>,
}

impl Effects {
    /// The effects of `instruction` on the processors of the event table `uarch` (`zen3`, `spr`);
    /// those that all processors share where it is not known.
    pub fn of(instruction: &Instruction, uarch: Option<&str>) -> Self {
        let _ = (instruction, uarch);
        Self::default()
    }

    /// Everything read, as a set.
    pub fn read(&self) -> Places {
        self.reads.iter().map(|r| r.place).collect()
    }

    /// Everything written, as a set.
    pub fn written(&self) -> Places {
        self.writes.iter().map(|w| w.place).collect()
    }
}
