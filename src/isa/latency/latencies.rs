//! Latency lookup: measured on this machine, else from the shipped table, else assumed. Encodings of one operation have
//! one latency between registers: `add r64, r/m64` and `add r/m64, r64`.

use super::calibration::Calibration;
use super::form::{Address, Form, Mask};
use super::table::Table;
use super::{Forward, Input, Latency, Output, Source, assumed, table_file};
use crate::effects::{Effects, Read};
use crate::names::name;
use iced_x86::{Code, Instruction};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use tma::{Core, Error, Result};

/// The latencies of one microarchitecture.
///
/// ```
/// use isa::code::parse_hex;
/// use isa::deps::Code;
/// use isa::latency::{Input, Latencies, Output, Source};
/// use tma::Core;
///
/// let core = Core::modelled(&events::library(), "zen3")?;
/// let latencies = Latencies::new(&core)?;
/// // imul rax, [rbx]
/// let code = Code::of_bytes(&parse_hex("48 0f af 03")?, core.facts())?;
/// let (imul, effects) = (&code.instructions[0], &code.effects[0]);
/// let cycles = |from| latencies.between(imul, effects, from, Output::Register);
///
/// // uops.info, Zen 3: 3 cycles of multiplication; a load takes 4 more (AMD, optimization guide).
/// assert_eq!((cycles(Input::Register).low, cycles(Input::Register).high), (3.0, 3.0));
/// assert_eq!(cycles(Input::Address).low, 7.0);
/// assert!(matches!(cycles(Input::Register).source, Source::Table(_)));
///
/// // For a core without a table a latency is an assumption, and says so.
/// let assumed = Latencies::new(&Core::default())?;
/// let guess = assumed.between(imul, effects, Input::Register, Output::Register);
/// assert!(matches!(guess.source, Source::Assumed(_)));
/// # Ok::<(), tma::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// Name of its event table (`zen3`, `emr`).
    pub uarch: Option<String>,
    shipped: Option<Arc<Table>>,
    measured: Option<Arc<Calibration>>,
}

impl Latencies {
    /// The latencies of `core`: its shipped table, or assumptions if it has none.
    pub fn new(core: &Core) -> Result<Self> {
        let shipped = match &core.latencies {
            None => None,
            Some((text, origin)) => Some(Arc::new(Table::parse(text).map_err(|e| {
                Error::failed(format!("cannot read the latency table {origin}"))
                    .because(e)
                    .hint("docs/reference/tables.md describes the format")
            })?)),
        };
        Ok(Self { uarch: core.uarch().map(str::to_owned), shipped, measured: None })
    }

    /// Adds measured latencies, which take precedence. A calibration of another microarchitecture is
    /// ignored; the caller checks with [`Calibration::machine`] whether it is of this machine.
    #[must_use]
    pub fn with(mut self, calibration: Calibration) -> Self {
        if self.uarch.as_deref() == Some(calibration.machine.uarch.as_str()) {
            self.measured = Some(Arc::new(calibration));
        }
        self
    }

    /// The latency from `input` to `output` of `instruction`.
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
            return Latency::table(0.0, "dependency-breaking idiom");
        }
        if effects.may_be_eliminated && input == Input::Register && output == Output::Register {
            return Latency::table(0.0, "eliminated at renaming");
        }
        let execution = self.execution(instruction, effects, input, output);
        if input == Input::Address && effects.memory.iter().any(|m| m.load) {
            return self.load(instruction, effects).plus(execution);
        }
        execution
    }

    /// From an operand to a result, without memory accesses.
    fn execution(
        &self,
        instruction: &Instruction,
        effects: &Effects,
        input: Input,
        output: Output,
    ) -> Latency {
        if assumed::is_plain_access(instruction, effects) {
            return Latency::table(0.0, "plain load or store without computation");
        }
        self.shipped
            .as_ref()
            .and_then(|t| t.execution(instruction, input, output))
            .unwrap_or_else(|| assumed::execution(instruction, input))
    }

    /// The latency from `read` to `output` of an instruction whose register `producer` wrote. It may
    /// depend on the producer: on some processors, floating-point additions have a shorter latency
    /// after each other, and some instructions a longer one after an addition done at renaming.
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
            (Input::Register, Output::Register) => {
                self.back_to_back(producer.0, instruction, effects)
            }
            _ => self.between(instruction, effects, input, output),
        };
        let deferred_add = self.shipped.as_ref().and_then(|t| t.deferred_add()).filter(|_| {
            input == Input::Register
                && producer.1.may_be_eliminated
                && table_file::adds_constant(producer.0)
        });
        deferred_add.map_or(own, |p| p.added_to(own, instruction, output))
    }

    /// From register to register, directly after `producer`.
    fn back_to_back(
        &self,
        producer: &Instruction,
        instruction: &Instruction,
        effects: &Effects,
    ) -> Latency {
        let (input, output) = (Input::Register, Output::Register);
        let measured = self
            .measured_back_to_back(producer, instruction, effects)
            .or_else(|| self.measured(instruction, effects, input, output));
        if let Some(measured) = measured {
            return measured;
        }
        match self.shipped.as_ref().and_then(|t| t.back_to_back(producer, instruction)) {
            Some((short, usual)) => short.unwrap_or(usual),
            None => self.between(instruction, effects, input, output),
        }
    }

    /// The latency measured on this machine: of this form or, if it has a memory operand, that of the
    /// form on registers, to which the latency of a load is added from the address.
    fn measured(
        &self,
        instruction: &Instruction,
        effects: &Effects,
        input: Input,
        output: Output,
    ) -> Option<Latency> {
        let form = Form::of(instruction);
        // The chains of a calibration keep the scheduler full.
        let alone = self.shipped.as_ref().and_then(|table| table.alone(instruction));
        let of_form = |form, input| {
            let found = self.measured_form(form, effects, input, output)?;
            let computes =
                !matches!(input, Input::Flags | Input::Address) && output != Output::Flags;
            Some(alone.filter(|_| computes).map_or(found, |alone| found.at_least(alone)))
        };
        if let Some(own) = of_form(form, input) {
            return Some(own);
        }
        if !form.memory || assumed::is_plain_access(instruction, effects) {
            return None;
        }
        let on_registers = Form { memory: false, address: Address::Based, ..form };
        let through = |from| of_form(on_registers, from);
        match input {
            Input::Memory => through(Input::Register),
            Input::Address if effects.memory.iter().any(|m| m.load) => {
                let load = self.measured_load(instruction, form.address)?;
                through(Input::Register).map(|execution| load.plus(execution))
            }
            Input::Address => None,
            other => through(other),
        }
    }

    /// The latency measured for a form, or for another encoding of the same operation.
    fn measured_form(
        &self,
        form: Form,
        effects: &Effects,
        input: Input,
        output: Output,
    ) -> Option<Latency> {
        if effects.breaks_dependency && matches!(input, Input::Register | Input::Memory) {
            return None;
        }
        let measured = self.measured.as_ref()?;
        let find = |form| Some((form, measured.range(form, input, output)?));
        let of_twin = |code: &Code| find(Form { code: *code, ..form });
        let (form, (low, high)) =
            find(form).or_else(|| twins(form.code).iter().find_map(of_twin))?;
        // The measurement used small constants, whose addition renaming may do; with other constants
        // the same form is executed.
        let renamed =
            measured.back_to_back.get(&form).is_some_and(|c| *c < RENAMED) || high < RENAMED;
        let register = input == Input::Register && output == Output::Register;
        let applies = !register || !renamed || effects.may_be_eliminated;
        applies.then_some(Latency { low, high, source: Source::Measured })
    }

    /// The measured latency of a plain load of the same kind of register.
    fn measured_load(&self, instruction: &Instruction, address: Address) -> Option<Latency> {
        let measured = self.measured.as_ref()?;
        let loads: &[Code] = match vector_bytes(instruction) {
            None => &[Code::Mov_r64_rm64, Code::Mov_r32_rm32],
            Some(16) => &[Code::Movups_xmm_xmmm128, Code::Movdqu_xmm_xmmm128],
            Some(32) => &[Code::VEX_Vmovups_ymm_ymmm256, Code::VEX_Vmovdqu_ymm_ymmm256],
            Some(_) => &[Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512],
        };
        loads.iter().find_map(|code| {
            let form = Form { code: *code, memory: true, address, mask: Mask::None };
            let (low, high) = measured.range(form, Input::Address, Output::Register)?;
            Some(Latency { low, high, source: Source::Measured })
        })
    }

    /// The latency measured after `producer`, if both have a shorter one after each other.
    fn measured_back_to_back(
        &self,
        producer: &Instruction,
        instruction: &Instruction,
        effects: &Effects,
    ) -> Option<Latency> {
        self.measured(instruction, effects, Input::Register, Output::Register)?;
        let back_to_back = &self.measured.as_ref()?.back_to_back;
        let of = |instruction: &Instruction| {
            let form = Form::of(instruction);
            let on_registers = Form { memory: false, address: Address::Based, ..form };
            let twin = |code: &Code| back_to_back.get(&Form { code: *code, ..on_registers });
            let own = back_to_back.get(&form);
            own.or_else(|| twins(form.code).iter().find_map(twin)).copied()
        };
        let cycles = of(instruction)?;
        of(producer).map(|_| Latency { low: cycles, high: cycles, source: Source::Measured })
    }

    /// Load-to-use latency for an L1 hit.
    pub(crate) fn load(&self, instruction: &Instruction, effects: &Effects) -> Latency {
        if let Some(measured) = self.measured_load(instruction, Form::of(instruction).address) {
            return measured;
        }
        match &self.shipped {
            Some(table) => table.load(instruction, effects),
            None => assumed::load(instruction),
        }
    }

    /// From a store's data register to the destination register of a load of the same bytes. This
    /// includes the store and the load.
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

    /// Whether the shipped table has this class. Tables of processors without memory renaming lack
    /// [`Forward::Slot`] and [`Forward::Update`].
    pub fn distinguishes(&self, forward: Forward) -> bool {
        self.shipped.as_ref().is_some_and(|t| t.forwarding(forward).is_some())
    }
}

/// Below this many cycles an instruction was eliminated: executed ones take at least 1 cycle.
const RENAMED: f64 = 0.9;

/// Bytes of the widest vector register among the operands.
fn vector_bytes(instruction: &Instruction) -> Option<usize> {
    let registers = (0..instruction.op_count()).map(|at| instruction.op_register(at));
    registers.filter(|register| register.is_vector_register()).map(|register| register.size()).max()
}

/// All codes with the mnemonic, encoding and operand classes of `code`, itself included.
fn twins(code: Code) -> &'static [Code] {
    static GROUPS: OnceLock<(Vec<Vec<Code>>, Vec<usize>)> = OnceLock::new();
    let (groups, group_of) = GROUPS.get_or_init(|| {
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut groups: Vec<Vec<Code>> = Vec::new();
        let mut group_of = Vec::new();
        for code in Code::values() {
            let at = *known.entry(operation(code)).or_insert(groups.len());
            if at == groups.len() {
                groups.push(Vec::new());
            }
            groups[at].push(code);
            group_of.push(at);
        }
        (groups, group_of)
    });
    group_of.get(code as usize).map_or(&[], |at| groups[*at].as_slice())
}

/// Mnemonic, encoding and the class of each operand: `r64_or_mem` and `r64_reg` are both `r64`.
fn operation(code: Code) -> String {
    let about = code.op_code();
    let mut text = format!("{} {}", name(code.mnemonic()), name(about.encoding()));
    for kind in about.op_kinds() {
        let kind = name(*kind);
        text.push(' ');
        text.push_str(kind.split('_').next().unwrap_or_default());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_one_operation() {
        assert!(twins(Code::Add_r64_rm64).contains(&Code::Add_rm64_r64));
        assert!(!twins(Code::Add_r64_rm64).contains(&Code::Add_r32_rm32));
        assert!(!twins(Code::Add_r64_rm64).contains(&Code::Sub_r64_rm64));
        assert!(!twins(Code::Mulps_xmm_xmmm128).contains(&Code::VEX_Vmulps_xmm_xmm_xmmm128));
    }
}
