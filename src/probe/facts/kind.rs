//! What a file is that is no 64-bit program of this processor.

use nix::errno::Errno;
use object::elf::{ELFCLASS64, ELFDATA2LSB, EM_X86_64, ET_CORE, ET_REL};
use std::{fmt, io};

/// Why a file has no code that can be probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCode {
    /// A script, and the line that says what runs it.
    Script(String),
    /// This user may not read it; in words.
    Denied(String),
    /// Any other reason.
    Other(String),
}

impl fmt::Display for NoCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script(line) => write!(f, "it is a script, run by {line}"),
            Self::Denied(text) | Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<String> for NoCode {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl From<io::Error> for NoCode {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() == Some(Errno::EACCES as i32) {
            true => Self::Denied(error.to_string()),
            false => Self::Other(error.to_string()),
        }
    }
}

/// Why a file with this content has no code that can be probed: from its first bytes alone.
pub(super) fn foreign(content: &[u8]) -> Option<NoCode> {
    if let Some(rest) = content.strip_prefix(b"#!") {
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(&line[..line.len().min(100)]).trim().to_owned();
        return Some(NoCode::Script(line));
    }
    let header = match content.strip_prefix(b"\x7fELF") {
        None => return Some(NoCode::Other("it is not an ELF file".to_owned())),
        Some(_) => content.get(..20)?,
    };
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    // ELF gABI, ELF header: class, byte order, e_type, e_machine.
    let why = match (header[4], header[5], half(16), half(18)) {
        (class, ..) if class != ELFCLASS64.0 => "it is a 32-bit program".to_owned(),
        (_, order, ..) if order != ELFDATA2LSB.0 => "it is a big-endian program".to_owned(),
        (.., machine) if machine != EM_X86_64.0 => {
            format!("it is for another processor (e_machine {machine})")
        }
        (_, _, kind, _) if kind == ET_REL.0 => "it is an object file, not linked".to_owned(),
        (_, _, kind, _) if kind == ET_CORE.0 => "it is a core dump".to_owned(),
        _ => return None,
    };
    Some(NoCode::Other(why))
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
            foreign(&all).map(|why| why.to_string())
        };
        assert_eq!(elf(2, 62, 2), None);
        assert!(elf(1, 3, 2).unwrap().contains("32-bit"));
        assert!(elf(2, 183, 2).unwrap().contains("another processor"));
        assert!(elf(2, 62, 1).unwrap().contains("object file"));
        let script = foreign(b"#!/usr/bin/env python3\nprint()\n").unwrap();
        assert_eq!(script, NoCode::Script("/usr/bin/env python3".to_owned()));
        assert_eq!(script.to_string(), "it is a script, run by /usr/bin/env python3");
        assert!(foreign(b"\x7fELF").is_none());
        assert!(foreign(b"text").unwrap().to_string().contains("not an ELF"));
    }
}
