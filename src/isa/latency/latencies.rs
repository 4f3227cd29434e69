//! Looking latencies up: measured here, else shipped, else assumed.

use super::calibration::Calibration;
use super::form::Form;
use super::model::{Forward, Input, Latency, Output, Source};
use super::table::Table;
use super::{assumed, pending};
use crate::effects::{Effects, Read};
use iced_x86::Instruction;
use std::sync::Arc;
use tma::{Core, Error, Result};

/// The latencies of one microarchitecture.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// Name of its event table (`zen3`, `emr`).
    pub uarch: Option<String>,
    shipped: Option<Arc<Table>>,
    measured: Option<Arc<Calibration>>,
}

impl Latencies {
    /// Those of `core`: its file of latencies, else assumptions.
    ///
    /// # Errors
    /// The file is not sound.
    pub fn new(core: &Core) -> Result<Self> {
        let shipped = match &core.latencies {
            None => None,
            Some((text, origin)) => Some(Arc::new(Table::parse(text).map_err(|e| {
                Error::failed(format!("{origin}: the latencies cannot be read"))
                    .because(e)
                    .hint("docs/tables.md describes the file")
            })?)),
        };
        Ok(Self { uarch: core.uarch().map(str::to_owned), shipped, measured: None })
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
            .as_ref()
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
        let pending = self.shipped.as_ref().and_then(|t| t.pending()).filter(|_| {
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
        match self.shipped.as_ref().and_then(|t| t.chained(producer, instruction)) {
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
        match &self.shipped {
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
            .as_ref()
            .and_then(|t| t.forwarding(forward))
            .unwrap_or_else(|| assumed::forwarding(forward))
    }

    /// Whether a measurement or the shipped table tells this class from others. Processors that do
    /// not rename memory have no use for [`Forward::Slot`] and [`Forward::Update`].
    pub fn tells(&self, forward: Forward) -> bool {
        self.shipped.as_ref().is_some_and(|t| t.forwarding(forward).is_some())
    }
}

/// Nothing that is executed takes less than a cycle: what took less was done by renaming.
const RENAMED: f64 = 0.9;
