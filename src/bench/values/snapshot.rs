//! Registers and memory of a running program as initial values, and reasons why a loop of several blocks has no
//! path that stands for it.

use isa::code::Block;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tma::{Cause, Error};

/// Bounds of a path are those of the loop where this share of the iterations takes it.
const NEARLY_ALL: f64 = 0.95;

/// A program's registers and memory at the entry of a block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Address of the block's first instruction in its file (p_vaddr).
    pub address: u64,
    /// The address in the process.
    pub running_at: u64,
    /// Times that the program had entered the block, this one included.
    pub entry: u64,
    /// Length of the block in bytes.
    pub length: usize,
    /// The code of the loop around it, or of the block: p_vaddr and bytes.
    pub code: Vec<(u64, Vec<u8>)>,
    /// The part of it that the followed iterations executed, up to the first with a call.
    pub executed: Vec<(u64, Vec<u8>)>,
    /// Whether the whole loop is measured, and the block is only the first of it.
    pub whole: bool,
    /// The path of most iterations of the whole loop, or why it is not known.
    pub path: Option<Result<LoopPath, NoPath>>,
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
    /// Pages that are only near accessed ones.
    pub nearby: BTreeSet<u64>,
    /// Iterations that were followed instruction by instruction: their memory is known.
    pub stepped: u64,
    /// Iterations followed before the first that calls a function or jumps to a computed address, if one does.
    pub before_call: Option<u64>,
    /// Whether the first of them is not the first of an execution of the loop.
    pub is_inside: bool,
    /// Cache lines that the followed iterations accessed, where that is known.
    pub touched_lines: Option<u64>,
    /// Most of them at the same offset within a page.
    pub same_set: Option<u64>,
    /// Base of the fs segment.
    pub fs_base: u64,
    /// Base of the gs segment.
    pub gs_base: u64,
    /// Entries of the block before its loop ended, the first included, if the loop was followed to its end.
    pub trips: Option<u64>,
    /// General-purpose registers where it left.
    pub left_with: Option<[u64; 16]>,
    /// Where it left to (p_vaddr), if it was followed there.
    pub left_to: Option<u64>,
    /// Trips that it has at least, if it was not followed to its end.
    pub at_least: u64,
    /// If the loop did not end within the followed iterations, or one of them has a call: their number (before the
    /// call), and the general-purpose registers after them.
    pub followed_to: Option<(u64, [u64; 16])>,
    /// Further executions of the loop.
    pub others: Vec<Self>,
}

impl Snapshot {
    /// Whether these are the values of `block`, not of a part or a variant of it.
    pub fn is_of(&self, block: &Block) -> bool {
        let bytes = &block.bytes;
        let starts = self.code.iter().find_map(|(start, code)| {
            let from = usize::try_from(self.address.checked_sub(*start)?).ok()?;
            code.get(from..)
        });
        // A final call or return is not part of the block that is measured.
        self.length == bytes.len() && starts.is_none_or(|code| code.starts_with(bytes))
    }

    /// Whether they are of a loop of several blocks, of which `block` is the first.
    pub fn is_whole_at(&self, block: &Block) -> bool {
        self.whole && self.is_of(block)
    }

    /// The path that nearly all iterations of the whole loop take: bounds and verdict are those of this
    /// path.
    ///
    /// # Errors
    /// Why there is none.
    pub fn main_path(&self) -> Result<&LoopPath, NoPath> {
        let path = self.path.as_ref().ok_or(NoPath::Unknown)?.as_ref().map_err(NoPath::clone)?;
        if path.share < NEARLY_ALL {
            return Err(NoPath::Several(self.paths, path.share));
        }
        Ok(path)
    }
}

/// A path through a loop of several blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopPath {
    /// Address (p_vaddr), bytes and text of each instruction.
    pub instructions: Vec<(u64, Vec<u8>, String)>,
    /// The instructions without jumps, as one block at the start of the loop.
    pub body: Vec<u8>,
    /// Share of the iterations that take it.
    pub share: f64,
}

/// Why a loop of several blocks has no path that stands for it.
#[derive(Debug, Clone, PartialEq)]
pub enum NoPath {
    /// It was not looked for.
    Unknown,
    /// Its code cannot be decoded.
    Undecodable(Cause<Error>),
    /// No iteration was followed from its beginning to its end.
    NoIteration,
    /// Its data cannot be addressed from where the loop begins.
    FarData,
    /// It has no other instructions than jumps.
    OnlyJumps,
    /// Iterations take several paths: how many, and the share of the most frequent one.
    Several(usize, f64),
}

impl fmt::Display for NoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "its path is not known",
            Self::Undecodable(error) => return error.fmt(f),
            Self::NoIteration => "no whole iteration was followed",
            Self::FarData => "its data are too far away",
            Self::OnlyJumps => "it has only jumps",
            Self::Several(paths, share) => {
                return write!(
                    f,
                    "its iterations take {paths} paths, the most frequent one {:.0} % of them",
                    100.0 * share
                );
            }
        })
    }
}

impl From<Error> for NoPath {
    fn from(error: Error) -> Self {
        Self::Undecodable(error.into())
    }
}
