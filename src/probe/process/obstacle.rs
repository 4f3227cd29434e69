//! What is in the way of stopping or changing a live process, or of leaving it as it was.

use nix::errno::Errno;
use std::{fmt, io};
use tma::{Cause, Error};

/// What is in the way of stopping or changing a live process, or of leaving it as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// This thread does not stop; its state (proc_pid_stat(5)).
    Runs(i32, char),
    /// It is stopped by a signal: its number.
    Stopped(i32),
    /// This process has the same memory, and is not traced.
    Shared(i32),
    /// None of its threads can make system calls: before its code is changed, or after.
    NoCalls {
        /// It is after.
        is_after: bool,
    },
    /// Threads of it cannot be traced.
    Untraced(Cause<Error>),
    /// The same of this thread.
    UntracedThread(i32, Errno),
    /// Threads are started faster than they are found.
    Threads,
    /// Its code still leads to memory of ours.
    Leads,
    /// Its memory cannot be opened.
    Unopened(Cause<io::Error>),
    /// Whether something in its memory leads to that of ours cannot be seen.
    Unseen(Cause<io::Error>),
    /// A part of its memory cannot be read for that.
    Unread,
    /// It has too many addresses for that.
    Addresses,
    /// It has more memory than so many MiB for that.
    Memory(u64),
    /// The registers of a thread cannot be read.
    Registers(Errno),
    /// A thread executes memory of ours.
    Inside,
    /// Where a thread comes back to that waits in the kernel is not known.
    Waits,
    /// The word at this address leads there.
    Held(u64),
    /// So many ranges of memory could not be unmapped.
    Mapped(usize),
    /// So many of those that were mapped before its code was to be changed could not be.
    Left(usize),
    /// The same, as no thread could make the system call.
    LeftAll,
}

impl Obstacle {
    /// Whether it will be no better soon.
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
            Self::Left(left) => write!(f, "{left} mappings of ours remain in it"),
            Self::LeftAll => f.write_str(
                "what was mapped for its probes remains: none of its threads could take it away",
            ),
        }
    }
}

impl std::error::Error for Obstacle {}
