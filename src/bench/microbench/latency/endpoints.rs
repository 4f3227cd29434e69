//! Inputs and outputs of a form, between which latencies are measured.

use crate::microbench::form::{Form, MASK, Mask, Memory, is_address};
use crate::microbench::operand::{Class, Operand};
use iced_x86::{OpAccess, Register, RflagsBits};
use isa::code::Inst;
use isa::names::small;
use tma::Result;

/// One input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// The operand at an index, a register.
    Operand(usize, Class),
    /// An implicit or fixed general-purpose register.
    Implicit(Register),
    /// Flags, as bits of [`RflagsBits`].
    Flags(u32),
    /// The base of its address.
    Address,
    /// The index of its address.
    Index,
    /// The memory operand's value.
    Memory,
}

impl Endpoint {
    /// `address`, `register`, `flags` or `memory`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Operand(..) | Self::Implicit(_) => "register",
            Self::Flags(_) => "flags",
            Self::Address | Self::Index => "address",
            Self::Memory => "memory",
        }
    }

    /// Its name in documents.
    pub fn name(&self) -> String {
        match self {
            Self::Operand(MASK, _) => "mask".to_owned(),
            Self::Operand(i, _) => format!("operand {i}"),
            Self::Implicit(register) => small(*register),
            Self::Flags(bits) => flags(*bits),
            Self::Address => "base".to_owned(),
            Self::Index => "index".to_owned(),
            Self::Memory => "memory".to_owned(),
        }
    }
}

fn flags(bits: u32) -> String {
    let all = [
        (RflagsBits::CF, "CF"),
        (RflagsBits::OF, "OF"),
        (RflagsBits::ZF, "ZF"),
        (RflagsBits::SF, "SF"),
        (RflagsBits::PF, "PF"),
        (RflagsBits::AF, "AF"),
    ];
    let names: Vec<&str> = all.iter().filter(|(b, _)| bits & b != 0).map(|(_, n)| *n).collect();
    names.join(" ")
}

/// All inputs and outputs of a form.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    /// Inputs.
    pub inputs: Vec<Endpoint>,
    /// Outputs.
    pub outputs: Vec<Endpoint>,
}

const ARITHMETIC: u32 = RflagsBits::CF
    | RflagsBits::OF
    | RflagsBits::ZF
    | RflagsBits::SF
    | RflagsBits::PF
    | RflagsBits::AF;

impl Endpoints {
    /// The endpoints of `form`.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn of(form: Form) -> Result<Self> {
        let usage = form.usage()?;
        let mut endpoints = Self::default();
        for (i, operand) in form.operands().into_iter().enumerate() {
            let access = usage.access.get(i).copied().unwrap_or(OpAccess::None);
            let (reads, writes) = (Inst::reads(access), Inst::writes(access));
            let endpoint = match operand {
                Operand::Register(class) => Endpoint::Operand(i, class),
                Operand::Memory => {
                    if form.memory != Memory::None && (reads || is_address(form.code)) {
                        endpoints.inputs.push(Endpoint::Address);
                        if !matches!(form.memory, Memory::Based) {
                            endpoints.inputs.push(Endpoint::Index);
                        }
                    }
                    if is_address(form.code) {
                        continue;
                    }
                    Endpoint::Memory
                }
                _ => continue,
            };
            // A write of 8 or 16 bits merges the rest of the register, so it also reads it.
            let merges = matches!(operand, Operand::Register(Class::Gpr8 | Class::Gpr16));
            if reads || (writes && merges) {
                endpoints.inputs.push(endpoint);
            }
            if writes {
                endpoints.outputs.push(endpoint);
            }
        }
        if form.mask != Mask::None {
            endpoints.inputs.push(Endpoint::Operand(MASK, Class::Mask));
        }
        // The stack engine updates the stack pointer, so no chain can go through it.
        let chosen = |r: Register| r.is_gpr() && r.full_register() != Register::RSP;
        for used in usage.implicit.iter().filter(|used| chosen(used.register())) {
            let endpoint = Endpoint::Implicit(used.register().full_register());
            for (list, wanted) in [
                (&mut endpoints.inputs, Inst::reads(used.access())),
                (&mut endpoints.outputs, Inst::writes(used.access())),
            ] {
                if wanted && !list.contains(&endpoint) {
                    list.push(endpoint);
                }
            }
        }
        let sample = form.sample()?;
        let read = sample.rflags_read() & ARITHMETIC;
        if read != 0 {
            endpoints.inputs.push(Endpoint::Flags(read));
        }
        let written = sample.rflags_written() & ARITHMETIC;
        if written != 0 {
            endpoints.outputs.push(Endpoint::Flags(written));
        }
        Ok(endpoints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microbench::Catalog;

    /// Writes of 8 and 16 bits leave the rest of the register, those of 32 bits clear it (Intel SDM,
    /// volume 1, 3.4.1.1).
    #[test]
    fn a_write_of_part_of_a_register_depends_on_the_rest() {
        for (form, expected) in [
            ("MOV_GPR8i8_GPR8i8", vec!["operand 0", "operand 1"]),
            ("MOVZX_GPR16i16_GPR8i8", vec!["operand 0", "operand 1"]),
            ("MOVZX_GPR32i32_GPR8i8", vec!["operand 1"]),
            ("MOV_GPR64i64_GPR64i64", vec!["operand 1"]),
        ] {
            let endpoints = Endpoints::of(Catalog::all().find(form).unwrap()).unwrap();
            let inputs: Vec<String> = endpoints.inputs.iter().map(Endpoint::name).collect();
            assert_eq!(inputs, expected, "{form}");
        }
    }
}
