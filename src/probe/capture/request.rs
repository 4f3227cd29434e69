//! The request of a capture, with its limits; addresses of an ELF file (p_vaddr), and offsets in it.

use isa::elf::Layout;
use object::elf::{DF_1_PIE, DT_FLAGS_1, DT_SONAME, Dyn64, PT_INTERP};
use object::read::elf::{Dyn as _, ElfFile64, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectKind};
use pmu::Command;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tma::{Error, Result};

/// A block to capture, and the command that runs it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command; it may start the program indirectly.
    pub command: Command,
    /// The program or shared library that contains the block.
    pub image: PathBuf,
    /// The block's first instruction.
    pub place: Place,
    /// Addresses (p_vaddr) that are stepped: the block, or all blocks of its loop.
    pub region: Vec<Range<u64>>,
    /// The entry to capture.
    pub entry: Entry,
    /// Executions of the loop to capture with [`Entry::Auto`], if it exits within the limits.
    pub executions: usize,
    /// Limits.
    pub limits: Limits,
    /// How entries are found.
    pub breakpoints: Breakpoints,
    /// The fate of the command.
    pub afterwards: Afterwards,
    /// Ends the capture from another thread.
    pub stop: Stop,
}

/// Request to end a capture, set from another thread.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the capture.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was requested.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A place in an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An address (p_vaddr).
    Address(u64),
    /// An offset in the file.
    Offset(u64),
}

/// The entry of the block to capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Entry {
    /// The 1000th, or the last of the 1st, 10th and 100th. In the middle or the first execution of
    /// a loop: the next start of the loop, if it comes within the limits.
    #[default]
    Auto,
    /// This one, from 1.
    Number(u64),
    /// This one, at which an execution of the loop begins; further executions follow.
    Start(u64),
}

/// How entries of the block are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Breakpoints {
    /// By debug registers, or by `int3` where those are refused.
    #[default]
    Auto,
    /// By `int3`.
    Int3,
}

/// The fate of the command after the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Afterwards {
    /// It is killed with all its children.
    #[default]
    Kill,
    /// It continues to its end.
    Continue,
}

/// Limits of a capture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Time until the first entry of the block.
    pub first_entry: Duration,
    /// Time from the first to the wanted entry. After it the next entry is captured.
    pub time: Duration,
    /// Time for stepping, per capture.
    pub stepping: Duration,
    /// Most instructions stepped.
    pub steps: u64,
    /// Most iterations stepped.
    pub iterations: u64,
    /// Most pages read.
    pub pages: usize,
}

impl Default for Limits {
    /// A step takes 10 to 30 µs, so stepping ends by its time or by the iterations.
    fn default() -> Self {
        Self {
            first_entry: Duration::from_secs(60),
            time: Duration::from_secs(10),
            stepping: Duration::from_millis(500),
            steps: 50_000,
            iterations: 256,
            pages: 1024,
        }
    }
}

/// Address and offset of a place in the file at `path`.
///
/// # Errors
/// It is not an ELF file, or has nothing there.
pub fn place(path: &Path, place: Place) -> Result<(u64, u64)> {
    let failed = || Error::failed(format!("cannot read {}", path.display()));
    let data = tma::files::read(path, tma::files::LONGEST_PROGRAM)
        .map_err(|e| tma::error::unreadable(path, &e))?;
    let layout = Layout::read(&*data)
        .map_err(|why| failed().because(why).hint("give a program or shared library"))?;
    let found = layout.segments.iter().find_map(|segment| {
        let within = match place {
            Place::Address(at) => at.checked_sub(segment.address)?,
            Place::Offset(at) => at.checked_sub(segment.offset)?,
        };
        let is_inside = within < segment.file_size;
        is_inside.then_some((segment.address + within, segment.offset + within))
    });
    let (Place::Address(at) | Place::Offset(at)) = place;
    found.ok_or_else(|| failed().because(format!("no segment of it contains {at:#x}")))
}

/// Whether an ELF file is a program, not a shared library (which may have an interpreter, too: libc
/// prints its version).
pub fn is_program(data: &[u8]) -> bool {
    let Ok(file) = ElfFile64::<Endianness>::parse(data) else { return false };
    if file.kind() == ObjectKind::Executable {
        return true;
    }
    let endian = file.endian();
    let headers = file.elf_program_headers();
    let mut dynamic =
        headers.iter().filter_map(|h| h.dynamic(endian, data).ok().flatten()).flatten();
    let has_interpreter = headers.iter().any(|h| h.p_type(endian) == PT_INTERP);
    let is_named = dynamic.clone().any(|entry| entry.tag(endian) == DT_SONAME);
    let is_position_independent = |entry: &Dyn64<Endianness>| {
        entry.tag(endian) == DT_FLAGS_1 && entry.val(endian) & DF_1_PIE.0 != 0
    };
    dynamic.any(is_position_independent) || (has_interpreter && !is_named)
}
