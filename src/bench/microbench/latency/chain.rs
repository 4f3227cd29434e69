//! The instructions of a chain.

use super::connect::{Connector, SCRATCH, encoded, from, to, two};
use super::ends::End;
use crate::microbench::form::{Address, Form, MASK, is_address};
use crate::microbench::operand::{Class, Family};
use crate::microbench::pools::{BASE, HALF};
use iced_x86::{Code, EncodingKind, Instruction, MemoryOperand, Mnemonic, Register, RflagsBits};
use isa::code::Block;
use tma::Result;

/// Holds 0 all the time.
pub const ZERO: Register = Register::R13;
/// Holds what the operands hold at first.
const SAME: Register = Register::R12;
/// Holds 0 at first, and whatever a chain through the index adds: 0.
pub const INDEX: Register = Register::RSI;

/// One link, to be repeated.
#[derive(Debug, Clone)]
pub struct Chain {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How many instructions.
    pub instructions: usize,
    /// How many of them are of the form.
    pub instances: usize,
    /// The others that the value passes.
    pub connectors: Vec<Connector>,
    /// For people.
    pub text: String,
}

/// What is put together.
struct Parts {
    form: Form,
    bytes: Vec<u8>,
    instances: usize,
    connectors: Vec<Connector>,
    note: &'static str,
    index: Register,
    /// Before each instance: gives those halves of a dividend anew that the chain does not go through.
    dividend: Vec<u8>,
}

impl Parts {
    fn of(form: Form) -> Self {
        let (bytes, connectors) = (Vec::new(), Vec::new());
        let dividend = Vec::new();
        Self { form, bytes, instances: 0, connectors, note: "", index: ZERO, dividend }
    }

    /// A quotient and a remainder both go into the next division: one chain at a time.
    fn divide_from(&mut self, input: &End) -> Result<()> {
        if !matches!(self.form.code.mnemonic(), Mnemonic::Div | Mnemonic::Idiv) {
            return Ok(());
        }
        if *input != End::Implicit(Register::RDX) {
            self.dividend.extend(two(Code::Xor_rm32_r32, Register::EDX, Register::EDX)?);
        }
        if *input != End::Implicit(Register::RAX) {
            self.dividend.extend(two(Code::Mov_rm64_r64, Register::RAX, SAME)?);
        }
        Ok(())
    }
}

/// The form behind another instruction, and that by itself: a chain of nothing but the form may be
/// shorter (renaming adds small constants and moves registers) or longer (slots) than what it
/// adds to a chain of others. `None` where no other instruction fits its registers.
///
/// # Errors
/// It cannot be encoded.
pub fn behind(form: Form, input: &End, output: &End) -> Result<Option<(Chain, Chain)>> {
    let End::Operand(j, to) = *output else { return Ok(None) };
    let (from, a) = match *input {
        End::Operand(i, from) => (from, number(form, i)),
        // What `lea` adds to.
        End::Address if is_address(form.code) => (Class::Gpr64, Register::R11.number() as u32),
        _ => return Ok(None),
    };
    if from.family() != to.family() {
        return Ok(None);
    }
    let made = |a: u32, b: u32| match to {
        Class::Gpr32 | Class::Gpr64 => {
            let (a, b) = (Class::Gpr64.register(a), Class::Gpr64.register(b));
            two(Code::Imul_r64_rm64, a, b).map(Some)
        }
        Class::Xmm | Class::Ymm | Class::Zmm => product(form, to, a, b).map(Some),
        _ => Ok(None),
    };
    let (Some(other), Some(alone)) = (made(a, number(form, j))?, made(a, a)?) else {
        return Ok(None);
    };
    let mut parts = Parts::of(form);
    parts.note = "behind a product, whose latency is taken off";
    parts.instance(&|n| number(form, n))?;
    parts.bytes.extend(other);
    let whole = parts.done()?;
    let mut parts = Parts::of(form);
    parts.bytes = alone;
    Ok(Some((whole, parts.done()?)))
}

/// A product of what vector register `b` holds into `a`, in the type and encoding of `form`.
fn product(form: Form, class: Class, a: u32, b: u32) -> Result<Vec<u8>> {
    let spelled = form.spelled();
    let legacy = form.code.op_code().encoding() == EncodingKind::Legacy;
    let kinds = [("f64x", 64), ("f32x", 32), ("f16x", 16)];
    let kind = kinds.into_iter().find(|(part, _)| spelled.contains(part)).map_or(0, |(_, k)| k);
    let code = match (class, kind, legacy) {
        (Class::Zmm, 64, _) => Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er,
        (Class::Zmm, 32, _) => Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er,
        (Class::Zmm, 16, _) => Code::EVEX_Vmulph_zmm_k1z_zmm_zmmm512b16_er,
        (Class::Ymm, 16, _) => Code::EVEX_Vmulph_ymm_k1z_ymm_ymmm256b16,
        (Class::Xmm, 16, _) => Code::EVEX_Vmulph_xmm_k1z_xmm_xmmm128b16,
        (Class::Zmm, ..) => Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64,
        (Class::Ymm, 64, _) => Code::VEX_Vmulpd_ymm_ymm_ymmm256,
        (Class::Ymm, 32, _) => Code::VEX_Vmulps_ymm_ymm_ymmm256,
        (Class::Ymm, ..) => Code::VEX_Vpmuludq_ymm_ymm_ymmm256,
        (_, 64, false) => Code::VEX_Vmulpd_xmm_xmm_xmmm128,
        (_, 32, false) => Code::VEX_Vmulps_xmm_xmm_xmmm128,
        (_, _, false) => Code::VEX_Vpmuludq_xmm_xmm_xmmm128,
        (_, 64, true) => Code::Mulpd_xmm_xmmm128,
        (_, 32, true) => Code::Mulps_xmm_xmmm128,
        (_, _, true) => Code::Pmuludq_xmm_xmmm128,
    };
    let (a, b) = (class.register(a), class.register(b));
    if legacy {
        return two(code, a, b);
    }
    let failed = |e: iced_x86::IcedError| tma::Error::failed("no such product").because(e);
    encoded(&Instruction::with3(code, a, b, b).map_err(failed)?)
}

/// The chain from `input` to `output` and back; `None` where there is no such way.
///
/// # Errors
/// It cannot be encoded.
pub fn chain(form: Form, input: &End, output: &End) -> Result<Option<Chain>> {
    let mut parts = Parts::of(form);
    parts.divide_from(input)?;
    let there = match (*input, *output) {
        (End::Operand(i, a), End::Operand(j, b)) if a.family() == b.family() => {
            parts.same_family(i, j)?
        }
        (End::Operand(..) | End::Implicit(_), End::Operand(..) | End::Implicit(_)) => {
            parts.registers(*input, *output)?
        }
        (End::Address, End::Operand(..) | End::Implicit(_)) => parts.address(*output)?,
        (End::Index, End::Operand(..) | End::Implicit(_)) => parts.index(*output)?,
        (End::Address, End::Flags(bits)) => parts.address_to_flags(bits)?,
        (End::Flags(_), End::Flags(_)) => parts.flags()?,
        (End::Flags(_), End::Operand(_, class)) if class.family() == Family::Gpr => {
            parts.read_flags(*output)?
        }
        (End::Operand(..) | End::Implicit(_), End::Flags(bits)) => {
            parts.write_flags(*input, bits)?
        }
        (End::Operand(i, class), End::Memory) => parts.round_trip(i, class)?,
        (End::Memory, End::Memory) => {
            parts.note = "stored and loaded again by the form itself";
            parts.instance(&|i| number(form, i))?;
            true
        }
        _ => false,
    };
    if there { parts.done().map(Some) } else { Ok(None) }
}

/// The register number of an operand unless the chain wants another.
fn number(form: Form, i: usize) -> u32 {
    if i == MASK {
        return 7;
    }
    let class = form.operands().get(i).and_then(|operand| match operand {
        crate::microbench::operand::Operand::Register(class) => Some(*class),
        _ => None,
    });
    let first = if class.is_some_and(|c| matches!(c, Class::Mask | Class::Mmx)) { 1 } else { 8 };
    first + i as u32
}

impl Parts {
    fn instance(&mut self, number: &dyn Fn(usize) -> u32) -> Result<()> {
        let computed = is_address(self.form.code);
        let base = if computed { Register::R11 } else { BASE };
        let displacement = if computed { 8 } else { HALF };
        let address = Address { base, index: self.index, displacement };
        let made = self.form.instruction(|i, class| class.register(number(i)), address)?;
        self.bytes.extend(&self.dividend);
        self.bytes.extend(self.form.encode(&made)?);
        self.instances += 1;
        Ok(())
    }

    fn alu(&mut self, code: Code, a: Register, b: Register) -> Result<()> {
        self.bytes.extend(two(code, a, b)?);
        self.connectors.push(Connector::Alu);
        Ok(())
    }

    /// The value at `end` into a general-purpose register, which is returned.
    fn out(&mut self, end: End) -> Result<Register> {
        match end {
            End::Operand(i, class) if class.family() != Family::Gpr => {
                self.bytes.extend(from(class.family(), number(self.form, i), SCRATCH)?);
                self.connectors.push(Connector::Half(class.family()));
                Ok(SCRATCH)
            }
            End::Operand(i, _) => Ok(Class::Gpr64.register(number(self.form, i))),
            End::Implicit(register) => Ok(register),
            End::Flags(bits) => {
                self.alu(move_if(bits), SCRATCH, ZERO)?;
                Ok(SCRATCH)
            }
            End::Address | End::Index | End::Memory => Ok(BASE),
        }
    }

    /// Operands of one family: two instances that exchange the operands, or one that feeds itself.
    fn same_family(&mut self, i: usize, j: usize) -> Result<bool> {
        let form = self.form;
        if i == j {
            self.note = "the form feeds itself";
            self.instance(&|n| number(form, n))?;
            return Ok(true);
        }
        self.note = "two of the form in turn, each reading what the other wrote";
        self.instance(&|n| number(form, n))?;
        let (from, to) = (number(form, i), number(form, j));
        self.instance(&|n| match n {
            n if n == i => to,
            n if n == j => from,
            n => number(form, n),
        })?;
        Ok(true)
    }

    /// From any register to any other, with connectors that keep the operand's value.
    fn registers(&mut self, input: End, output: End) -> Result<bool> {
        let form = self.form;
        self.instance(&|n| number(form, n))?;
        if input == output {
            self.note =
                "the form feeds itself, by the longest of the ways through its own registers";
            return Ok(true);
        }
        let value = self.out(output)?;
        match input {
            End::Operand(i, class) if class.family() != Family::Gpr => {
                self.bytes.extend(to(class.family(), number(form, i), value)?);
                self.connectors.push(Connector::Half(class.family()));
            }
            _ => {
                self.alu(Code::And_rm64_r64, value, ZERO)?;
                let back = self.out(input)?;
                self.alu(Code::Or_rm64_r64, back, value)?;
            }
        }
        Ok(true)
    }

    /// From the base register of the address.
    fn address(&mut self, output: End) -> Result<bool> {
        let form = self.form;
        if is_address(form.code) {
            // The result is the next base: no value that could fault is touched.
            let End::Operand(j, _) = output else { return Ok(false) };
            let numbers = [number(form, j), 11];
            self.note = "two of the form in turn, each adding to what the other computed";
            self.instance(&|_| numbers[0])?;
            let mut made = Address { base: Register::R8, index: ZERO, displacement: 8 };
            made.base = Class::Gpr64.register(numbers[0]);
            let second = form.instruction(|_, class| class.register(numbers[1]), made)?;
            self.bytes.extend(form.encode(&second)?);
            self.instances += 1;
            return Ok(true);
        }
        self.instance(&|n| number(form, n))?;
        let value = self.out(output)?;
        self.alu(Code::And_rm64_r64, value, ZERO)?;
        self.alu(Code::Add_rm64_r64, BASE, value)?;
        Ok(true)
    }

    /// From the index of the address.
    fn index(&mut self, output: End) -> Result<bool> {
        let form = self.form;
        if is_address(form.code) {
            let End::Operand(j, _) = output else { return Ok(false) };
            let own = number(form, j);
            self.note = "the form feeds itself";
            let index = Class::Gpr64.register(own);
            let address = Address { base: ZERO, index, displacement: 8 };
            let made = form.instruction(|_, class| class.register(own), address)?;
            self.bytes.extend(form.encode(&made)?);
            self.instances += 1;
            return Ok(true);
        }
        self.index = INDEX;
        self.instance(&|n| number(form, n))?;
        let value = self.out(output)?;
        self.alu(Code::And_rm64_r64, value, ZERO)?;
        self.alu(Code::Add_rm64_r64, INDEX, value)?;
        Ok(true)
    }

    fn address_to_flags(&mut self, bits: u32) -> Result<bool> {
        let form = self.form;
        self.instance(&|n| number(form, n))?;
        let value = self.out(End::Flags(bits))?;
        self.alu(Code::And_rm64_r64, value, ZERO)?;
        self.alu(Code::Add_rm64_r64, BASE, value)?;
        Ok(true)
    }

    /// Four with registers of their own: only the flags go from one to the next.
    fn flags(&mut self) -> Result<bool> {
        self.note = "four of the form, each with a destination of its own";
        for own in 0..4 {
            self.instance(&|n| if n == 0 { 8 + own } else { 12 })?;
        }
        Ok(true)
    }

    fn read_flags(&mut self, output: End) -> Result<bool> {
        let form = self.form;
        self.instance(&|n| number(form, n))?;
        let value = self.out(output)?;
        // Not `test`: on Golden Cove the flags of logic take up to a cycle more than those of `cmp`.
        self.alu(Code::Cmp_rm64_r64, value, SAME)?;
        Ok(true)
    }

    fn write_flags(&mut self, input: End, bits: u32) -> Result<bool> {
        let form = self.form;
        self.instance(&|n| number(form, n))?;
        match input {
            End::Operand(i, class) if class.family() != Family::Gpr => {
                let value = self.out(End::Flags(bits))?;
                self.bytes.extend(to(class.family(), number(form, i), value)?);
                self.connectors.push(Connector::Half(class.family()));
            }
            _ => {
                // Either way it holds what it held.
                let operand = self.out(input)?;
                self.alu(move_if(bits), operand, SAME)?;
            }
        }
        Ok(true)
    }

    /// Stored, and loaded into the same register.
    fn round_trip(&mut self, i: usize, class: Class) -> Result<bool> {
        let form = self.form;
        self.note = "stored and loaded again, both together";
        self.instance(&|n| number(form, n))?;
        let bytes = form.code.op_code().memory_size().size();
        let Some(code) = load(class, bytes, form.code.op_code().encoding()) else {
            return Ok(false);
        };
        let wide = if matches!(class, Class::Gpr8 | Class::Gpr16) { Class::Gpr32 } else { class };
        let place = MemoryOperand::with_base_displ(BASE, HALF);
        let register = wide.register(number(form, i));
        let failed = |e: iced_x86::IcedError| tma::Error::failed("no such load").because(e);
        self.bytes.extend(encoded(&Instruction::with2(code, register, place).map_err(failed)?)?);
        Ok(true)
    }

    fn done(self) -> Result<Chain> {
        let block = Block::decode(&self.bytes)?;
        let code: Vec<&str> = block.instructions.iter().map(|inst| inst.text.as_str()).collect();
        let mut text = code.join("; ");
        if !self.note.is_empty() {
            text += &format!(" ({})", self.note);
        }
        Ok(Chain {
            instructions: block.instructions.len(),
            instances: self.instances,
            connectors: self.connectors,
            bytes: self.bytes,
            text,
        })
    }
}

/// A conditional move that waits for one of these flags.
fn move_if(bits: u32) -> Code {
    [
        (RflagsBits::CF, Code::Cmovb_r64_rm64),
        (RflagsBits::ZF, Code::Cmove_r64_rm64),
        (RflagsBits::SF, Code::Cmovs_r64_rm64),
        (RflagsBits::OF, Code::Cmovo_r64_rm64),
    ]
    .into_iter()
    .find(|(flag, _)| bits & flag != 0)
    .map_or(Code::Cmovp_r64_rm64, |(_, code)| code)
}

/// The load of as many bytes into a register of a class, in the encoding of its neighbours.
fn load(class: Class, bytes: usize, encoding: EncodingKind) -> Option<Code> {
    let legacy = encoding == EncodingKind::Legacy;
    Some(match (class, bytes) {
        (Class::Gpr8, 1) => Code::Movzx_r32_rm8,
        (Class::Gpr16, 2) => Code::Movzx_r32_rm16,
        (Class::Gpr32, 4) => Code::Mov_r32_rm32,
        (Class::Gpr64, 8) => Code::Mov_r64_rm64,
        (Class::Mmx, 8) => Code::Movq_mm_mmm64,
        (Class::Xmm, 4) if legacy => Code::Movss_xmm_xmmm32,
        (Class::Xmm, 4) => Code::VEX_Vmovd_xmm_rm32,
        (Class::Xmm, 8) if legacy => Code::Movq_xmm_xmmm64,
        (Class::Xmm, 8) => Code::VEX_Vmovq_xmm_xmmm64,
        (Class::Xmm, 16) if legacy => Code::Movups_xmm_xmmm128,
        (Class::Xmm, 16) => Code::VEX_Vmovups_xmm_xmmm128,
        (Class::Ymm, 32) => Code::VEX_Vmovups_ymm_ymmm256,
        (Class::Zmm, 64) => Code::EVEX_Vmovups_zmm_k1z_zmmm512,
        (Class::Mask, 8) => Code::VEX_Kmovq_kr_km64,
        _ => return None,
    })
}
