//! Where values enter a form and where they leave it.

use crate::microbench::form::{Form, MASK, Mask, Memory, is_address};
use crate::microbench::operand::{Class, Operand};
use iced_x86::{OpAccess, Register, RflagsBits};
use isa::code::Inst;
use tma::Result;

/// One place where a value enters or leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The operand at an index, a register.
    Operand(usize, Class),
    /// A register that the form uses without a choice: general-purpose.
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

impl End {
    /// `address`, `register`, `flags` or `memory`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Operand(..) | Self::Implicit(_) => "register",
            Self::Flags(_) => "flags",
            Self::Address | Self::Index => "address",
            Self::Memory => "memory",
        }
    }

    /// Which one.
    pub fn name(&self) -> String {
        match self {
            Self::Operand(MASK, _) => "mask".to_owned(),
            Self::Operand(i, _) => format!("operand {i}"),
            Self::Implicit(register) => format!("{register:?}").to_lowercase(),
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

/// All of a form's.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    /// Where values enter.
    pub inputs: Vec<End>,
    /// Where they leave.
    pub outputs: Vec<End>,
}

const ARITHMETIC: u32 = RflagsBits::CF
    | RflagsBits::OF
    | RflagsBits::ZF
    | RflagsBits::SF
    | RflagsBits::PF
    | RflagsBits::AF;

impl Ends {
    /// Those of `form`.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn of(form: Form) -> Result<Self> {
        let usage = form.usage()?;
        let mut ends = Self::default();
        for (i, operand) in form.operands().into_iter().enumerate() {
            let access = usage.access.get(i).copied().unwrap_or(OpAccess::None);
            let (reads, writes) = (Inst::reads(access), Inst::writes(access));
            let end = match operand {
                Operand::Register(class) => End::Operand(i, class),
                Operand::Memory => {
                    if form.memory != Memory::None && (reads || is_address(form.code)) {
                        ends.inputs.push(End::Address);
                        if !matches!(form.memory, Memory::Based) {
                            ends.inputs.push(End::Index);
                        }
                    }
                    if is_address(form.code) {
                        continue;
                    }
                    End::Memory
                }
                _ => continue,
            };
            if reads {
                ends.inputs.push(end);
            }
            if writes {
                ends.outputs.push(end);
            }
        }
        if form.mask != Mask::None {
            ends.inputs.push(End::Operand(MASK, Class::Mask));
        }
        // The stack pointer is moved at renaming, and is no address that a chain could go through.
        let chosen = |r: Register| r.is_gpr() && r.full_register() != Register::RSP;
        for used in usage.implicit.iter().filter(|used| chosen(used.register())) {
            let end = End::Implicit(used.register().full_register());
            for (list, wanted) in [
                (&mut ends.inputs, Inst::reads(used.access())),
                (&mut ends.outputs, Inst::writes(used.access())),
            ] {
                if wanted && !list.contains(&end) {
                    list.push(end);
                }
            }
        }
        let sample = form.sample()?;
        let read = sample.rflags_read() & ARITHMETIC;
        if read != 0 {
            ends.inputs.push(End::Flags(read));
        }
        let written = sample.rflags_written() & ARITHMETIC;
        if written != 0 {
            ends.outputs.push(End::Flags(written));
        }
        Ok(ends)
    }
}
