//! What is to be seen of single instructions.

use crate::facts::Call;

/// What is observed of an instruction, each time it is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// Whether a conditional jump is taken.
    Outcome,
    /// Where an indirect jump or call goes.
    Target,
    /// Where a load loads from.
    Address,
    /// What a load of so many bytes loads.
    Value {
        /// 1, 2, 4 or 8.
        width: u32,
    },
    /// What a load takes between fences, in ticks, of one in 1 to 2^`bits` executions, at random; in the
    /// upper half what a load from the first cache took right before.
    Latency {
        /// Bytes that it loads.
        width: u32,
        /// 1 to 14.
        bits: u8,
    },
    /// At the entry of a function: the bytes of the stack pointer in reverse, and in the lower 16 bits, which
    /// are 0 then, those of the return address.
    Entered,
    /// What general registers hold before the instruction, of as many executions as a budget allows that
    /// is filled up now and then.
    Registers {
        /// Bit n: the register with number n in encodings.
        mask: u16,
    },
    /// At the entry of a function that gives memory: each of its calls, in a log of its own. Of several wishes of an
    /// instruction it is the first.
    Allocated {
        /// Which function it is.
        call: Call,
    },
    /// Each execution of a marker, in a log of its own.
    Marked {
        /// The number (in encodings) of the register with its argument.
        argument: Option<u8>,
        /// Where the number of the process is: an address in it.
        process: u64,
    },
}

impl What {
    /// How much code it needs, in multiples of that of a plain record.
    pub fn parts(self) -> usize {
        match self {
            What::Latency { .. } => 3,
            // 122 bytes, and at most 28 for each of them.
            What::Registers { mask } => 1 + (mask.count_ones() as usize).div_ceil(4),
            What::Allocated { .. } => 5,
            What::Marked { .. } => 3,
            _ => 1,
        }
    }

    /// Whether it is seen before the instruction, which need not be executed in the trampoline.
    pub(super) fn is_before(self) -> bool {
        matches!(
            self,
            What::Registers { .. } | What::Entered | What::Allocated { .. } | What::Marked { .. }
        )
    }
}

/// An instruction, and what to observe of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wish {
    /// Its address (p_vaddr).
    pub at: u64,
    /// What is observed.
    pub what: What,
}
