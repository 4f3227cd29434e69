//! Instruction latencies: core cycles from an operand to a result, each with its source.
//!
//! | file | concern |
//! |---|---|
//! | `form` | instruction forms: the keys of latencies |
//! | `latencies` | latency lookup |
//! | `table`, `table_file` | the shipped tables in `events/latency/` and their format |
//! | `assumed` | assumptions for instructions that no table lists |
//! | `calibration` | latencies measured on a machine, and the calibration file |
//!
//! # Definition
//!
//! Core cycles from the time that an input is available to the time that a dependent instruction can
//! use the output. Bypass delays between execution domains are not included.
//!
//! A value that passes through memory takes [`Latencies::forwarding`] from the store's data register
//! to the destination register of a plain load of the same bytes. Therefore [`Input::Memory`] of a
//! plain load and [`Output::Memory`] of a plain store count 0, and for `add rax,[m]` or `add [m],rax`
//! they count only the addition. From [`Input::Address`] the load is included: `add rax,[rbx]` counts
//! load and addition.
//!
//! Between register files (`movq`, `kmovq`) only round trips can be measured. Each way counts half of
//! `movq` there and back, in tables and calibrations alike: a cycle of dependencies that leaves a
//! register file comes back to it, so its sum is that of the measurements however they divide.
//!
//! # Sources
//!
//! In order of precedence: a measurement on this machine ([`Latencies::with`] a [`Calibration`]); the
//! shipped table of the microarchitecture, which names its source; an assumption by the kind of
//! instruction. This module reads no files: the caller passes the calibration.

mod assumed;
mod calibration;
mod form;
mod latencies;
mod table;
mod table_file;
#[cfg(test)]
mod tests;

use crate::effects::{Read, Role, Write};
use serde::{Serialize, Serializer};

pub use calibration::{Calibration, Identity};
pub(crate) use form::code_named;
pub use form::{Address, Form, Mask};
pub use latencies::Latencies;

/// The input of an instruction by which a value enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Input {
    /// In an address register of a load or store.
    Address,
    /// In a register operand of the computation.
    Register,
    /// In a register whose old value is only merged ([`Role::Merged`]): the upper lanes of
    /// `cvtsi2sd`, masked-off elements, the rest of rax after a write of al.
    Merged,
    /// In a flag.
    Flags,
    /// In memory: the loaded value.
    Memory,
}

/// The output of an instruction by which a value leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Output {
    /// In a register.
    Register,
    /// In a flag.
    Flags,
    /// In memory: the stored value.
    Memory,
}

impl Input {
    /// All inputs.
    pub const ALL: [Self; 5] =
        [Self::Address, Self::Register, Self::Merged, Self::Flags, Self::Memory];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Register => "register",
            Self::Merged => "kept",
            Self::Flags => "flags",
            Self::Memory => "memory",
        }
    }

    /// The input of a read; `None` for `rsp` updated by the stack engine, which takes 0 cycles.
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
    /// All outputs.
    pub const ALL: [Self; 3] = [Self::Register, Self::Flags, Self::Memory];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Flags => "flags",
            Self::Memory => "memory",
        }
    }

    /// The output of a register or flag write.
    pub fn of(write: &Write) -> Self {
        if write.reg.is_flag() { Self::Flags } else { Self::Register }
    }
}

/// The source of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Measured on this processor by `tdtool microbench --calibrate`.
    Measured,
    /// A shipped table; names the table's source for this value.
    Table(&'static str),
    /// An assumption by kind of instruction, with its justification.
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

/// A latency in core cycles; a range if it depends on values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Minimum.
    pub low: f64,
    /// Maximum.
    pub high: f64,
    /// Where it comes from.
    pub source: Source,
}

impl Latency {
    /// The midpoint of its range.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    fn table(cycles: f64, source: &'static str) -> Self {
        Self { low: cycles, high: cycles, source: Source::Table(source) }
    }

    fn measured(value: Value) -> Self {
        Self { low: value.cycles, high: value.cycles, source: Source::Measured }
    }

    /// With `low` as the minimum, if lower.
    fn at_least(self, low: f64) -> Self {
        Self { low: self.low.min(low), ..self }
    }

    /// The range of both, with the less reliable of the two sources.
    pub(crate) fn or(self, other: Self) -> Self {
        let source = self.plus(other).source;
        Self { low: self.low.min(other.low), high: self.high.max(other.high), source }
    }

    /// The sum of two latencies, with the less reliable of the two sources.
    fn plus(self, other: Self) -> Self {
        let source = match (self.source, other.source) {
            (_, Source::Assumed(_)) => other.source,
            (Source::Measured, _) => other.source,
            _ => self.source,
        };
        Self { low: self.low + other.low, high: self.high + other.high, source }
    }
}

/// Class of store-to-load forwarding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Forward {
    /// Stack slots, addressed by `rsp` or by `rbp` as a frame pointer.
    Stack,
    /// Load and store start at the same address of base register and displacement, where the base
    /// changes only by constants (memory renaming).
    Slot,
    /// Loaded by a read-modify-write instruction with a register operand (`add [m],r`).
    Update,
    /// General-purpose registers, with few store–load pairs in the loop.
    Few,
    /// General-purpose registers, with many such pairs.
    Many,
    /// General-purpose registers, with a single cycle of arithmetic between a load and the store of
    /// its value.
    Short,
    /// Vector registers, up to 16 bytes.
    Xmm,
    /// Vector registers, 32 bytes or more.
    Ymm,
    /// No forwarding: the load waits until the stores have been written to the cache.
    Blocked,
    /// Loaded by a locked instruction, which waits until all earlier stores have been written to the
    /// cache.
    Locked,
}

impl Forward {
    /// All kinds of forwarding.
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

    /// The name in files.
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

impl Serialize for Forward {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
