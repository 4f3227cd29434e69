//! Registers that a form uses, and why it may not be measured.

use super::form::{Form, Memory};
use iced_x86::{InstructionInfoFactory, OpAccess, OpKind, Register, UsedRegister};
use isa::code::Block;
use isa::names::name;
use tma::Result;

impl Form {
    /// Its use of operands and implicit registers.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn usage(&self) -> Result<Usage> {
        let sample = self.sample()?;
        let mut facts = InstructionInfoFactory::new();
        let info = facts.info(&sample);
        let explicit: Vec<Register> = (0..sample.op_count())
            .filter(|i| sample.op_kind(*i) == OpKind::Register)
            .map(|i| sample.op_register(i))
            .filter(|r| r.full_register().number() >= 8 || r.is_mm() || r.is_k())
            .chain([sample.memory_base(), sample.memory_index(), sample.op_mask()])
            .map(Register::full_register)
            .collect();
        let implicit = |used: &&UsedRegister| !explicit.contains(&used.register().full_register());
        Ok(Usage {
            access: (0..sample.op_count()).map(|i| info.op_access(i)).collect(),
            implicit: info.used_registers().iter().filter(implicit).copied().collect(),
        })
    }

    /// Why it is not measured although its operands are supported: it must not run, it changes its own
    /// address registers, or it cannot be encoded.
    pub fn refusal(&self) -> Option<String> {
        let bytes = match self.sample().and_then(|sample| self.encode(&sample)) {
            Ok(bytes) => bytes,
            Err(error) => return Some(error.to_string()),
        };
        let block = match Block::decode(&bytes) {
            Ok(block) => block,
            Err(error) => return Some(error.to_string()),
        };
        let [inst] = block.instructions.as_slice() else {
            return Some("its encoding decodes to several instructions".to_owned());
        };
        if inst.decoded.code() != self.code {
            return Some(format!("its encoding decodes to {}", name(inst.decoded.code())));
        }
        if let Some(refusal) = block.refusal() {
            return Some(refusal.reason);
        }
        if inst.decoded.is_stack_instruction() && !self.is_push_or_pop() {
            return Some("changes the stack pointer".to_owned());
        }
        if inst.decoded.is_string_instruction() {
            return Some("changes its address registers".to_owned());
        }
        if self.code.op_code().require_op_mask_register() {
            return Some("clears the mask register that it needs".to_owned());
        }
        let implicit = self.usage().map(|usage| usage.implicit).unwrap_or_default();
        let stack = |r: &UsedRegister| r.register().is_st();
        if implicit.iter().any(stack) {
            return Some("operates on the x87 stack".to_owned());
        }
        (!inst.memory.is_empty() && self.memory == Memory::None && !self.is_push_or_pop())
            .then(|| "accesses memory implicitly".to_owned())
    }
}

/// An instruction's use of operands.
#[derive(Debug, Clone)]
pub struct Usage {
    /// One for each operand.
    pub access: Vec<OpAccess>,
    /// Implicit and fixed registers.
    pub implicit: Vec<UsedRegister>,
}
