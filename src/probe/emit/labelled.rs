//! Instructions with jumps among them.

use iced_x86::Instruction;

/// Instructions, of which some can be jumped to: a label is an address that no code has.
#[derive(Default)]
pub(super) struct Labelled {
    pub instructions: Vec<Instruction>,
    labels: u64,
    /// The label of the next instruction.
    next: u64,
}

impl Labelled {
    /// Adds an instruction, without its old address: a jump to it goes by the patch, not by its copy.
    pub fn add(&mut self, mut instruction: Instruction) {
        instruction.set_ip(std::mem::take(&mut self.next));
        self.instructions.push(instruction);
    }

    /// Adds instructions that have no old address.
    pub fn extend(&mut self, all: impl IntoIterator<Item = Instruction>) {
        all.into_iter().for_each(|one| self.add(one));
    }

    /// A label, which is not yet anywhere.
    pub fn label(&mut self) -> u64 {
        self.labels += 1;
        self.labels
    }

    /// Puts a label to the next instruction.
    pub fn mark(&mut self, label: u64) {
        self.next = label;
    }
}
