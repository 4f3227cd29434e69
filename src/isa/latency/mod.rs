//! How long a value takes from an operand to a result, and who says so.
//!
//! | file | concern |
//! |---|---|
//! | `form` | the key of a latency: an instruction form |
//! | `shipped` | the tables in `events/latency/` |
//! | `pending` | what additions done by renaming leave to those that use the sum |
//! | `assumed` | what instructions of a kind take where no table has them |
//! | `calibration` | what was measured on a machine, as a file |
//!
//! # What is counted
//!
//! Cycles of the core's clock from the moment that an input is there to the moment that a
//! dependent instruction can use the output; a bypass between execution domains is not added.
//!
//! A value that goes through memory from one instruction to another takes
//! [`Latencies::forwarding`] from the store's data register to the register that a plain load of
//! the same bytes writes. So [`Input::Memory`] of a plain load and [`Output::Memory`] of a plain
//! store count 0, and of `add rax,[m]` or `add [m],rax` they count the addition alone. From
//! [`Input::Address`] the load itself is included: `add rax,[rbx]` is load and addition.
//!
//! # Who says so
//!
//! In this order: measured on this machine ([`Latencies::with`] a [`Calibration`]); the shipped
//! table of the microarchitecture, with its source; an assumption by the kind of instruction.
//! Nothing is read from the environment here: who has a calibration hands it over.

mod assumed;
mod calibration;
mod form;
mod pending;
mod shipped;
#[cfg(test)]
mod tests;

pub use calibration::{Calibration, Identity, Value};
pub use form::{Address, Form, Mask};

use crate::effects::{Effects, Read, Role, Write};
use iced_x86::Instruction;
use shipped::Table;
use std::sync::Arc;

/// Where a value enters an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Input {
    /// Through a register of the address of a load or store.
    Address,
    /// Through a register computed with.
    Register,
    /// Through a register whose old value is only kept in part ([`Role::Kept`]): the upper lanes
    /// of `cvtsi2sd`, what a mask leaves, the rest of rax behind a write of al.
    Kept,
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
        [Self::Address, Self::Register, Self::Kept, Self::Flags, Self::Memory];

    /// As files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Register => "register",
            Self::Kept => "kept",
            Self::Flags => "flags",
            Self::Memory => "memory",
        }
    }

    /// That of a read; `None` for `rsp` moved by the stack engine, which takes no time.
    pub fn of(read: &Read) -> Option<Self> {
        Some(match read.role {
            Role::Address(_) => Self::Address,
            Role::Stack => return None,
            _ if read.place.is_flag() => Self::Flags,
            Role::Data => Self::Register,
            Role::Kept => Self::Kept,
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
        if write.place.is_flag() { Self::Flags } else { Self::Register }
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
    fn table(cycles: f64, source: &'static str) -> Self {
        Self { low: cycles, high: cycles, source: Source::Table(source) }
    }

    fn measured(value: Value) -> Self {
        Self { low: value.cycles, high: value.cycles, source: Source::Measured }
    }

    /// One after the other; as sure as the less sure of the two.
    fn plus(self, other: Self) -> Self {
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

/// The latencies of one microarchitecture.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// Name of its event table (`zen3`, `emr`).
    pub uarch: Option<String>,
    shipped: Option<&'static Table>,
    measured: Option<Arc<Calibration>>,
}

impl Latencies {
    /// Those of the processors of the event table `uarch`: the shipped table, else assumptions.
    pub fn of(uarch: Option<&str>) -> Self {
        Self {
            uarch: uarch.map(str::to_owned),
            shipped: uarch.and_then(shipped::table),
            measured: None,
        }
    }

    /// The same, what `calibration` has measured first. One of another microarchitecture is left
    /// aside; whether it is of this very machine, [`Calibration::machine`] tells.
    #[must_use]
    pub fn with(mut self, calibration: Calibration) -> Self {
        if self.uarch.as_deref() == Some(calibration.machine.uarch.as_str()) {
            self.measured = Some(Arc::new(calibration));
        }
        self
    }

    /// From `input` to `output` of `instruction`.
    pub fn between(
        &self,
        instruction: &Instruction,
        effects: &Effects,
        input: Input,
        output: Output,
    ) -> Latency {
        if let Some(measured) = self.measured(instruction, effects, input, output) {
            return measured;
        }
        if effects.breaks_dependency && matches!(input, Input::Register | Input::Memory) {
            return Latency::table(0.0, "breaks the dependency");
        }
        if effects.may_be_eliminated && input == Input::Register && output == Output::Register {
            return Latency::table(0.0, "done by renaming");
        }
        let execution = self.execution(instruction, effects, input, output);
        if input == Input::Address && effects.memory.iter().any(|m| m.load) {
            return self.load(instruction, effects).plus(execution);
        }
        execution
    }

    /// From operands to results, memory left out.
    fn execution(
        &self,
        instruction: &Instruction,
        effects: &Effects,
        input: Input,
        output: Output,
    ) -> Latency {
        if assumed::is_plain_access(instruction, effects) {
            return Latency::table(0.0, "a plain load or store computes nothing");
        }
        self.shipped
            .and_then(|t| t.execution(instruction, input, output))
            .unwrap_or_else(|| assumed::execution(instruction, input))
    }

    /// The same of a register that `producer` wrote, from `read` to `output`: additions of numbers
    /// one after the other take less than one behind another instruction on some processors, and
    /// behind additions done by renaming some instructions take longer.
    pub fn following(
        &self,
        producer: (&Instruction, &Effects),
        reader: (&Instruction, &Effects),
        read: &Read,
        output: Output,
    ) -> Latency {
        let (instruction, effects) = reader;
        let Some(input) = Input::of(read) else { return Latency::table(0.0, "stack engine") };
        let own = match (input, output) {
            (Input::Register, Output::Register) => self.chained(producer.0, instruction, effects),
            _ => self.between(instruction, effects, input, output),
        };
        let pending = self.shipped.and_then(Table::pending).filter(|_| {
            input == Input::Register && producer.1.may_be_eliminated && pending::adds(producer.0)
        });
        pending.map_or(own, |p| p.behind(own, instruction, output))
    }

    /// From register to register behind `producer`.
    fn chained(
        &self,
        producer: &Instruction,
        instruction: &Instruction,
        effects: &Effects,
    ) -> Latency {
        let (input, output) = (Input::Register, Output::Register);
        let measured = self
            .measured_chained(producer, instruction, effects)
            .or_else(|| self.measured(instruction, effects, input, output));
        if let Some(measured) = measured {
            return measured;
        }
        match self.shipped.and_then(|t| t.chained(producer, instruction)) {
            Some((chained, apart)) => chained.unwrap_or(apart),
            None => self.between(instruction, effects, input, output),
        }
    }

    /// What this machine was measured to take.
    fn measured(
        &self,
        instruction: &Instruction,
        effects: &Effects,
        input: Input,
        output: Output,
    ) -> Option<Latency> {
        let measured = self.measured.as_ref()?;
        let form = Form::of(instruction);
        let (low, high) = measured.range(form, input, output)?;
        if effects.breaks_dependency && matches!(input, Input::Register | Input::Memory) {
            return None;
        }
        // Small constants were measured. What renaming does with them, it does not with others.
        let renamed = measured.chained.get(&form).is_some_and(|c| *c < RENAMED) || high < RENAMED;
        let register = input == Input::Register && output == Output::Register;
        let kept = !register || !renamed || effects.may_be_eliminated;
        kept.then_some(Latency { low, high, source: Source::Measured })
    }

    /// What it was measured to take behind `producer`, where both are quicker behind their kind.
    fn measured_chained(
        &self,
        producer: &Instruction,
        instruction: &Instruction,
        effects: &Effects,
    ) -> Option<Latency> {
        self.measured(instruction, effects, Input::Register, Output::Register)?;
        let chained = &self.measured.as_ref()?.chained;
        let cycles = *chained.get(&Form::of(instruction))?;
        chained.contains_key(&Form::of(producer)).then_some(Latency {
            low: cycles,
            high: cycles,
            source: Source::Measured,
        })
    }

    /// From the address of a load to the loaded value, the cache having it.
    fn load(&self, instruction: &Instruction, effects: &Effects) -> Latency {
        match self.shipped {
            Some(table) => table.load(instruction, effects),
            None => assumed::load(instruction),
        }
    }

    /// From a store's data register to the register that the load of the same bytes writes: the
    /// whole way, the latencies of neither added.
    pub fn forwarding(&self, forward: Forward) -> Latency {
        let measured = self.measured.as_ref().and_then(|m| m.forwarding.get(&forward));
        if let Some(value) = measured {
            return Latency::measured(*value);
        }
        self.shipped
            .and_then(|t| t.forwarding(forward))
            .unwrap_or_else(|| assumed::forwarding(forward))
    }

    /// Whether a measurement or the shipped table tells this class from others. Processors that do
    /// not rename memory have no use for [`Forward::Slot`] and [`Forward::Update`].
    pub fn tells(&self, forward: Forward) -> bool {
        self.shipped.is_some_and(|t| t.forwarding(forward).is_some())
    }
}

/// Nothing that is executed takes less than a cycle: what took less was done by renaming.
const RENAMED: f64 = 0.9;
