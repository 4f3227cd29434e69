//! Regions that a program marks: entries, nesting and times.
//!
//! | file | concern |
//! |---|---|
//! | `tree` | begins and ends of regions, events in order → regions inside one another; the result of a run |
//! | `marking` | probes, which log each execution; names in the memory of the program |
//! | `journal` | the log of an image, read while it runs |
//!
//! Sites are markers, or a function from its first instruction to each exit; libraries of a program may have markers, too.
//! All events of an image are in one log, in order. A thread is identified by the base of its own
//! memory (fs), a forked process by a number written into its copy of the code.

mod journal;
mod marking;
mod tree;

use crate::facts::{Exit, Function, Module, NoCode};
use crate::patch::{Blocks, Patcher, Target, Unprobed, Wanted, notes, targets, watched};
use crate::process::{Followed, Watched};
use iced_x86::{Code, FlowControl};
use marking::Marking;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Endianness, ReadCache};
use pmu::Command;
use pmu::perf::Signals;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tma::{Error, Result};

pub use crate::patch::{Progress, Window};
pub use tree::{Edge, Label, Marked, Node, Site, Span, Stats, Thread, Tree};

/// `HWCAP2_FSGSBASE` (Linux, arch/x86/include/uapi/asm/hwcap2.h) in the entry with tag `AT_HWCAP2` (elf.h).
const FSGSBASE: u64 = 2;
const AT_HWCAP2: u64 = 26;

/// Runs the command once and follows the regions of these sites, in it and in all that it starts.
/// `before` is called with the process before it starts.
///
/// # Errors
/// The command cannot be started or traced; programs cannot identify their threads; those of
/// `before`.
pub fn mark(
    command: &Command,
    sites: &[Site],
    signals: &Signals,
    before: &mut dyn FnMut(i32) -> Result<()>,
) -> Result<Marked> {
    can_read_base()?;
    let (code, functions) = code(sites);
    let targets = targets(&code, Blocks::All, signals);
    let mut patcher = Patcher::new(Marking::new(sites, functions, false), targets);
    let followed = patcher.follow_after(command, signals, before)?;
    let Followed { wall, exit, interrupted, .. } = followed;
    Ok(Marked { wall, exit, interrupted, ..marking::marked(patcher) })
}

/// Follows the regions of these sites in a window of a live process, and of those that it forks,
/// and restores its code.
///
/// # Errors
/// The process cannot be traced or stopped, has ended, or cannot identify its threads.
pub fn mark_process(window: &Window<'_>, sites: &[Site], progress: Progress<'_>) -> Result<Marked> {
    can_read_base()?;
    let (code, functions) = code(sites);
    let collect = |patcher: Patcher<Marking>, watched: &Watched| Marked {
        wall: watched.wall,
        interrupted: watched.interrupted,
        notes: notes(watched, patcher.restored),
        remains: watched.remains.is_some() && !watched.ended,
        ..marking::marked(patcher)
    };
    let make = |_: &[Target]| Marking::new(sites, functions, true);
    let found = watched(window, &code, make, &collect, progress)?;
    Ok(found.unwrap_or_else(|signal| Marked {
        interrupted: Some(signal),
        refused: vec![Some(Unprobed::Interrupted); sites.len()],
        ..Marked::default()
    }))
}

/// The functions of the sites, and for each site the index of its function.
fn code(sites: &[Site]) -> (Vec<Wanted>, Vec<usize>) {
    let (mut code, mut known): (Vec<Wanted>, _) = (Vec::new(), BTreeMap::new());
    let functions = sites.iter().map(|site| {
        let Wanted { path, range } = &site.code;
        *known.entry((path, range.start, range.end)).or_insert_with(|| {
            code.push(site.code.clone());
            code.len() - 1
        })
    });
    let functions = functions.collect();
    (code, functions)
}

/// An error if programs may not execute `rdfsbase`.
fn can_read_base() -> Result<()> {
    let auxiliary = std::fs::read("/proc/self/auxv").unwrap_or_default();
    let mut entries = auxiliary.as_chunks::<8>().0.chunks_exact(2);
    let can = entries.any(|entry| {
        let [tag, value] = [entry[0], entry[1]].map(u64::from_le_bytes);
        tag == AT_HWCAP2 && value & FSGSBASE != 0
    });
    if can {
        return Ok(());
    }
    Err(Error::not_possible("regions cannot be told apart by thread here")
        .because("the kernel does not permit the instruction rdfsbase")
        .hint("Linux 5.9 or later does, without the option nofsgsbase"))
}

/// Why the begin or the ends of a function are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoEnds {
    /// It has no code that can be probed.
    Code(NoCode),
    /// It has an indirect jump with unknown targets.
    UnknownJump,
    /// It never returns.
    Endless,
    /// No block begins at its start.
    NoStart,
    /// A loop leads to its start, which runs more often than the function is entered.
    LoopToStart,
    /// Its first movable instruction is not at its start.
    JumpToStart,
}

impl fmt::Display for NoEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(why) => why.fmt(f),
            Self::UnknownJump => f.write_str("it has an indirect jump of unknown targets"),
            Self::Endless => f.write_str("it never returns"),
            Self::NoStart => f.write_str("its start is not known"),
            Self::LoopToStart => f.write_str("a loop of its own leads to its start"),
            Self::JumpToStart => f.write_str("a jump leads to its start"),
        }
    }
}

impl std::error::Error for NoEnds {}

impl From<NoCode> for NoEnds {
    fn from(why: NoCode) -> Self {
        Self::Code(why)
    }
}

/// Sites of the begin and ends of a function, as a region with this name.
///
/// # Errors
/// Its begin or ends are unknown.
pub fn function_sites(wanted: &Wanted, name: &str) -> std::result::Result<Vec<Site>, NoEnds> {
    let module = Module::read(&wanted.path)?;
    let entered = module.entered(std::slice::from_ref(&wanted.range));
    let function = Function::read(&module, wanted.range.clone(), &entered)?;
    let site = |at, edge| {
        let label = Label::Function(name.to_owned());
        Site { code: wanted.clone(), at, edge, label }
    };
    let mut all = vec![site(begin(&function)?, Edge::Begin)];
    for block in function.blocks.iter().filter(|block| block.is_reached) {
        let Some(last) = block.instructions.last() else { continue };
        match (block.exit, last.flow_control()) {
            (Exit::Unknown, _) => return Err(NoEnds::UnknownJump),
            // A conditional jump out leads to its cold part, which jumps back or does not return.
            (
                Exit::Leaves,
                FlowControl::Return
                | FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch,
            ) => all.push(site(last.ip(), Edge::End)),
            _ => {}
        }
    }
    match all.len() {
        1 => Err(NoEnds::Endless),
        _ => Ok(all),
    }
}

/// The first movable instruction, if executed once per entry.
fn begin(function: &Function) -> std::result::Result<u64, NoEnds> {
    let start = function.range.start;
    let entry = function.blocks.iter().position(|block| block.start == start);
    let entry = entry.ok_or(NoEnds::NoStart)?;
    if function.blocks.iter().any(|block| block.successors.contains(&entry)) {
        return Err(NoEnds::LoopToStart);
    }
    let mut own = function.blocks[entry].instructions.iter();
    let first = own.find(|instruction| instruction.code() != Code::Endbr64);
    first.map(|i| i.ip()).ok_or(NoEnds::JumpToStart)
}

/// Files that the loader maps at its start (`ld.so --list`, as ldd(1) does); empty without a
/// loader.
pub fn libraries(program: &Path) -> Vec<PathBuf> {
    let Some(loader) = loader(program) else { return Vec::new() };
    let listed = std::process::Command::new(loader)
        .arg("--list")
        .arg(program)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let listed = listed.map(|done| done.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&listed).into_owned();
    // `name => /path (0x…)`, or `/path (0x…)`.
    let path = |line: &str| {
        let path = line.split_once(" => ").map_or(line, |(_, path)| path).trim();
        let path = path.rsplit_once(" (0x").map_or(path, |(path, _)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

/// Its loader (PT_INTERP).
fn loader(program: &Path) -> Option<PathBuf> {
    let cache = ReadCache::new(std::fs::File::open(program).ok()?);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let endian = elf.endian();
    let mut headers = elf.elf_program_headers().iter();
    let path = headers.find_map(|header| header.interpreter(endian, &cache).ok().flatten())?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}
