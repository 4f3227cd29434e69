//! Memory of the program's own for counters and trampolines.

use crate::plan::PAGE;
use crate::process::{Memory, Stopped};
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::ops::Range;

/// The name of the counters' memory, as /proc/PID/maps shows it.
const NAME: &[u8] = b"tdtool-counts\0";

/// Bytes of whole pages.
pub(super) fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE) * PAGE
}

/// Refuses a process whose system calls are filtered: ours could end it.
pub(super) fn permitted(stopped: &Stopped) -> Result<(), String> {
    let path = format!("/proc/{}/status", stopped.process);
    let status = std::fs::read_to_string(path).map_err(|e| format!("its status: {e}"))?;
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    match mode.is_some_and(|mode| mode.trim() != "0") {
        true => Err("its system calls are filtered (seccomp)".to_owned()),
        false => Ok(()),
    }
}

/// Maps counters at `cells` and trampolines at `code`. The counters are shared memory: children that
/// the process forks count in it, too, and it is read here after they have ended.
pub(super) fn map(
    stopped: &Stopped,
    memory: &Memory,
    cells: Range<u64>,
    code: impl Iterator<Item = Range<u64>>,
) -> Result<File, String> {
    let refused = |e: Errno| format!("the process may not map memory: {}", e.desc());
    let place = |at: &Range<u64>, rights: i32, all: i32, file: u64| {
        let flags = (all | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
        let rights = rights.cast_unsigned();
        let arguments = [at.start, at.end - at.start, rights.into(), flags.into(), file, 0];
        let got = stopped.call(libc::SYS_mmap, arguments).map_err(refused)?;
        // Kernels before 4.17 take the address for a hint.
        if got == at.start { Ok(()) } else { Err("the addresses chosen are not free".to_owned()) }
    };
    let mut first = None;
    for range in code {
        // Never writable for the program.
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        place(&range, libc::PROT_READ | libc::PROT_EXEC, private, u64::MAX)?;
        first.get_or_insert(range.start);
    }
    let name = first.ok_or("no block of it can be counted")?;
    let failed = |e: std::io::Error| format!("its memory cannot be written: {e}");
    memory.write_all(name, NAME).map_err(failed)?;
    let close = u64::from(libc::MFD_CLOEXEC);
    let file = stopped.call(libc::SYS_memfd_create, [name, close, 0, 0, 0, 0]).map_err(refused)?;
    let opened = open(stopped, file, cells.end - cells.start);
    let shared = place(&cells, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file);
    stopped.call(libc::SYS_close, [file, 0, 0, 0, 0, 0]).map_err(refused)?;
    shared.and(opened)
}

/// The same file in this process, with its length.
fn open(stopped: &Stopped, file: u64, length: u64) -> Result<File, String> {
    let failed = |e: std::io::Error| format!("its counters cannot be opened: {e}");
    let path = format!("/proc/{}/fd/{file}", stopped.process);
    let opened = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    opened.set_len(length).map_err(failed)?;
    Ok(opened)
}

/// Whole free pages without `taken`.
pub(super) fn without(free: &[Range<u64>], taken: &Range<u64>) -> Vec<Range<u64>> {
    let parts = free.iter().flat_map(|range| {
        [range.start..range.end.min(taken.start), range.start.max(taken.end)..range.end]
    });
    let whole = parts.map(|part| pages(part.start)..part.end & !(PAGE - 1));
    whole.filter(|part| part.start < part.end).collect()
}

/// Adjacent pages as ranges.
pub(super) fn ranges(all: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
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
