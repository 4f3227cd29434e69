//! Reasons why a function, a file in a process, or an instruction is not probed.

use crate::facts::NoCode;
use crate::plan::NoPlace;
use crate::process::{MOST_APART, MOST_CALLS};
use nix::errno::Errno;
use std::{fmt, io};
use tma::Cause;

/// Why a function, a file in a process, or an instruction is not probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unprobed {
    /// It has no code that can be probed.
    Code(NoCode),
    /// There is no place for a probe.
    Place(NoPlace),
    /// The function overlaps another wanted one.
    Overlaps,
    /// The analysis was interrupted.
    Cancelled,
    /// The analysis of a live process was interrupted before any probe.
    Interrupted,
    /// No process has mapped its file.
    NotMapped,
    /// Its file was mapped after the tracing of system calls ended.
    Late,
    /// The code in memory differs from that of the file.
    Differs {
        /// The process has counters of an earlier run.
        is_left: bool,
    },
    /// No addresses near its code are free.
    NoAddresses,
    /// Its trampolines exceed the reserved room.
    TooLong,
    /// It has no jump.
    NoJump,
    /// A jump would lie outside of its function.
    Outside,
    /// It is unknown whether its system calls are filtered.
    Status(Cause<io::Error>),
    /// Its system calls are filtered: one of ours could end it.
    Filtered,
    /// It has too many mappings: their number, and the limit.
    Mappings(usize, usize),
    /// It cannot map memory.
    Unmappable(Errno),
    /// The planned addresses are taken.
    Occupied,
    /// It cannot open shared memory.
    Unshared(Errno),
    /// The shared memory cannot be opened by this process.
    UnopenedShared(Cause<io::Error>),
    /// The descriptor of shared memory cannot be copied.
    NoFiles(Cause<io::Error>),
    /// No memory was mapped for its trampolines.
    Unmapped,
    /// The memory of the process cannot be opened.
    Unopened(Cause<io::Error>),
    /// Our memory in it cannot be written.
    Unwritten(Cause<io::Error>),
    /// Its code cannot be written.
    UnwrittenCode(Cause<io::Error>),
    /// A jump does not lead to its trampoline.
    Astray,
    /// Another reason, and the number of our mappings that could not be removed.
    Unremoved(Box<Unprobed>, usize),
    /// Its counts cannot be made atomic or separate.
    Prefixes(Cause<io::Error>),
    /// The trampolines in a forked process cannot be told its number.
    Number(Cause<io::Error>),
    /// The memory of a forked process cannot be opened.
    Child(Cause<io::Error>),
    /// The program uses the base of gs, which separates counts.
    GsBase,
    /// The base of gs of a thread cannot be set.
    Apart(Errno),
    /// The program has changed its code.
    Changed,
    /// The program has made its code writable.
    Writable,
    /// The program has unmapped it.
    Closed,
    /// Its counters cannot be read.
    Counters(Cause<io::Error>),
}

impl fmt::Display for Unprobed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Code(why) => return why.fmt(f),
            Self::Place(why) => return why.fmt(f),
            Self::Unremoved(why, left) => return write!(f, "{why}; {left} mappings of ours remain in it"),
            Self::Late => {
                return write!(
                    f,
                    "it was mapped after {MOST_CALLS} system calls, or {MOST_APART} after the file before"
                );
            }
            Self::Mappings(now, most) => {
                return write!(f, "it has {now} mappings; {most} are possible (vm.max_map_count)");
            }
            Self::Status(e) => return write!(f, "its status: {e}"),
            Self::Unmappable(e) => return write!(f, "the process may not map memory: {}", e.desc()),
            Self::Unshared(e) => {
                return write!(f, "the process may not open a file of shared memory: {}", e.desc());
            }
            Self::UnopenedShared(e) => {
                return write!(f, "its shared memory cannot be opened: {e}");
            }
            Self::NoFiles(e) => return write!(f, "no more files: {e}"),
            Self::Unopened(e) => return write!(f, "its memory cannot be opened: {e}"),
            Self::Unwritten(e) => return write!(f, "its memory cannot be written: {e}"),
            Self::UnwrittenCode(e) => return write!(f, "its code cannot be written: {e}"),
            Self::Prefixes(e) => {
                return write!(f, "its counts cannot be made those of several threads: {e}");
            }
            Self::Number(e) => return write!(f, "a child cannot be told apart: {e}"),
            Self::Child(e) => return write!(f, "a child's memory cannot be opened: {e}"),
            Self::Apart(e) => {
                return write!(f, "the counts of a thread cannot be kept apart: {}", e.desc());
            }
            Self::Counters(e) => return write!(f, "its counters cannot be read: {e}"),
            Self::Overlaps => "it overlaps another function",
            Self::Cancelled => "it was not analysed to the end",
            Self::Interrupted => "interrupted while the code was analysed",
            Self::NotMapped => "its file was not mapped",
            Self::Differs { is_left: false } => "its code in memory differs from the file's",
            Self::Differs { is_left: true } => {
                "its code in memory differs from the file's; a tdtool that was killed may have left it so: restart the \
                 process"
            }
            Self::NoAddresses => "no free addresses within 2 GiB of its code",
            Self::TooLong => "its trampolines would be too long",
            Self::NoJump => "no probe fits into it",
            Self::Outside => "a jump would lie outside of its function",
            Self::Filtered => "its system calls are filtered (seccomp)",
            Self::Occupied => "the addresses chosen are not free",
            Self::Unmapped => "nothing was mapped",
            Self::Astray => "a jump does not lead to its trampoline",
            Self::GsBase => "the program uses the base of gs",
            Self::Changed => "the program has changed its own code",
            Self::Writable => {
                "the program has made its own code writable, and may have read or changed it"
            }
            Self::Closed => "it was unmapped before the end (dlclose(3))",
        })
    }
}

impl std::error::Error for Unprobed {}

impl From<NoCode> for Unprobed {
    fn from(why: NoCode) -> Self {
        Self::Code(why)
    }
}

impl From<NoPlace> for Unprobed {
    fn from(why: NoPlace) -> Self {
        Self::Place(why)
    }
}
