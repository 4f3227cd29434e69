//! Counts of functions, the result of a run, and reasons why a function, a block or the entries of a loop have no
//! count.

use crate::facts::NoCode;
use crate::patch::{Trampolines, Unprobed};
use crate::plan::Kind;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Result of a run.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Counts of each function, in the order of the request, or why there are none.
    pub functions: Vec<Result<FunctionCounts, Uncounted>>,
    /// From the start of the command to its end.
    pub wall: Duration,
    /// How the command ended.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted the run.
    pub interrupted: Option<i32>,
    /// It was interrupted during the analysis, before any count.
    pub unplanned: bool,
    /// The code could not be restored; a note says why.
    pub remains: bool,
    /// Most probes in one process.
    pub probes: usize,
    /// Processes that the command started; not known of a live process.
    pub processes: u32,
    /// Original code of the trampolines of the first images.
    pub trampolines: Vec<Trampolines>,
    /// Files with code in the processes at their ends; empty for a live process.
    pub files: BTreeSet<PathBuf>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
}

/// The counts of one function.
#[derive(Debug, Clone, Default)]
pub struct FunctionCounts {
    /// Its blocks, in order of address.
    pub blocks: Vec<BlockCount>,
    /// Its edges between blocks.
    pub edges: Vec<EdgeCount>,
    /// Its conditional jumps.
    pub branches: Vec<BranchCount>,
    /// Its loops, outer ones first.
    pub loops: Vec<LoopCount>,
    /// Checked sums of flow conservation.
    pub checked: usize,
    /// Sums that do not agree, and counts below 0.
    pub contradictions: Vec<String>,
    /// Permitted difference of sums: threads may have ended inside a block.
    pub slack: u64,
}

/// The count of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockCount {
    /// First address (p_vaddr).
    pub start: u64,
    /// Address after its last instruction.
    pub end: u64,
    /// Number of its instructions.
    pub instructions: usize,
    /// How often it was entered, or why that is not known.
    pub count: Result<u64, Uncounted>,
    /// Kind of its probe; `None` if derived from its neighbours.
    pub kind: Option<Kind>,
}

/// How often control passed from one block to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeCount {
    /// First address of the block that is left.
    pub from: u64,
    /// First address of the block that is entered.
    pub to: u64,
    /// Its count, if it follows from those of the blocks.
    pub count: Option<u64>,
}

/// How often a conditional jump was taken, where that follows from the counts of the blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchCount {
    /// Its address.
    pub address: u64,
    /// How often it jumped.
    pub taken: Option<u64>,
    /// How often it did not.
    pub not_taken: Option<u64>,
}

/// How often a loop was entered and iterated, where that follows from the counts of the blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopCount {
    /// First address of its first block.
    pub head: u64,
    /// How often it was entered from outside.
    pub entries: Option<u64>,
    /// How often its first block was entered.
    pub iterations: Option<u64>,
    /// Why one of them is not known.
    pub reason: Option<Uncounted>,
}

/// Why there is no count of a function, a block or the entries of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uncounted {
    /// Its file has no code that can be probed.
    File(PathBuf, NoCode),
    /// It is not probed.
    Unprobed(Unprobed),
    /// The analysis was interrupted, before anything was counted.
    Interrupted,
    /// A block's count would be derived from counts that contradict one another.
    Contradicted,
    /// As [`Self::Contradicted`] in a window, where counts may differ.
    Differing,
    /// Its counter cannot be read.
    Counter,
    /// A signal handler may have left the block before it was counted.
    Signalled {
        /// The signal, if it has a name.
        signal: Option<Signal>,
        /// The interrupted instruction.
        at: u64,
        /// Number of signals.
        times: u64,
        /// The block's count is derived.
        is_derived: bool,
    },
    /// The jumps back from this latch are unknown; a block without a count.
    Back(u64, Option<u64>),
    /// The counts of the loop's function contradict one another.
    Function,
    /// The first block of a loop has no count.
    Head(Box<Uncounted>),
    /// Only an upper bound of a loop's entries is known.
    AtMost {
        /// Upper bound of the entries.
        most: u64,
        /// Number of iterations.
        iterations: u64,
        /// Why there is no count.
        why: Box<Uncounted>,
    },
    /// More jumps back than iterations: both numbers.
    Iterations(u64, u64),
}

impl fmt::Display for Uncounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, why) => write!(f, "{}: {why}", path.display()),
            Self::Unprobed(why) => why.fmt(f),
            Self::Interrupted => write!(f, "not counted: {}", Unprobed::Interrupted),
            Self::Contradicted => f.write_str("the counts of its function contradict one another"),
            Self::Differing => f.write_str("it would follow from counts that differ"),
            Self::Counter => f.write_str("its counter cannot be read"),
            Self::Signalled { signal, at, times, is_derived } => {
                let name = signal.map_or("a signal", Signal::as_str);
                let what = match is_derived {
                    true => "the counts that it follows from may differ",
                    false => "its probe is behind",
                };
                write!(f, "{name} at {at:#x}, {times} times: {what}")
            }
            Self::Back(from, none) => {
                write!(f, "jumps back from {from:#x} do not follow from the counts of the blocks")?;
                none.map_or(Ok(()), |at| write!(f, ": {at:#x} has none"))
            }
            Self::Function => f.write_str("the counts of its function differ"),
            Self::Head(why) => write!(f, "its first block has no count: {why}"),
            Self::AtMost { most, iterations, why } => {
                let each = *iterations as f64 / *most as f64;
                write!(f, "{why}; at most {most} entries, so {each:.1} iterations each or more")
            }
            Self::Iterations(back, all) => {
                write!(f, "{back} jumps back, but {all} iterations were counted")
            }
        }
    }
}

impl std::error::Error for Uncounted {}

impl<T: Into<Unprobed>> From<T> for Uncounted {
    fn from(why: T) -> Self {
        Self::Unprobed(why.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::NoPlace;
    use nix::errno::Errno;

    /// Documents have had these words: scripts may look for them.
    #[test]
    fn reasons_with_others_inside_read_as_one() {
        let place = Unprobed::from(NoPlace::MayLead(0x101f));
        for (why, text) in [
            (
                Uncounted::Head(Box::new(place.into())),
                "its first block has no count: no jump fits before it in its block: something may lead to 0x101f, in the \
                 bytes that one would replace",
            ),
            (
                Unprobed::Unremoved(Unprobed::Unmappable(Errno::EPERM).into(), 2).into(),
                "the process may not map memory: Operation not permitted; 2 mappings of ours remain in it",
            ),
            (
                Uncounted::File("/a".into(), NoCode::Script("/bin/sh".to_owned())),
                "/a: it is a script, run by /bin/sh",
            ),
            (
                Uncounted::Back(0x40, Some(0x50)),
                "jumps back from 0x40 do not follow from the counts of the blocks: 0x50 has none",
            ),
            (Uncounted::Interrupted, "not counted: interrupted while the code was analysed"),
        ] {
            assert_eq!(why.to_string(), text);
        }
    }
}
