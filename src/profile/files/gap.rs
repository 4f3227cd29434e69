//! Reasons why the code or symbols of a module are unavailable, and why what is here of it cannot be read.

use isa::elf::NoLayout;
use isa::flow::NoImage;
use std::{fmt, io};
use tma::Cause;

/// Why the code or symbols of a module are unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// There is no such file: its path.
    NoFile(String),
    /// The file has changed since the recording: build-ids recorded and found.
    Changed(String, String),
    /// Two recorded files have its path, and another one is here.
    OtherFile,
    /// Another kernel runs here: releases recorded and running.
    OtherKernel(String, String),
    /// The file here is for another processor: the recorded architecture.
    OtherProcessor(String),
    /// It cannot be read.
    Unreadable(Unreadable),
    /// It has no code at the address.
    NoCode,
    /// No function of it is known at the address.
    NoFunction,
    /// No module is mapped at the address.
    NoMapping,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile(path) => write!(f, "{path} is not here"),
            Self::Changed(recorded, found) => {
                let (recorded, found) = (shortened(recorded), shortened(found));
                write!(f, "it has changed since: build-id {recorded} recorded, {found} found")
            }
            Self::OtherFile => {
                f.write_str("two recorded files have its path, and another one is here")
            }
            Self::OtherKernel(recorded, found) => {
                write!(f, "it is kernel {recorded}; {found} runs here")
            }
            Self::OtherProcessor(recorded) => {
                write!(f, "the file here is for another processor than the recorded {recorded}")
            }
            Self::Unreadable(reason) => write!(f, "it cannot be read: {reason}"),
            Self::NoCode => f.write_str("it has no code there"),
            Self::NoFunction => f.write_str("no function is known at this address"),
            Self::NoMapping => f.write_str("no mapping is known at this address"),
        }
    }
}

/// The first digits of a build-id, enough to compare by eye.
pub(super) fn shortened(id: &str) -> String {
    let head: String = id.chars().take(12).collect();
    if head.len() < id.len() { head + "\u{2026}" } else { head }
}

/// Why what is here of a module cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The system refuses it, or the disk fails.
    File(Cause<io::Error>),
    /// The map of compiled code at this path is refused, or the disk fails.
    Map(String, Cause<io::Error>),
    /// It is no ELF file, or a damaged one.
    Elf(NoLayout),
    /// Its memory is not known.
    Image(NoImage),
    /// It has more than this many GiB.
    Gigabytes(u64),
    /// It has more than this many MiB.
    Megabytes(u64),
    /// It ends within the header of a jitdump.
    Short,
    /// A jitdump of a big-endian machine.
    BigEndian,
    /// It is no jitdump.
    NoDump,
    /// Addresses of the kernel are hidden.
    Hidden,
    /// The running kernel has not loaded it.
    NotLoaded,
    /// The recording does not say where the kernel was.
    NoReference,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File(error) => return error.fmt(f),
            Self::Map(path, error) => return write!(f, "{path}: {error}"),
            Self::Elf(why) => return why.fmt(f),
            Self::Image(why) => return why.fmt(f),
            Self::Gigabytes(most) => return write!(f, "it has more than {most} GiB"),
            Self::Megabytes(most) => return write!(f, "it has more than {most} MiB"),
            Self::Short => "it is shorter than the header of a jitdump",
            Self::BigEndian => "it is of a big-endian machine",
            Self::NoDump => "it is not a jitdump",
            Self::Hidden => {
                "the addresses in /proc/kallsyms are hidden; root, or kernel.kptr_restrict=0, shows them"
            }
            Self::NotLoaded => "it is not loaded in the running kernel",
            Self::NoReference => "the recording lacks the kernel's address in memory",
        })
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::File(error.into())
    }
}

impl From<object::Error> for Unreadable {
    fn from(error: object::Error) -> Self {
        Self::Elf(error.into())
    }
}
