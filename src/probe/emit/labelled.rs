//! Instructions with jumps among them.

use iced_x86::Instruction;

/// Instructions with labels, which are addresses that no code has.
#[derive(Default)]
pub(super) struct Labelled {
    pub instructions: Vec<Instruction>,
    labels: u64,
    /// The label of the next instruction.
    next: u64,
}

impl Labelled {
    /// Adds an instruction without its old address: jumps to it go to the patch, not to its copy.
    pub fn add(&mut self, mut instruction: Instruction) {
        instruction.set_ip(std::mem::take(&mut self.next));
        self.instructions.push(instruction);
    }

    /// Adds new instructions.
    pub fn extend(&mut self, all: impl IntoIterator<Item = Instruction>) {
        all.into_iter().for_each(|one| self.add(one));
    }

    /// Creates a label, to be placed by [`Self::mark`].
    pub fn label(&mut self) -> u64 {
        self.labels += 1;
        self.labels
    }

    /// Places a label at the next instruction.
    pub fn mark(&mut self, label: u64) {
        self.next = label;
    }
}
