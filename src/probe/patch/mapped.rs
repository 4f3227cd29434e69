//! Memory of the program's own for results and trampolines.

use crate::plan::PAGE;
use crate::process::{Memory, Stopped};
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// The name of the shared memory, as /proc/PID/maps shows it.
const NAME: &[u8] = b"tdtool-counts\0";

/// Bytes of whole pages.
pub fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE) * PAGE
}

/// Refuses a process whose system calls are filtered: ours could end it.
pub fn permitted(stopped: &Stopped) -> Result<(), String> {
    let path = format!("/proc/{}/status", stopped.process);
    let status = std::fs::read_to_string(path).map_err(|e| format!("its status: {e}"))?;
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    match mode.is_some_and(|mode| mode.trim() != "0") {
        true => Err("its system calls are filtered (seccomp)".to_owned()),
        false => Ok(()),
    }
}

/// Memory that a process and its forked children share with this process.
pub struct Shared {
    /// Where it is in the process.
    at: u64,
    length: u64,
    file: File,
    /// Whether it is the memory of another file in the process.
    pub is_copy: bool,
}

impl Shared {
    /// Fills `bytes` from this offset on.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    /// Writes to this offset.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }
}

/// Maps shared memory at `cells`, that of `common` if there is one, and trampolines at `code`. Children
/// that the process forks share it, too, and it is read here after they have ended.
pub fn map(
    stopped: &Stopped,
    memory: &Memory,
    cells: Range<u64>,
    common: Option<&Shared>,
    code: impl Iterator<Item = Range<u64>>,
) -> Result<Shared, String> {
    let refused = |e: Errno| format!("the process may not map memory: {}", e.desc());
    let placed = |got: u64, at: u64| match got == at {
        true => Ok(()),
        // Kernels before 4.17 take the address for a hint.
        false => Err("the addresses chosen are not free".to_owned()),
    };
    let place = |at: &Range<u64>, rights: i32, all: i32, file: u64| {
        let flags = (all | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
        let rights = rights.cast_unsigned();
        let arguments = [at.start, at.end - at.start, rights.into(), flags.into(), file, 0];
        placed(stopped.call(libc::SYS_mmap, arguments).map_err(refused)?, at.start)
    };
    let mut first = None;
    for range in code {
        // Never writable for the program.
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        place(&range, libc::PROT_READ | libc::PROT_EXEC, private, u64::MAX)?;
        first.get_or_insert(range.start);
    }
    let length = cells.end - cells.start;
    if let Some(common) = common {
        // A second mapping of the same memory: an old length of 0 (mremap(2), notes).
        let how = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED).cast_unsigned();
        let arguments = [common.at, 0, length.min(common.length), how.into(), cells.start, 0];
        let got = stopped.call(libc::SYS_mremap, arguments).map_err(refused)?;
        placed(got, cells.start)?;
        let file = common.file.try_clone().map_err(|e| format!("no more files: {e}"))?;
        return Ok(Shared { at: cells.start, length, file, is_copy: true });
    }
    let name = first.ok_or("no probe fits into it")?;
    let failed = |e: io::Error| format!("its memory cannot be written: {e}");
    memory.write_all(name, NAME).map_err(failed)?;
    let close = u64::from(libc::MFD_CLOEXEC);
    let file = stopped.call(libc::SYS_memfd_create, [name, close, 0, 0, 0, 0]).map_err(refused)?;
    let opened = open(stopped, file, length);
    let shared = place(&cells, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file);
    stopped.call(libc::SYS_close, [file, 0, 0, 0, 0, 0]).map_err(refused)?;
    shared.and(opened).map(|file| Shared { at: cells.start, length, file, is_copy: false })
}

/// The same file in this process, with its length.
fn open(stopped: &Stopped, file: u64, length: u64) -> Result<File, String> {
    let failed = |e: io::Error| format!("its shared memory cannot be opened: {e}");
    let path = format!("/proc/{}/fd/{file}", stopped.process);
    let opened = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    opened.set_len(length).map_err(failed)?;
    Ok(opened)
}

/// Whole free pages without `taken`.
pub fn without(free: &[Range<u64>], taken: &Range<u64>) -> Vec<Range<u64>> {
    let parts = free.iter().flat_map(|range| {
        [range.start..range.end.min(taken.start), range.start.max(taken.end)..range.end]
    });
    let whole = parts.map(|part| pages(part.start)..part.end & !(PAGE - 1));
    whole.filter(|part| part.start < part.end).collect()
}

/// Adjacent pages as ranges.
pub fn ranges(all: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut sorted: Vec<u64> = all.collect();
    sorted.sort_unstable();
    let mut found: Vec<Range<u64>> = Vec::new();
    for page in sorted {
        match found.last_mut() {
            Some(last) if last.end == page => last.end += PAGE,
            _ => found.push(page..page + PAGE),
        }
    }
    found
}
