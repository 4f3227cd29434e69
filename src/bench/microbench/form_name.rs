//! Names of forms.

use super::form::{Form, Memory, is_address};
use super::operand::Operand;
use isa::latency::Mask;
use isa::names;

impl Form {
    /// The name by mnemonic and operands: `ADD_GPR64i64_IMMi8`. Several encodings may have it.
    pub fn name(&self) -> String {
        let mut name = if self.lock { "LOCK_".to_owned() } else { String::new() };
        name += &names::name(self.code.mnemonic()).to_uppercase();
        for (i, operand) in self.operands().into_iter().enumerate() {
            name.push('_');
            name += &match operand {
                Operand::Memory if is_address(self.code) => self.address_name(),
                Operand::Memory if self.is_indexed() => operand.name(self.code) + "bisd",
                operand => operand.name(self.code),
            };
            if i == 0 {
                name += self.mask_name();
            }
        }
        name
    }

    fn mask_name(&self) -> &'static str {
        match self.mask {
            Mask::None => "",
            Mask::Merging => "k",
            Mask::Zeroing => "kz",
        }
    }

    fn address_name(&self) -> String {
        match self.memory {
            Memory::None | Memory::Based => "ADDRbd".to_owned(),
            Memory::Indexed(1) => "ADDRbi".to_owned(),
            Memory::Indexed(_) => "ADDRbis".to_owned(),
            Memory::Full(1) => "ADDRbid".to_owned(),
            Memory::Full(_) => "ADDRbisd".to_owned(),
        }
    }

    /// The name by iced-x86's encoding: `Add_rm64_imm8:reg`, `:mem`, `:lock`; without a suffix where the
    /// encoding has one form.
    pub fn encoding_name(&self) -> String {
        let name = names::name(self.code);
        let choice = self.code.op_code().op_kinds().iter().any(|k| Operand::is_choice(*k));
        let mut name = match (self.memory, self.lock) {
            (_, true) => name + ":lock",
            (memory, _) if is_address(self.code) && memory != Memory::Based => {
                format!("{name}:{}", self.address_name())
            }
            (Memory::None, _) if choice => name + ":reg",
            (_, _) if choice => name + ":mem",
            _ => name,
        };
        let index = if self.is_indexed() { "bisd" } else { "" };
        for suffix in [index, self.mask_name()].into_iter().filter(|part| !part.is_empty()) {
            name = name + "+" + suffix;
        }
        name
    }
}
