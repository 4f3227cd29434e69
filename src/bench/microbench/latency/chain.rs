//! Builds dependency chains.

use super::connectors::{Connector, SCRATCH, encoded, from, load, move_if, product, to, two};
use super::endpoints::Endpoint;
use crate::microbench::form::{Address, Form, MASK, is_address};
use crate::microbench::operand::{Class, Family};
use crate::microbench::pools::{BASE, HALF};
use iced_x86::{Code, Instruction, MemoryOperand, Mnemonic, Register};
use isa::code::Block;
use tma::Result;

/// Always holds 0.
pub const ZERO: Register = Register::R13;
/// Holds the operands' initial value.
const SAME: Register = Register::R12;
/// Index register of a chain through the index; remains 0.
pub const INDEX: Register = Register::RSI;

/// One link, to be repeated.
#[derive(Debug, Clone)]
pub struct Chain {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Number of instructions.
    pub instructions: usize,
    /// Number of instances of the form.
    pub instances: usize,
    /// The other instructions in the dependency.
    pub connectors: Vec<Connector>,
    /// Assembly text, for the document.
    pub text: String,
}

/// A chain being built.
struct ChainBuilder {
    form: Form,
    bytes: Vec<u8>,
    instances: usize,
    connectors: Vec<Connector>,
    note: &'static str,
    index: Register,
    /// Ahead of each instance: overwrites the halves of the dividend that are not in the chain.
    dividend: Vec<u8>,
}

impl ChainBuilder {
    fn of(form: Form) -> Self {
        let (bytes, connectors) = (Vec::new(), Vec::new());
        let dividend = Vec::new();
        Self { form, bytes, instances: 0, connectors, note: "", index: ZERO, dividend }
    }

    /// Quotient and remainder both feed the next division: breaks the dependency not measured.
    fn divide_from(&mut self, input: &Endpoint) -> Result<()> {
        if !matches!(self.form.code.mnemonic(), Mnemonic::Div | Mnemonic::Idiv) {
            return Ok(());
        }
        if *input != Endpoint::Implicit(Register::RDX) {
            self.dividend.extend(two(Code::Xor_rm32_r32, Register::EDX, Register::EDX)?);
        }
        if *input != Endpoint::Implicit(Register::RAX) {
            self.dividend.extend(two(Code::Mov_rm64_r64, Register::RAX, SAME)?);
        }
        Ok(())
    }
}

/// A chain of the form and a multiplication, and one of the multiplication alone. A chain of the form
/// alone may be shorter (additions and moves eliminated at renaming) or longer (slots) than what the
/// form adds to a chain of others. `None` if no multiplication has its registers.
///
/// # Errors
/// It cannot be encoded.
pub fn after(form: Form, input: &Endpoint, output: &Endpoint) -> Result<Option<(Chain, Chain)>> {
    let Endpoint::Operand(j, to) = *output else { return Ok(None) };
    let (from, a) = match *input {
        Endpoint::Operand(i, from) => (from, number(form, i)),
        // The base that `lea` adds to.
        Endpoint::Address if is_address(form.code) => (Class::Gpr64, Register::R11.number() as u32),
        _ => return Ok(None),
    };
    if from.family() != to.family() {
        return Ok(None);
    }
    let built = |a: u32, b: u32| match to {
        Class::Gpr32 | Class::Gpr64 => {
            let (a, b) = (Class::Gpr64.register(a), Class::Gpr64.register(b));
            two(Code::Imul_r64_rm64, a, b).map(Some)
        }
        Class::Xmm | Class::Ymm | Class::Zmm => product(form, to, a, b).map(Some),
        _ => Ok(None),
    };
    let (Some(other), Some(alone)) = (built(a, number(form, j))?, built(a, a)?) else {
        return Ok(None);
    };
    let mut builder = ChainBuilder::of(form);
    builder.note = "after a multiplication, whose latency is subtracted";
    builder.instance(&|n| number(form, n))?;
    builder.bytes.extend(other);
    let whole = builder.build()?;
    let mut builder = ChainBuilder::of(form);
    builder.bytes = alone;
    Ok(Some((whole, builder.build()?)))
}

/// The chain from `input` to `output` and back; `None` if there is none.
///
/// # Errors
/// It cannot be encoded.
pub fn chain(form: Form, input: &Endpoint, output: &Endpoint) -> Result<Option<Chain>> {
    let mut builder = ChainBuilder::of(form);
    builder.divide_from(input)?;
    let there = match (*input, *output) {
        (Endpoint::Operand(i, a), Endpoint::Operand(j, b)) if a.family() == b.family() => {
            builder.same_family(i, j)?
        }
        (
            Endpoint::Operand(..) | Endpoint::Implicit(_),
            Endpoint::Operand(..) | Endpoint::Implicit(_),
        ) => builder.registers(*input, *output)?,
        (Endpoint::Address, Endpoint::Operand(..) | Endpoint::Implicit(_)) => {
            builder.address(*output)?
        }
        (Endpoint::Index, Endpoint::Operand(..) | Endpoint::Implicit(_)) => {
            builder.index(*output)?
        }
        (Endpoint::Address, Endpoint::Flags(bits)) => builder.address_to_flags(bits)?,
        (Endpoint::Flags(_), Endpoint::Flags(_)) => builder.flags()?,
        (Endpoint::Flags(_), Endpoint::Operand(_, class)) if class.family() == Family::Gpr => {
            builder.read_flags(*output)?
        }
        (Endpoint::Operand(..) | Endpoint::Implicit(_), Endpoint::Flags(bits)) => {
            builder.write_flags(*input, bits)?
        }
        (Endpoint::Operand(i, class), Endpoint::Memory) => builder.round_trip(i, class)?,
        (Endpoint::Memory, Endpoint::Memory) => {
            builder.note = "the form itself loads what it stored";
            builder.instance(&|i| number(form, i))?;
            true
        }
        _ => false,
    };
    if there { builder.build().map(Some) } else { Ok(None) }
}

/// The default register number of an operand.
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

impl ChainBuilder {
    fn instance(&mut self, number: &dyn Fn(usize) -> u32) -> Result<()> {
        let computed = is_address(self.form.code);
        let base = if computed { Register::R11 } else { BASE };
        let displacement = if computed { 8 } else { HALF };
        let address = Address { base, index: self.index, displacement };
        let built = self.form.instruction(|i, class| class.register(number(i)), address)?;
        self.bytes.extend(&self.dividend);
        self.bytes.extend(self.form.encode(&built)?);
        self.instances += 1;
        Ok(())
    }

    fn alu(&mut self, code: Code, a: Register, b: Register) -> Result<()> {
        self.bytes.extend(two(code, a, b)?);
        self.connectors.push(Connector::Alu);
        Ok(())
    }

    /// Copies the value at `endpoint` to a general-purpose register, and returns that.
    fn out(&mut self, endpoint: Endpoint) -> Result<Register> {
        match endpoint {
            Endpoint::Operand(i, class) if class.family() != Family::Gpr => {
                self.bytes.extend(from(class.family(), number(self.form, i), SCRATCH)?);
                self.connectors.push(Connector::Transfer(class.family()));
                Ok(SCRATCH)
            }
            Endpoint::Operand(i, _) => Ok(Class::Gpr64.register(number(self.form, i))),
            Endpoint::Implicit(register) => Ok(register),
            Endpoint::Flags(bits) => {
                self.alu(move_if(bits), SCRATCH, ZERO)?;
                Ok(SCRATCH)
            }
            Endpoint::Address | Endpoint::Index | Endpoint::Memory => Ok(BASE),
        }
    }

    /// Operands of one family: two instances that swap operands, or one that depends on itself.
    fn same_family(&mut self, i: usize, j: usize) -> Result<bool> {
        let form = self.form;
        if i == j {
            self.note = "each instance reads the previous result";
            self.instance(&|n| number(form, n))?;
            return Ok(true);
        }
        self.note = "two alternating instances, each reading the other's result";
        self.instance(&|n| number(form, n))?;
        let (from, to) = (number(form, i), number(form, j));
        self.instance(&|n| match n {
            n if n == i => to,
            n if n == j => from,
            n => number(form, n),
        })?;
        Ok(true)
    }

    /// Between registers of different families, with connectors that preserve the operand's value.
    fn registers(&mut self, input: Endpoint, output: Endpoint) -> Result<bool> {
        let form = self.form;
        self.instance(&|n| number(form, n))?;
        if input == output {
            self.note = "each instance reads the previous result, by the longest path through implicit registers";
            return Ok(true);
        }
        let value = self.out(output)?;
        match input {
            Endpoint::Operand(i, class) if class.family() != Family::Gpr => {
                self.bytes.extend(to(class.family(), number(form, i), value)?);
                self.connectors.push(Connector::Transfer(class.family()));
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
    fn address(&mut self, output: Endpoint) -> Result<bool> {
        let form = self.form;
        if is_address(form.code) {
            // The result is the next base; nothing is dereferenced.
            let Endpoint::Operand(j, _) = output else { return Ok(false) };
            let numbers = [number(form, j), 11];
            self.note = "two alternating instances, each adding to the other's result";
            self.instance(&|_| numbers[0])?;
            let mut built = Address { base: Register::R8, index: ZERO, displacement: 8 };
            built.base = Class::Gpr64.register(numbers[0]);
            let second = form.instruction(|_, class| class.register(numbers[1]), built)?;
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
    fn index(&mut self, output: Endpoint) -> Result<bool> {
        let form = self.form;
        if is_address(form.code) {
            let Endpoint::Operand(j, _) = output else { return Ok(false) };
            let own = number(form, j);
            self.note = "each instance reads the previous result";
            let index = Class::Gpr64.register(own);
            let address = Address { base: ZERO, index, displacement: 8 };
            let built = form.instruction(|_, class| class.register(own), address)?;
            self.bytes.extend(form.encode(&built)?);
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
        let value = self.out(Endpoint::Flags(bits))?;
        self.alu(Code::And_rm64_r64, value, ZERO)?;
        self.alu(Code::Add_rm64_r64, BASE, value)?;
        Ok(true)
    }

    /// Four instances with separate destinations, so that only flags carry the dependency.
    fn flags(&mut self) -> Result<bool> {
        self.note = "four instances with separate destinations";
        for own in 0..4 {
            self.instance(&|n| if n == 0 { 8 + own } else { 12 })?;
        }
        Ok(true)
    }

    fn read_flags(&mut self, output: Endpoint) -> Result<bool> {
        let form = self.form;
        self.instance(&|n| number(form, n))?;
        let value = self.out(output)?;
        // Not `test`: on Golden Cove the flags of logic take up to a cycle more than those of `cmp`.
        self.alu(Code::Cmp_rm64_r64, value, SAME)?;
        Ok(true)
    }

    fn write_flags(&mut self, input: Endpoint, bits: u32) -> Result<bool> {
        let form = self.form;
        self.instance(&|n| number(form, n))?;
        match input {
            Endpoint::Operand(i, class) if class.family() != Family::Gpr => {
                let value = self.out(Endpoint::Flags(bits))?;
                self.bytes.extend(to(class.family(), number(form, i), value)?);
                self.connectors.push(Connector::Transfer(class.family()));
            }
            _ => {
                // Both sources hold the same value.
                let operand = self.out(input)?;
                self.alu(move_if(bits), operand, SAME)?;
            }
        }
        Ok(true)
    }

    /// Stored, and loaded into the same register.
    fn round_trip(&mut self, i: usize, class: Class) -> Result<bool> {
        let form = self.form;
        self.note = "latency of the store and the reload together";
        self.instance(&|n| number(form, n))?;
        let bytes = form.code.op_code().memory_size().size();
        let Some(code) = load(class, bytes, form.code.op_code().encoding()) else {
            return Ok(false);
        };
        let wide = if matches!(class, Class::Gpr8 | Class::Gpr16) { Class::Gpr32 } else { class };
        let place = MemoryOperand::with_base_displ(BASE, HALF);
        let register = wide.register(number(form, i));
        let failed =
            |e: iced_x86::IcedError| tma::Error::failed("the load cannot be encoded").because(e);
        self.bytes.extend(encoded(&Instruction::with2(code, register, place).map_err(failed)?)?);
        Ok(true)
    }

    fn build(self) -> Result<Chain> {
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
