//! The live flags of a function's blocks.

use super::block::{Block, Exit};
use super::flags;
use super::function::{Function, near_target};
use super::module::Module;
use iced_x86::FlowControl;

/// Most bytes of another function that are analysed.
const MOST_BYTES: u64 = 128;

impl Function {
    /// Finds the live flags of all blocks.
    pub(super) fn find_live(&mut self, module: &Module) {
        let writes = self.blocks.iter().flat_map(|b| &b.instructions).any(flags::changes);
        let out: Vec<u32> = self.blocks.iter().map(|b| self.live_out(module, b, writes)).collect();
        // Flags that a block reads first, and those after it that are live before it.
        let through = |block: &Block, after| {
            block.instructions.iter().rev().fold(after, |live, i| flags::before(i, live))
        };
        let read: Vec<u32> = self.blocks.iter().map(|b| through(b, 0)).collect();
        let passed = self.blocks.iter().map(|b| through(b, flags::ARITHMETIC));
        let passed: Vec<u32> = passed.collect();
        let mut live_in = vec![0; self.blocks.len()];
        let after = |block: &Block, live_in: &[u32], out: u32| {
            block.successors.iter().fold(out, |all, next| all | live_in[*next])
        };
        let mut changed = true;
        while changed {
            changed = false;
            for (number, block) in self.blocks.iter().enumerate().rev() {
                let now = after(block, &live_in, out[number]) & passed[number] | read[number];
                changed |= live_in[number] != now;
                live_in[number] = now;
            }
        }
        for (block, out) in self.blocks.iter_mut().zip(out) {
            let mut now = after(block, &live_in, out);
            block.live = vec![0; block.instructions.len()];
            for (live, instruction) in block.live.iter_mut().zip(&block.instructions).rev() {
                now = flags::before(instruction, now);
                *live = now;
            }
        }
    }

    /// Flags live after a block due to code outside of the function.
    fn live_out(&self, module: &Module, block: &Block, writes: bool) -> u32 {
        let Some(last) = block.instructions.last() else { return flags::ARITHMETIC };
        let beyond = |address: u64| {
            let most = (1..=MOST_BYTES).rev().find_map(|n| module.code(address..address + n));
            flags::read_first(most.unwrap_or_default(), address)
        };
        let target = near_target(last).filter(|t| !self.range.contains(t));
        match last.flow_control() {
            // The caller may know that a function changes no flag.
            FlowControl::Return if writes => 0,
            FlowControl::Return => flags::ARITHMETIC,
            FlowControl::Call => target.map_or(0, beyond),
            FlowControl::IndirectCall => 0,
            // A table may also lead to a part of the function elsewhere.
            FlowControl::IndirectBranch
                if block.exit == Exit::Unknown
                    || (block.exit == Exit::Leaves && !block.successors.is_empty()) =>
            {
                flags::ARITHMETIC
            }
            FlowControl::Exception => 0,
            _ if block.exit == Exit::Unknown => flags::ARITHMETIC,
            _ => match (target, last.next_ip()) {
                (Some(target), _) => beyond(target),
                (None, next) if next == self.range.end && block.successors.is_empty() => {
                    beyond(next)
                }
                _ => 0,
            },
        }
    }
}
