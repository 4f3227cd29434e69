//! Registers and memory of a running program, as initial values.

use std::collections::{BTreeMap, BTreeSet};

/// What a program had in registers and memory when it entered a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Address of the block's first instruction in its file (p_vaddr).
    pub address: u64,
    /// The same in the process.
    pub running_at: u64,
    /// Length of the block in bytes.
    pub length: usize,
    /// The code of the loop around it, or of the block: p_vaddr and bytes.
    pub code: Vec<(u64, Vec<u8>)>,
    /// Whether the loop as a whole is asked for, and the block is only the first of it.
    pub whole: bool,
    /// Distinct paths through the loop that were seen.
    pub paths: usize,
    /// General-purpose registers in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
    pub registers: [u64; 16],
    /// rflags.
    pub flags: u64,
    /// MXCSR.
    pub mxcsr: u32,
    /// zmm0 to zmm31, or as many as there are; bytes that the processor has not are 0.
    pub vectors: Vec<[u8; 64]>,
    /// Mask registers k0 to k7; empty without AVX-512.
    pub masks: Vec<u64>,
    /// Pages that the block accesses, by address: their contents at the entry.
    pub pages: BTreeMap<u64, Box<[u8; 4096]>>,
    /// Those of them that are only near the accessed ones.
    pub nearby: BTreeSet<u64>,
    /// Iterations that were followed instruction by instruction: their memory is known.
    pub stepped: u64,
    /// Base of the fs segment.
    pub fs_base: u64,
    /// Base of the gs segment.
    pub gs_base: u64,
    /// Times that the block was entered again before its loop ended, the entry included, if the loop
    /// was followed to its end.
    pub trips: Option<u64>,
    /// General-purpose registers where it left.
    pub left_with: Option<[u64; 16]>,
    /// Trips that it has at least, if it was not followed to its end.
    pub at_least: u64,
    /// Where it did not leave within the iterations that were followed: their number, and the general-purpose
    /// registers after them.
    pub followed_to: Option<(u64, [u64; 16])>,
    /// Further executions of the loop.
    pub others: Vec<Self>,
}
