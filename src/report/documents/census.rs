//! The unmodelled instructions of a batch of blocks, counted.

use iced_x86::Mnemonic;
use isa::deps::{Analysis, Code};
use isa::names::small;
use std::collections::BTreeMap;

/// Why an integer result is unknown whose instruction's effects are complete.
const UNKNOWN: &str = "its integer result is not computed";

/// Instructions with incomplete effects, and those whose integer results are not computed.
#[derive(Debug, Clone, Default)]
pub struct Census {
    instructions: usize,
    counts: BTreeMap<(String, &'static str), usize>,
}

impl Census {
    /// Adds a block.
    pub fn add(&mut self, code: &Code, analysis: &Analysis) {
        self.instructions += code.instructions.len();
        for (number, reason) in analysis.unmodelled(code) {
            self.count(code, number, reason);
        }
        for number in &analysis.memory.opaque {
            if code.effects[*number].unmodelled.is_none() {
                self.count(code, *number, UNKNOWN);
            }
        }
    }

    fn count(&mut self, code: &Code, number: usize, reason: &'static str) {
        let instruction = &code.instructions[number];
        let mut name = match instruction.mnemonic() {
            Mnemonic::INVALID => String::new(),
            mnemonic => small(mnemonic),
        };
        if instruction.has_rep_prefix() || instruction.has_repne_prefix() {
            name.insert_str(0, "rep ");
        }
        *self.counts.entry((name, reason)).or_default() += 1;
    }

    /// Instructions of all blocks.
    pub fn instructions(&self) -> usize {
        self.instructions
    }

    /// Instruction, reason and number, the most frequent first.
    pub fn counts(&self) -> Vec<(&str, &'static str, usize)> {
        let mut all: Vec<_> = self.counts.iter().collect();
        all.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        all.into_iter().map(|((name, reason), count)| (name.as_str(), *reason, *count)).collect()
    }
}
