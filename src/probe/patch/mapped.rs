//! Memory that `tdtool` maps in a process for results and trampolines.

use super::unprobed::Unprobed;
use crate::plan::PAGE;
use crate::process::{Mapping, Memory, Tracee, seccomp};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// The name of the shared memory, as /proc/PID/maps shows it.
const NAME: &[u8] = b"tdtool-counts\0";

/// Whether a mapping has that name.
pub fn is_counters(mapping: &Mapping) -> bool {
    let name = mapping.path.strip_prefix("/memfd:").map(str::as_bytes);
    name.is_some_and(|name| name.starts_with(&NAME[..NAME.len() - 1]))
}

/// Rounds bytes up to whole pages.
pub fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE) * PAGE
}

/// Refuses a process whose system calls are filtered, since ours could end it, or that would have
/// too many mappings with `more` of them.
///
/// # Errors
/// The reason, or why its status cannot be read.
pub fn permitted(tid: i32, mappings: usize, more: usize) -> Result<(), Unprobed> {
    let mode = seccomp(tid).map_err(|e| Unprobed::Status(e.into()))?;
    if mode != 0 {
        return Err(Unprobed::Filtered);
    }
    let most = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    let most = most.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(usize::MAX);
    match mappings + more > most / 2 {
        true => Err(Unprobed::Mappings(mappings, most)),
        false => Ok(()),
    }
}

/// Fewest mappings that are made in one stop.
const MANY: usize = 4;

/// Memory that a process and its forked children share with this process.
pub struct Shared {
    /// Its address in the process.
    at: u64,
    length: u64,
    file: File,
    /// Whether it is also the memory of another file in the process.
    pub is_copy: bool,
}

impl Shared {
    /// Reads from offset `at` on.
    pub fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    /// Writes at offset `at`.
    pub fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }
}

/// Memory that `tdtool` has mapped in a process.
pub struct Mapped {
    /// Memory that trampolines write; forked children share it. It is read after all have ended.
    pub shared: Shared,
    /// All mapped ranges.
    pub ranges: Vec<Range<u64>>,
}

impl Mapped {
    /// Maps shared memory at `cells`, that of `common` if there is one, and trampolines at `code`.
    pub fn new(
        tracee: &Tracee,
        memory: &Memory,
        cells: Range<u64>,
        common: Option<&Shared>,
        code: impl Iterator<Item = Range<u64>>,
    ) -> Result<Self, Unprobed> {
        let code = code.collect::<Vec<_>>();
        let mut mapper = Mapper { tracee, memory, before: tracee.mappings(), ranges: Vec::new() };
        let shared = mapper.code(&code).and_then(|()| match common {
            Some(common) => mapper.copy(common, &cells),
            None => mapper.create(&cells, &code),
        });
        let Mapper { mut ranges, before, .. } = mapper;
        match shared {
            Ok(shared) => Ok(Self { shared, ranges }),
            Err(why) => {
                // Mappings of calls whose end was not seen are ours, too.
                let now = tracee.mappings();
                let unseen = code.into_iter().chain([cells]).filter(|at| !ranges.contains(at));
                let unseen: Vec<_> = unseen.filter(|at| is_new(at, &before, &now)).collect();
                ranges.extend(unseen);
                match tracee.unmap(memory, &now, &ranges) {
                    0 => Err(why),
                    left => Err(Unprobed::Unremoved(why.into(), left)),
                }
            }
        }
    }

    /// Unmaps it from a process that has not used it; the number of ranges that remain.
    pub fn unmap(self, tracee: &Tracee, memory: &Memory) -> usize {
        tracee.unmap(memory, &tracee.mappings(), &self.ranges)
    }
}

/// Whether a range was mapped since `before`: by us, as all threads of the process are stopped.
fn is_new(at: &Range<u64>, before: &[Mapping], now: &[Mapping]) -> bool {
    let is_in = |all: &[Mapping]| all.iter().any(|m| m.start < at.end && at.start < m.end);
    is_in(now) && !is_in(before)
}

/// Maps memory in a stopped process by its own system calls.
struct Mapper<'a> {
    tracee: &'a Tracee,
    memory: &'a Memory,
    /// Mappings before the first call.
    before: Vec<Mapping>,
    /// Ranges that were mapped.
    ranges: Vec<Range<u64>>,
}

impl Mapper<'_> {
    fn call(&self, number: libc::c_long, arguments: [u64; 6]) -> Result<u64, Unprobed> {
        self.tracee.call(self.memory, number, arguments).map_err(Unprobed::Unmappable)
    }

    /// Calls mmap(2); the address.
    fn mmap(&self, at: &Range<u64>, rights: i32, flags: i32, file: u64) -> Result<u64, Unprobed> {
        let flags = (flags | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
        let (rights, length) = (rights.cast_unsigned(), at.end - at.start);
        self.call(libc::SYS_mmap, [at.start, length, rights.into(), flags.into(), file, 0])
    }

    /// Records that `at` was asked for and `got` was mapped.
    fn placed(&mut self, got: u64, at: &Range<u64>) -> Result<(), Unprobed> {
        self.ranges.push(got..got + (at.end - at.start));
        // Kernels before 4.17 take the address for a hint.
        if got == at.start { Ok(()) } else { Err(Unprobed::Occupied) }
    }

    /// Maps memory for trampolines, which the program can never write.
    fn code(&mut self, code: &[Range<u64>]) -> Result<(), Unprobed> {
        let (mut mapped, mut many) = (0, MANY);
        while let Some(range) = code.get(mapped) {
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let got = self.mmap(range, libc::PROT_READ | libc::PROT_EXEC, private, u64::MAX)?;
            self.placed(got, range)?;
            mapped += 1;
            // The others at once; where that is not possible, one by one.
            if code.len() - mapped >= many {
                let rest = &code[mapped..];
                let number =
                    self.tracee.map_many(self.memory, &code[0], rest).unwrap_or_else(|_| {
                        let now = self.tracee.mappings();
                        rest.iter().take_while(|at| is_new(at, &self.before, &now)).count()
                    });
                rest[..number].iter().try_for_each(|range| self.placed(range.start, range))?;
                mapped += number;
                many = if number > 0 { MANY } else { usize::MAX };
            }
        }
        Ok(())
    }

    /// Maps the shared memory of another file a second time.
    fn copy(&mut self, common: &Shared, cells: &Range<u64>) -> Result<Shared, Unprobed> {
        let length = cells.end - cells.start;
        // An old length of 0 keeps the old mapping (mremap(2), notes).
        let how = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED).cast_unsigned();
        let arguments = [common.at, 0, length.min(common.length), how.into(), cells.start, 0];
        let got = self.call(libc::SYS_mremap, arguments)?;
        self.placed(got, cells)?;
        let file = common.file.try_clone().map_err(|e| Unprobed::NoFiles(e.into()))?;
        Ok(Shared { at: cells.start, length, file, is_copy: true })
    }

    /// Creates shared memory and maps it.
    fn create(&mut self, cells: &Range<u64>, code: &[Range<u64>]) -> Result<Shared, Unprobed> {
        let length = cells.end - cells.start;
        // The name is stored where trampolines are written later.
        let name = code.first().map(|range| range.start).ok_or(Unprobed::NoJump)?;
        self.memory.write_all(name, NAME).map_err(|e| Unprobed::Unwritten(e.into()))?;
        let close = u64::from(libc::MFD_CLOEXEC);
        let arguments = [name, close, 0, 0, 0, 0];
        let file = self.tracee.call(self.memory, libc::SYS_memfd_create, arguments);
        let file = file.map_err(Unprobed::Unshared)?;
        let opened = open(self.tracee, file, length);
        let got = self.mmap(cells, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file);
        let placed = got.and_then(|got| self.placed(got, cells));
        self.call(libc::SYS_close, [file, 0, 0, 0, 0, 0])?;
        let file = placed.and(opened)?;
        Ok(Shared { at: cells.start, length, file, is_copy: false })
    }
}

/// Opens the process's file here and sets its length.
fn open(tracee: &Tracee, file: u64, length: u64) -> Result<File, Unprobed> {
    let failed = |e: io::Error| Unprobed::UnopenedShared(e.into());
    let opened = tracee.open(file).map_err(failed)?;
    opened.set_len(length).map_err(failed)?;
    Ok(opened)
}

/// The whole pages of `free` without `taken`.
pub fn without(free: &[Range<u64>], taken: &Range<u64>) -> Vec<Range<u64>> {
    let parts = free.iter().flat_map(|range| {
        [range.start..range.end.min(taken.start), range.start.max(taken.end)..range.end]
    });
    let whole = parts.map(|part| pages(part.start)..part.end & !(PAGE - 1));
    whole.filter(|part| part.start < part.end).collect()
}

/// Longest gap between pages of trampolines that is mapped with them, to save a system call and a
/// mapping.
const BETWEEN: u64 = 4 << 20;

/// Joins pages to ranges, over `free` gaps of at most [`BETWEEN`].
pub fn ranges(all: impl Iterator<Item = u64>, free: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<u64> = all.collect();
    sorted.sort_unstable();
    let is_free = |from: u64, to: u64| {
        let range = free.partition_point(|range| range.start <= from).checked_sub(1);
        range.is_some_and(|index| to <= free[index].end)
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
