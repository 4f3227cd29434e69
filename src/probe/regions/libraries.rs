//! Libraries that a program is linked with.

use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Endianness, ReadCache};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files that the loader maps at its start (`ld.so --list`, as ldd(1) does); empty without a
/// loader.
pub fn libraries(program: &Path) -> Vec<PathBuf> {
    let Some(loader) = loader(program) else { return Vec::new() };
    let listed = Command::new(loader)
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
