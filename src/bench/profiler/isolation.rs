//! What no block may leave to the next one: a worker that it may have changed, and what was learned from it.
//!
//! A block that finds the harness in the worker's memory can take the worker over and falsify what it
//! reports. It then falsifies its own result only, because that worker runs no other block.

use super::Profiler;
use crate::clock::Sentinel;
use isa::code::Block;

/// Blocks that share a worker at most, though none of them can learn an address. Starting one takes as long as
/// about ten quick blocks.
const SHARE_A_WORKER: u32 = 128;

impl Profiler {
    /// After a block: the next one gets a fresh worker if this one `failed`, could learn where the harness
    /// is, or was run with a program's own memory. Of contention, nothing is remembered from such a worker.
    pub(super) fn separate(&mut self, block: &Block, failed: bool, before: Sentinel) {
        let untrusted = failed || block.can_learn_addresses() || self.options.snapshot.is_some();
        if untrusted {
            self.runner.sentinel = before;
        }
        if untrusted || self.runner.blocks >= SHARE_A_WORKER {
            self.runner.discard();
        }
        // Also where it was replaced during the block.
        self.runner.blocks = self.runner.blocks.max(1);
    }
}
