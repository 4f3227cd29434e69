//! Requests to observe single instructions, and those for the branches of a function.

use crate::facts::{Block, Call, Function};

/// What to observe at each execution of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// Whether a conditional jump is taken.
    Outcome,
    /// Target of an indirect jump or call.
    Target,
    /// Address of a load or store.
    Address,
    /// Value of a load.
    Value {
        /// Its bytes: 1, 2, 4 or 8.
        width: u32,
    },
    /// Ticks of a load between fences, at random one in 1 to 2^`bits` executions; in the upper half
    /// those of a load from the first cache right before.
    Latency {
        /// Its bytes.
        width: u32,
        /// 1 to 14.
        bits: u8,
    },
    /// At the entry of a function: the bytes of the stack pointer in reverse, and the lower 16 bits
    /// (0 then) of the return address.
    Entered,
    /// Values of general registers before the instruction, limited by a quota that is refilled.
    Registers {
        /// Bit n: the register with number n in encodings.
        mask: u16,
    },
    /// At the entry of an allocator: each call, in a log of its own. It must be the first request
    /// of an instruction.
    Allocated {
        /// Its signature.
        call: Call,
    },
    /// Each execution of a marker, in a log of its own.
    Marked {
        /// The number (in encodings) of the register with its argument.
        argument: Option<u8>,
        /// Address in the process of its number.
        process: u64,
    },
}

impl What {
    /// Size of its code, in sizes of that of a plain record.
    pub fn parts(self) -> usize {
        match self {
            What::Latency { .. } => 3,
            // 122 bytes, and at most 28 per register.
            What::Registers { mask } => 1 + (mask.count_ones() as usize).div_ceil(4),
            What::Allocated { .. } => 5,
            What::Marked { .. } => 3,
            _ => 1,
        }
    }

    /// Whether it is observed before the instruction, which need not be executed in the trampoline.
    pub(super) fn is_before(self) -> bool {
        matches!(
            self,
            What::Registers { .. } | What::Entered | What::Allocated { .. } | What::Marked { .. }
        )
    }
}

/// An instruction, and what to observe of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// Its address (p_vaddr).
    pub at: u64,
    /// The observation.
    pub what: What,
}

/// Requests for the branches of a function whose outcome or target may vary.
pub fn branches(function: &Function) -> Vec<Request> {
    let request = |block: &Block| {
        let last = block.instructions.last()?;
        let what = match last {
            i if i.is_jcc_short_or_near() => What::Outcome,
            i if i.is_jmp_near_indirect() || i.is_call_near_indirect() => What::Target,
            _ => return None,
        };
        Some(Request { at: last.ip(), what })
    };
    function.blocks.iter().filter(|block| block.is_reached).filter_map(request).collect()
}
