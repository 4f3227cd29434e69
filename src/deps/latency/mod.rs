//! How long a value takes from an operand to a result, and who says so.

use crate::code::effects::Effects;
use iced_x86::Instruction;

/// Where a value enters an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Input {
    /// Through a register of the address of a load or store.
    Address,
    /// Through a register computed with.
    Register,
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

/// Who says how long it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Measured on this processor by `tdtool kernel --calibrate`.
    Measured,
    /// A shipped table, with the name of its source for this value.
    Table(String),
    /// No source has it: what instructions of its kind take, and why that was assumed.
    Assumed(&'static str),
}

/// A latency in core cycles: a range where it depends on values.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// Least.
    pub low: f64,
    /// Most.
    pub high: f64,
    /// Who says so.
    pub source: Source,
}

/// How a stored value reaches a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Forward {
    /// Slots addressed by `rsp`, or by `rbp` of a frame.
    Stack,
    /// General-purpose registers, few pairs of store and load in a loop.
    Few,
    /// General-purpose registers, many such pairs.
    Many,
    /// 16 bytes of a vector register.
    Xmm,
    /// 32 bytes or more.
    Ymm,
    /// No forwarding: the load waits until the stores are in the cache.
    Blocked,
}

/// The latencies of one microarchitecture.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// Name of its event table (`zen3`, `emr`).
    pub uarch: Option<String>,
}

impl Latencies {
    /// Those of the processors of the event table `uarch`: what was measured on this machine if it
    /// is one of them, else the shipped table, else assumptions.
    pub fn of(uarch: Option<&str>) -> Self {
        Self { uarch: uarch.map(str::to_owned) }
    }

    /// From `input` to `output` of `instruction`.
    pub fn between(
        &self,
        instruction: &Instruction,
        effects: &Effects,
        input: Input,
        output: Output,
    ) -> Latency {
        let _ = (instruction, effects, input, output);
        Latency { low: 1.0, high: 1.0, source: Source::Assumed("nothing is known yet") }
    }

    /// From a store's data register to the register that the load of the same bytes writes: the
    /// whole way, the latencies of neither added.
    pub fn forwarding(&self, forward: Forward) -> Latency {
        let _ = forward;
        Latency { low: 5.0, high: 5.0, source: Source::Assumed("nothing is known yet") }
    }
}
