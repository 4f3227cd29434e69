//! The layout of an event's samples: the fields of `perf_event_attr` that determine it.
//!
//! Numbers are those of the kernel's `include/uapi/linux/perf_event.h`.

use serde::{Deserialize, Serialize};

/// The parts of `perf_event_attr` that a decoder needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleFormat {
    /// `PERF_SAMPLE_*`: which fields a sample has.
    pub sample_type: u64,
    /// `PERF_FORMAT_*`: what a READ field holds.
    pub read_format: u64,
    /// `PERF_SAMPLE_BRANCH_*`: what a BRANCH_STACK field holds.
    pub branch_sample_type: u64,
    /// User registers of a REGS_USER field, a bit each.
    pub regs_user: u64,
    /// Registers of a REGS_INTR field, a bit each.
    pub regs_intr: u64,
    /// Bytes of the user stack that a STACK_USER field holds.
    #[serde(skip_serializing_if = "is_zero")]
    pub stack_user: u32,
    /// Whether other records than samples end in the sample's ids.
    pub sample_id_all: bool,
    /// Skip call chains and copies of stacks when decoding: they are most of a sample's size.
    #[serde(skip)]
    pub leave_chains: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// `PERF_SAMPLE_*`.
pub mod field {
    /// Instruction pointer.
    pub const IP: u64 = 1 << 0;
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// Time stamp in nanoseconds.
    pub const TIME: u64 = 1 << 2;
    /// Data address.
    pub const ADDR: u64 = 1 << 3;
    /// Counts.
    pub const READ: u64 = 1 << 4;
    /// Call chain.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// Id of the event (of its group's leader).
    pub const ID: u64 = 1 << 6;
    /// CPU.
    pub const CPU: u64 = 1 << 7;
    /// Events since the last sample.
    pub const PERIOD: u64 = 1 << 8;
    /// Id of the event itself.
    pub const STREAM_ID: u64 = 1 << 9;
    /// Raw data of a tracepoint or of IBS.
    pub const RAW: u64 = 1 << 10;
    /// Last branch records.
    pub const BRANCH_STACK: u64 = 1 << 11;
    /// User registers.
    pub const REGS_USER: u64 = 1 << 12;
    /// A copy of the user stack.
    pub const STACK_USER: u64 = 1 << 13;
    /// Weight: latency.
    pub const WEIGHT: u64 = 1 << 14;
    /// Where the data came from.
    pub const DATA_SRC: u64 = 1 << 15;
    /// Id at a fixed place, the first of all.
    pub const IDENTIFIER: u64 = 1 << 16;
    /// Transaction flags.
    pub const TRANSACTION: u64 = 1 << 17;
    /// Registers at the interrupt.
    pub const REGS_INTR: u64 = 1 << 18;
    /// Physical address.
    pub const PHYS_ADDR: u64 = 1 << 19;
    /// Output of a hardware trace.
    pub const AUX: u64 = 1 << 20;
    /// Control group.
    pub const CGROUP: u64 = 1 << 21;
    /// Page size of the data address.
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    /// Page size of the instruction pointer.
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    /// Weight in three parts; instead of WEIGHT.
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// `PERF_FORMAT_*`: what a READ field holds.
pub mod read {
    /// Nanoseconds the event was enabled.
    pub const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    /// Nanoseconds it was counting.
    pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    /// Id with each value.
    pub const ID: u64 = 1 << 2;
    /// Values of the whole group.
    pub const GROUP: u64 = 1 << 3;
    /// Lost samples with each value.
    pub const LOST: u64 = 1 << 4;
}

/// `PERF_SAMPLE_BRANCH_*`: which branches a BRANCH_STACK field holds, and its layout.
pub mod branch {
    /// Taken in user mode.
    pub const USER: u64 = 1 << 0;
    /// Branches of every kind.
    pub const ANY: u64 = 1 << 3;
    /// Calls that have not returned, from the hardware's stack of callers.
    pub const CALL_STACK: u64 = 1 << 11;
    /// The index of the hardware's newest record precedes the entries.
    pub const HW_INDEX: u64 = 1 << 17;
    /// A word of event counts per entry follows the entries.
    pub const COUNTERS: u64 = 1 << 19;
}

/// `PERF_RECORD_MISC_*`: bits of a record's header.
pub mod misc {
    /// Mask of the mode the processor was in.
    pub const CPUMODE_MASK: u16 = 7;
    /// Kernel mode.
    pub const KERNEL: u16 = 1;
    /// User mode.
    pub const USER: u16 = 2;
    /// MMAP: not executable. COMM: by `exec`.
    pub const MMAP_DATA: u16 = 1 << 13;
    /// See [`MMAP_DATA`].
    pub const COMM_EXEC: u16 = 1 << 13;
    /// SAMPLE: the instruction pointer has no skid. MMAP2: has a build-id.
    pub const EXACT_IP: u16 = 1 << 14;
    /// See [`EXACT_IP`].
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// LOST_SAMPLES: dropped by a BPF filter on purpose. Build-id records: the length of the id is given.
    pub const EXTENDED: u16 = 1 << 15;
}
