//! Memory of the program's own for counters and trampolines.

use crate::plan::PAGE;
use crate::process::{Memory, Tracee};
use nix::errno::Errno;
use std::fs::File;
use std::ops::Range;

/// The name of the counters' memory, as /proc/PID/maps shows it.
const NAME: &[u8] = b"tdtool-counts\0";

/// Bytes of whole pages.
pub(super) fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE) * PAGE
}

/// Refuses a process whose system calls are filtered, as ours could end it, and one that would have too
/// many mappings with `more` of them.
pub(super) fn permitted(tracee: &Tracee, mappings: usize, more: usize) -> Result<(), String> {
    let mode = tracee.seccomp().map_err(|e| format!("its status: {e}"))?;
    if mode != 0 {
        return Err("its system calls are filtered (seccomp)".to_owned());
    }
    let most = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    let most = most.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(usize::MAX);
    match mappings + more > most / 2 {
        true => Err(format!("it has {mappings} mappings; {most} are possible (vm.max_map_count)")),
        false => Ok(()),
    }
}

/// Memory of the program's own.
pub(super) struct Mapped {
    /// Its counters, which are shared memory: children that the process forks count in it, too, and it
    /// is read here after they have ended.
    pub counters: File,
    ranges: Vec<Range<u64>>,
}

impl Mapped {
    /// Maps counters at `cells` and trampolines at `code`.
    pub fn new(
        tracee: &Tracee,
        memory: &Memory,
        cells: Range<u64>,
        code: impl Iterator<Item = Range<u64>>,
    ) -> Result<Self, String> {
        let mut ranges = Vec::new();
        match map(tracee, memory, (cells, code), &mut ranges) {
            Ok(counters) => Ok(Self { counters, ranges }),
            Err(why) => {
                unmap(tracee, memory, &ranges);
                Err(why)
            }
        }
    }

    /// Takes it away from a process that has not used it.
    pub fn unmap(self, tracee: &Tracee, memory: &Memory) {
        unmap(tracee, memory, &self.ranges);
    }
}

fn unmap(tracee: &Tracee, memory: &Memory, ranges: &[Range<u64>]) {
    for range in ranges {
        let arguments = [range.start, range.end - range.start, 0, 0, 0, 0];
        let _ = tracee.call(memory, libc::SYS_munmap, arguments);
    }
}

/// The file of the counters. `done` is what was mapped, also if not all was.
fn map(
    tracee: &Tracee,
    memory: &Memory,
    (cells, code): (Range<u64>, impl Iterator<Item = Range<u64>>),
    done: &mut Vec<Range<u64>>,
) -> Result<File, String> {
    let refused = |e: Errno| format!("the process may not map memory: {}", e.desc());
    let call = |number, arguments| tracee.call(memory, number, arguments).map_err(refused);
    let mut place = |at: &Range<u64>, rights: i32, all: i32, file: u64| {
        let flags = (all | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
        let (rights, length) = (rights.cast_unsigned(), at.end - at.start);
        let arguments = [at.start, length, rights.into(), flags.into(), file, 0];
        let got = call(libc::SYS_mmap, arguments)?;
        done.push(got..got + length);
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
    let file = call(libc::SYS_memfd_create, [name, close, 0, 0, 0, 0])?;
    let opened = open(tracee, file, cells.end - cells.start);
    let shared = place(&cells, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file);
    call(libc::SYS_close, [file, 0, 0, 0, 0, 0])?;
    shared.and(opened)
}

/// The same file in this process, with its length.
fn open(tracee: &Tracee, file: u64, length: u64) -> Result<File, String> {
    let failed = |e: std::io::Error| format!("its counters cannot be opened: {e}");
    let opened = tracee.open(file).map_err(failed)?;
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

/// Free pages between two with trampolines that are mapped with them: a system call and a mapping less.
const BETWEEN: u64 = 4 << 20;

/// Pages as ranges; what lies between them is in one with them if it is `free` and not long.
pub(super) fn ranges(all: impl Iterator<Item = u64>, free: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<u64> = all.collect();
    sorted.sort_unstable();
    let is_free = |from: u64, to: u64| {
        let of = free.partition_point(|range| range.start <= from).checked_sub(1);
        of.is_some_and(|index| to <= free[index].end)
    };
    let mut found: Vec<Range<u64>> = Vec::new();
    for page in sorted {
        match found.last_mut() {
            Some(last) if page - last.end <= BETWEEN && is_free(last.start, page + PAGE) => {
                last.end = page + PAGE;
            }
            _ => found.push(page..page + PAGE),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_with_little_between_them_are_mapped_together() {
        let free = [0x10000..0x20000, 0x30000..0x4000_0000];
        let far = 0x30000 + BETWEEN + 0x2000;
        let pages = [0x12000, 0x10000, 0x1f000, 0x30000, far];
        let all = [0x10000..0x20000, 0x30000..0x31000, far..far + PAGE];
        assert_eq!(ranges(pages.into_iter(), &free), all);
    }
}
