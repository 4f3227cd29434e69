//! Why a live process cannot be stopped, changed or restored.

use nix::errno::Errno;
use std::{fmt, io};
use tma::{Cause, Error};

/// Why a live process cannot be stopped, changed or restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// This thread does not stop: its state (proc_pid_stat(5)).
    Runs(i32, char),
    /// It is stopped by a signal: its number.
    Stopped(i32),
    /// This process shares its memory, and is not traced.
    Shared(i32),
    /// None of its threads can make system calls.
    NoCalls {
        /// After its code was changed, not before.
        is_after: bool,
    },
    /// Some of its threads cannot be traced.
    Untraced(Cause<Error>),
    /// This thread cannot be traced.
    UntracedThread(i32, Errno),
    /// Threads are started faster than they are found.
    Threads,
    /// Its code still leads to our memory.
    Leads,
    /// Its memory cannot be opened.
    Unopened(Cause<io::Error>),
    /// Its memory cannot be searched for addresses of ours.
    Unseen(Cause<io::Error>),
    /// A part of its memory cannot be read in the search.
    Unread,
    /// It has too many addresses for the search.
    Addresses,
    /// It has more memory than the limit of the search, in MiB.
    Memory(u64),
    /// The registers of a thread cannot be read.
    Registers(Errno),
    /// A thread is executing our memory.
    Inside,
    /// The return address of a thread that waits in the kernel is unknown.
    Waits,
    /// The word at this address is an address in our memory.
    Held(u64),
    /// This number of ranges could not be unmapped.
    Mapped(usize),
    /// This number of ranges mapped for unchanged code could not be unmapped.
    Unremoved(usize),
    /// No thread could unmap the ranges mapped for unchanged code.
    NoneRemoved,
}

impl Obstacle {
    /// Whether it is unlikely to end soon.
    pub fn lasts(&self) -> bool {
        !matches!(
            self,
            Self::Runs(..)
                | Self::Shared(_)
                | Self::NoCalls { .. }
                | Self::Registers(_)
                | Self::Inside
                | Self::Waits
                | Self::Held(_)
        )
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs(tid, state) => {
                write!(f, "thread {tid} of it does not stop (state {state})")
            }
            Self::Stopped(pid) => {
                write!(f, "it is stopped by a signal; kill -CONT {pid} continues it")
            }
            Self::Shared(other) => write!(f, "process {other} has the same memory, and runs on"),
            Self::NoCalls { is_after: false } => {
                f.write_str("none of its threads is where it can make system calls")
            }
            Self::NoCalls { is_after: true } => {
                f.write_str("none of its threads can make system calls")
            }
            Self::Untraced(error) => error.fmt(f),
            Self::UntracedThread(tid, errno) => write!(f, "thread {tid}: {}", errno.desc()),
            Self::Threads => f.write_str("it starts threads faster than they are found"),
            Self::Leads => f.write_str("its code still leads there"),
            Self::Unopened(error) => write!(f, "its memory cannot be opened: {error}"),
            Self::Unseen(error) => write!(f, "its memory cannot be looked at: {error}"),
            Self::Unread => f.write_str("a part of its memory cannot be read"),
            Self::Addresses => {
                f.write_str("it has too many addresses to look whether it comes back there")
            }
            Self::Memory(most) => {
                write!(f, "it has more than {most} MiB that may have saved where it comes back")
            }
            Self::Registers(errno) => f.write_str(errno.desc()),
            Self::Inside => f.write_str("a thread is in it"),
            Self::Waits => f.write_str("where a thread of it waits is not known"),
            Self::Held(at) => write!(f, "what was interrupted there may come back, by {at:#x}"),
            Self::Mapped(left) => write!(f, "{left} ranges could not be unmapped"),
            Self::Unremoved(left) => write!(f, "{left} mappings of ours remain in it"),
            Self::NoneRemoved => f.write_str(
                "what was mapped for its probes remains: none of its threads could take it away",
            ),
        }
    }
}

impl std::error::Error for Obstacle {}
