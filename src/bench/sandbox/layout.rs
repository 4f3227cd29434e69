//! Layout of the shared region, which the runner sees as writable memory and the worker, at a random
//! address, as separate executable code and writable data.
//!
//! Offsets are from the start of the region. The assembly of `runtime` uses the same constants.

/// The worker's own code.
pub const RUNTIME: usize = 0;
/// Code generated for the block at hand.
pub const CODE: usize = 0x1000;
/// Its room.
pub const CODE_SIZE: usize = CONTEXT_PAGE - CODE;
/// First byte that the worker may write; everything below is executable and read-only there.
pub const CONTEXT_PAGE: usize = 0x40000;
/// Data of the generated code. Away from the offset 0x600 in a page, where the initial constant points, so that
/// the two share no L1 set.
pub const CONTEXT: usize = CONTEXT_PAGE + 0xc00;
/// The lines to restore between runs: the address of each, and where in the region its content is.
pub const LINES: usize = 0x41000;
/// Capacity of the list.
pub const LINES_MAX: usize = 1024;
/// Base and index registers of an address trace.
pub const TRACE: usize = 0x45000;
/// Bytes of room for it.
pub const TRACE_SIZE: usize = 0x1f000;
/// The worker's stack, growing down from here.
pub const STACK_TOP: usize = 0x66000;
/// The stack that signals are delivered on.
pub const SIGNAL_STACK: usize = 0x66000;
/// Its size; the largest signal frame with all vector and tile state is below 16 KiB.
pub const SIGNAL_STACK_SIZE: usize = 0x10000;
/// Commands and results.
pub const MAIL: usize = 0x76000;
/// Which segment to run when, and with which dither.
pub const SCHEDULE: usize = 0x77000;
/// Capacity of schedule and result, in entries.
pub const SCHEDULE_MAX: usize = 2048;
/// Ticks measured, one per schedule entry.
pub const TICKS: usize = 0x79000;
/// Addresses of the pages mapped for the block.
pub const PAGES: usize = 0x7b000;
/// Most pages that a block may touch.
pub const PAGES_MAX: usize = 512;
/// Number of these pages.
pub const IMAGE_COUNT: usize = 0x7ca00;
/// A line of the pattern.
pub const PATTERN_LINE: usize = 0x7ca40;
/// Initial values of the vector registers, 64 bytes each.
pub const VECTORS: usize = 0x7c000;
/// Addresses of the pages with initial content of their own; the others are filled with the pattern.
pub const IMAGE_PAGES: usize = 0x7d000;
/// Addresses of pages that are known before a run, in the order in which they are mapped.
pub const KNOWN_PAGES: usize = 0x7e000;
/// The physical pages of the block.
pub const PHYSICAL: usize = 0x80000;
/// Maximum number of physical pages.
pub const PHYSICAL_MAX: usize = 512;
/// The content of [`IMAGE_PAGES`], in their order.
pub const IMAGE: usize = PHYSICAL + PHYSICAL_MAX * PAGE;
/// Bytes that every block needs: code, data, and as many physical pages as most use. The rest is allocated on
/// first touch, which most workers never do.
pub const USUAL: usize = PHYSICAL + 64 * PAGE;
/// Size of the whole region.
pub const SIZE: usize = IMAGE + PHYSICAL_MAX * PAGE;
/// Bytes in a page.
pub const PAGE: usize = 4096;

/// Target of a block's `[rip+x]`: at least this far after the start of the region, plus the low bits of x.
/// Unmapped until the block touches it. The distance is random, so that `lea rax,[rip]` does not reveal the
/// harness.
pub const RIP_AREA: usize = 0x100_0000;
/// Largest random addition to it.
pub const RIP_AREA_SPREAD: u64 = 0x1e00_0000;
/// Low bits of the displacement that are used.
pub const RIP_MASK: i64 = 0xf_ffff;

/// Base of `fs` in the worker.
pub const FS_BASE: u64 = 0x0b00_0000_0000;
/// Base of `gs` in the worker.
pub const GS_BASE: u64 = 0x0c00_0000_0000;
/// First address above user space.
pub const USER_TOP: u64 = 0x7fff_ffff_f000;

/// Fields of the context, as offsets from [`CONTEXT`].
pub mod context {
    /// Time stamp at the start of the timed part.
    pub const START: usize = 0x08;
    /// Time stamp at its end.
    pub const END: usize = 0x10;
    /// Repetitions left in this phase.
    pub const LEFT: usize = 0x18;
    /// 1 while warming up, 0 while timed.
    pub const PHASE: usize = 0x1c;
    /// Repetitions of the timed part.
    pub const REPEAT: usize = 0x20;
    /// Iterations of the delay before the timed part.
    pub const DITHER: usize = 0x24;
    /// Index into the schedule.
    pub const INDEX: usize = 0x28;
    /// Number of lines to restore.
    pub const LINE_COUNT: usize = 0x2c;
    /// Initial MXCSR.
    pub const MXCSR: usize = 0x30;
    /// MXCSR at the end of the last run.
    pub const MXCSR_END: usize = 0x34;
    /// Fill pattern of memory.
    pub const PATTERN: usize = 0x38;
    /// Initial values of the general-purpose registers, in encoding order.
    pub const REGISTERS: usize = 0x40;
    /// x87 status word at the end of the last run.
    pub const X87_END: usize = 0xc0;
    /// Initial value of every MMX register.
    pub const VECTOR: usize = 0x100;
    /// Iterations left of a counted region.
    pub const COUNT: usize = 0x140;
    /// General-purpose registers at the end of a run, in encoding order.
    pub const END_REGISTERS: usize = 0x180;
}

/// Fields of the mailbox, as offsets from [`MAIL`].
pub mod mail {
    /// [`IDLE`] or [`COMMAND`]; both sides wait on it.
    pub const STATE: usize = 0;
    /// Command: [`RUN`] or [`UNMAP_AND_RUN`].
    pub const OPERATION: usize = 4;
    /// Entries in the schedule.
    pub const COUNT: usize = 8;
    /// Result: [`DONE`], [`FAULT`], [`MAP_REFUSED`], [`TOO_MANY_PAGES`].
    pub const STATUS: usize = 12;
    /// Pages mapped so far.
    pub const PAGE_COUNT: usize = 16;
    /// Most pages that may be mapped.
    pub const PAGE_LIMIT: usize = 20;
    /// Number of physical pages in use.
    pub const PHYSICAL_COUNT: usize = 24;
    /// Lowest address that may be mapped.
    pub const LOWEST: usize = 32;
    /// Fill pattern of the physical pages.
    pub const PATTERN: usize = 40;
    /// Number of pages known before the run ([`super::KNOWN_PAGES`]).
    pub const KNOWN_COUNT: usize = 28;
    /// Whether foreign memory was left mapped (0: none).
    pub const LEFT_MAPPED: usize = 48;
    /// Result of installing the filter.
    pub const FILTER_RESULT: usize = 52;
    /// The fault: signal, code (u32), then address, rip, error, trap, cr2 (u64).
    pub const FAULT_RECORD: usize = 64;
    /// Results of the worker's restraints, one number each (`restraints`): [`HELD`], [`READS_OTHERWISE`] or the
    /// kernel's negative error.
    pub const RESTRAINTS: usize = 128;
    /// Segments, 32 bytes each: entry (u64), repeat (u32), the rest unused.
    pub const SEGMENTS: usize = 256;
    /// Capacity in segments.
    pub const SEGMENTS_MAX: usize = 32;
    /// The filter's header as the kernel takes it.
    pub const FILTER: usize = 0x600;
    /// The filter's instructions.
    pub const FILTER_CODE: usize = 0x610;
    /// Capacity in instructions of the filter.
    #[cfg(test)]
    pub const FILTER_MAX: usize = 120;
    /// Ranges to unmap: start and length, up to a length of 0.
    pub const RANGES: usize = 0xa00;
    /// Capacity in ranges, the final one included.
    pub const RANGES_MAX: usize = 96;

    /// A restraint that holds.
    pub const HELD: i32 = 1;
    /// One that was set without an error and reads back otherwise.
    pub const READS_OTHERWISE: i32 = 2;
    /// Nothing to do, or done.
    pub const IDLE: u32 = 0;
    /// A command waits.
    pub const COMMAND: u32 = 1;
    /// Not yet set up.
    pub const STARTING: u32 = 2;
    /// Run the schedule.
    pub const RUN: u32 = 0;
    /// Unmap the pages of the block before, map those that are known, then run the schedule.
    pub const UNMAP_AND_RUN: u32 = 1;
    /// All entries ran.
    pub const DONE: u32 = 0;
    /// An exception that mapping a page does not cure.
    pub const FAULT: u32 = 1;
    /// The kernel refused to map the page.
    pub const MAP_REFUSED: u32 = 2;
    /// The block touches more pages than it may.
    pub const TOO_MANY_PAGES: u32 = 3;
}
