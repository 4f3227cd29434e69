//! Reasons why a file or function has no code that can be probed.

use isa::flow::NoImage;
use nix::errno::Errno;
use object::elf::{ELFCLASS64, ELFDATA2LSB, EM_X86_64, ET_CORE, ET_REL};
use std::{fmt, io};
use tma::Cause;

/// Why a file or function has no code that can be probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCode {
    /// It cannot be read.
    Unread(Cause<io::Error>),
    /// A script, with its first line, which names the interpreter.
    Script(String),
    /// It is no ELF file.
    NoElf,
    /// An ELF file that cannot be parsed.
    Damaged(object::Error),
    /// A program of 32 bits.
    Narrow,
    /// A big-endian program.
    BigEndian,
    /// For another processor: its number (ELF header, `e_machine`).
    Processor(u16),
    /// An object file.
    Unlinked,
    /// A core dump.
    CoreDump,
    /// Its memory image is unknown.
    Image(NoImage),
    /// It has neither symbols nor an unwind table.
    NoFunctions,
    /// It may write its own code.
    WritableCode,
    /// The loader writes its code.
    TextRelocations,
    /// It has restartable sequences.
    Restartable,
    /// Its unwind table cannot be read.
    UnwindTable,
    /// A section of it cannot be read.
    Section(object::Error),
    /// Its notes cannot be read.
    Notes(object::Error),
    /// The place of an exception table is not in the file.
    IndirectExceptions,
    /// The exception table at this address cannot be read.
    Exceptions(u64),
    /// The map of machine blocks is damaged, or of an unknown version.
    MachineBlocks,
    /// The length of a function is unknown or too long.
    Length,
    /// No function has a known length.
    Lengths,
    /// A function is in no executable segment.
    Outside,
    /// The first function is in no executable segment.
    FirstOutside,
}

impl NoCode {
    /// Whether this user lacks the permission to read it.
    pub fn is_denied(&self) -> bool {
        let number = |error: &Cause<io::Error>| error.raw_os_error();
        matches!(self, Self::Unread(error) if number(error) == Some(Errno::EACCES as i32))
    }
}

impl fmt::Display for NoCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unread(error) => return error.fmt(f),
            Self::Script(line) => return write!(f, "it is a script, run by {line}"),
            Self::Damaged(error) => return write!(f, "it is not an ELF file: {error}"),
            Self::Processor(number) => {
                return write!(f, "it is for another processor (e_machine {number})");
            }
            Self::Image(why) => return why.fmt(f),
            Self::Section(error) => return error.fmt(f),
            Self::Notes(error) => return write!(f, "its notes: {error}"),
            Self::Exceptions(at) => {
                return write!(f, "the exception table at {at:#x} cannot be read");
            }
            Self::NoElf => "it is not an ELF file",
            Self::Narrow => "it is a 32-bit program",
            Self::BigEndian => "it is a big-endian program",
            Self::Unlinked => "it is an object file, not linked",
            Self::CoreDump => "it is a core dump",
            Self::NoFunctions => "it has neither symbols nor an unwind table",
            Self::WritableCode => "its code is writable: it may be written at run time",
            Self::TextRelocations => "the loader writes its code (text relocations)",
            Self::Restartable => {
                "it has restartable sequences, which may not leave their code (rseq(2))"
            }
            Self::UnwindTable => "its unwind table cannot be read",
            Self::MachineBlocks => {
                "its section .llvm_bb_addr_map is damaged, or of a newer version than 5"
            }
            Self::IndirectExceptions => "an exception table is indirect",
            Self::Length => "its length is not known",
            Self::Lengths => "no function with a known length",
            Self::Outside => "it is in no executable segment",
            Self::FirstOutside => "its code is in no executable segment",
        })
    }
}

impl std::error::Error for NoCode {}

impl From<io::Error> for NoCode {
    fn from(error: io::Error) -> Self {
        Self::Unread(error.into())
    }
}

impl From<NoImage> for NoCode {
    fn from(why: NoImage) -> Self {
        Self::Image(why)
    }
}

/// Why a file has no code that can be probed, from its first bytes.
pub(super) fn foreign(content: &[u8]) -> Option<NoCode> {
    if let Some(rest) = content.strip_prefix(b"#!") {
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(&line[..line.len().min(100)]).trim().to_owned();
        return Some(NoCode::Script(line));
    }
    let header = match content.strip_prefix(b"\x7fELF") {
        None => return Some(NoCode::NoElf),
        Some(_) => content.get(..20)?,
    };
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    // ELF gABI, ELF header: class, byte order, e_type, e_machine.
    match (header[4], header[5], half(16), half(18)) {
        (class, ..) if class != ELFCLASS64.0 => Some(NoCode::Narrow),
        (_, order, ..) if order != ELFDATA2LSB.0 => Some(NoCode::BigEndian),
        (.., machine) if machine != EM_X86_64.0 => Some(NoCode::Processor(machine)),
        (_, _, kind, _) if kind == ET_REL.0 => Some(NoCode::Unlinked),
        (_, _, kind, _) if kind == ET_CORE.0 => Some(NoCode::CoreDump),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_by_their_first_bytes() {
        // ELF gABI, figure 4-3: class 1 is 32-bit; e_machine 183 is AArch64, 62 is x86-64; e_type 2
        // an executable, 1 an object file.
        let elf = |class: u8, machine: u8, kind: u8| {
            let mut all = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
            all.resize(64, 0);
            (all[16], all[18]) = (kind, machine);
            foreign(&all)
        };
        assert_eq!(elf(2, 62, 2), None);
        assert_eq!(elf(1, 3, 2), Some(NoCode::Narrow));
        assert_eq!(elf(2, 183, 2), Some(NoCode::Processor(183)));
        assert_eq!(elf(2, 62, 1), Some(NoCode::Unlinked));
        let script = foreign(b"#!/usr/bin/env python3\nprint()\n").unwrap();
        assert_eq!(script, NoCode::Script("/usr/bin/env python3".to_owned()));
        assert_eq!(script.to_string(), "it is a script, run by /usr/bin/env python3");
        assert!(foreign(b"\x7fELF").is_none());
        assert_eq!(foreign(b"text"), Some(NoCode::NoElf));
    }
}
