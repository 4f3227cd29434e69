//! The memory of a traced process through `/proc/PID/mem`, its mappings from `/proc/PID/maps` (proc_pid_maps(5)),
//! unmapped addresses, and the hook by which the dynamic loader announces a mapped file.

use nix::sys::stat::{major, minor};
use object::{Object as _, ObjectSymbol as _};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Bytes of a page.
pub const PAGE: usize = crate::plan::PAGE as usize;

/// The memory of one process until it executes another program.
#[derive(Debug)]
pub struct Memory(File);

impl Memory {
    /// Opens the memory of a process.
    ///
    /// # Errors
    /// The process has ended, or may not be traced by this one.
    pub fn open(pid: i32) -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem")).map(Self)
    }

    /// The page that contains `address`; `None` if it is not mapped or cannot be read.
    pub fn page(&self, address: u64) -> Option<Box<[u8; PAGE]>> {
        let mut page = Box::new([0; PAGE]);
        let start = address & !(PAGE as u64 - 1);
        self.0.read_exact_at(&mut page[..], start).ok()?;
        Some(page)
    }

    /// Up to `most` bytes from `address` on, as far as they are readable.
    pub fn read(&self, address: u64, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let got = self.0.read_at(&mut bytes, address).unwrap_or(0);
        bytes.truncate(got);
        bytes
    }

    /// Whether all these addresses are readable; `None` if the process has ended.
    pub fn holds(&self, address: u64, length: usize) -> Option<bool> {
        match self.0.read_at(&mut vec![0; length], address) {
            // No task uses the memory any more (Linux, mem_rw).
            Ok(0) if length > 0 => None,
            got => Some(got.is_ok_and(|got| got == length)),
        }
    }

    /// Writes bytes, also to code that is mapped read-only (a private copy of the pages).
    pub fn write_all(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, address)
    }

    /// As [`Self::write_all`], without an error if the process has ended.
    ///
    /// # Errors
    /// It is not mapped.
    pub fn write_alive(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all(address, bytes).or_else(|error| match error.kind() {
            io::ErrorKind::WriteZero => Ok(()),
            _ => Err(error),
        })
    }
}

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
    /// `r`, `w`, `x` (`-` if missing), and `p` for private or `s` for shared.
    pub rights: String,
    /// Offset of its start in the file.
    pub offset: u64,
    device: (u64, u64),
    inode: u64,
    /// The file, or a name such as `[heap]` and `[stack]`; empty for other anonymous memory.
    pub path: String,
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = fields.next()?.split_once('-')?;
        let rights = fields.next()?.to_owned();
        let offset = hex(fields.next()?)?;
        let (device_major, device_minor) = fields.next()?.split_once(':')?;
        let device = (hex(device_major)?, hex(device_minor)?);
        let inode = fields.next()?.parse().ok()?;
        let path = fields.next().unwrap_or_default().trim_start().to_owned();
        Some(Self { start: hex(start)?, end: hex(end)?, rights, offset, device, inode, path })
    }

    /// Whether it can be executed.
    pub fn is_executable(&self) -> bool {
        self.rights.as_bytes().get(2) == Some(&b'x')
    }

    /// Whether it can be written.
    pub fn is_writable(&self) -> bool {
        self.rights.as_bytes().get(1) == Some(&b'w')
    }
}

/// The mappings of a process, in order of address; none if it has ended.
pub fn mappings(pid: i32) -> Vec<Mapping> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&maps).lines().filter_map(Mapping::parse).collect()
}

/// A file to be found among mappings.
#[derive(Debug, Clone)]
pub struct Image {
    path: PathBuf,
    device: (u64, u64),
    inode: u64,
}

impl Image {
    /// The file at `path`.
    ///
    /// # Errors
    /// There is no such file, or it is not accessible.
    pub fn new(path: &Path) -> std::io::Result<Self> {
        let path = tma::files::resolved(path)?;
        let metadata = path.metadata()?;
        let device = (major(metadata.dev()), minor(metadata.dev()));
        // As the process sees it: /proc/PID/root/…
        let inside = path.strip_prefix("/proc").ok().and_then(|rest| {
            let mut rest = rest.iter().skip(1);
            let is_root = rest.next()? == "root";
            is_root.then(|| Path::new("/").join(rest.collect::<PathBuf>()))
        });
        let path = inside.unwrap_or(path);
        Ok(Self { path, device, inode: metadata.ino() })
    }

    /// The address of the code at `offset` of the file.
    pub fn find(&self, mappings: &[Mapping], offset: u64) -> Option<u64> {
        // Overlay file systems report another device for a mapping than for the file.
        let is_it = |m: &&Mapping| {
            (m.inode == self.inode && m.device == self.device) || Path::new(&m.path) == self.path
        };
        let address = |m: &Mapping| {
            let address = m.start.checked_add(offset.checked_sub(m.offset)?)?;
            (address < m.end).then_some(address)
        };
        mappings.iter().filter(|m| m.is_executable()).filter(is_it).find_map(address)
    }
}

/// Most bytes of a loader that is read.
const LONGEST: u64 = 64 << 20;
/// Address of the loader in the auxiliary vector (<elf.h>).
const AT_BASE: u64 = 7;

/// The address of the hook in process `pid`; `None` if it has no loader, or one without it.
///
/// It is `_dl_debug_state`, the function that `r_debug.r_brk` (<link.h>) gives debuggers; glibc and musl both have it.
pub fn hook(pid: i32, mappings: &[Mapping]) -> Option<u64> {
    let base = base(&fs::read(format!("/proc/{pid}/auxv")).ok()?)?;
    let path = &mappings.iter().find(|m| m.start == base)?.path;
    if fs::metadata(path).ok()?.len() > LONGEST {
        return None;
    }
    let data = fs::read(path).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let mut all = file.dynamic_symbols().chain(file.symbols());
    let symbol = all.find(|s| s.name() == Ok("_dl_debug_state") && s.address() != 0)?;
    base.checked_add(symbol.address())
}

/// The loader's address in an auxiliary vector: pairs of words.
fn base(vector: &[u8]) -> Option<u64> {
    let words: Vec<u64> = vector
        .chunks_exact(8)
        .filter_map(|w| Some(u64::from_le_bytes(w.try_into().ok()?)))
        .collect();
    let pair = words.chunks_exact(2).find(|pair| pair[0] == AT_BASE)?;
    (pair[1] != 0).then_some(pair[1])
}

/// End of user space (x86-64, four-level paging), less a page.
const END: u64 = 0x7fff_ffff_f000;
/// Default of the lowest address that may be mapped.
const LOWEST: u64 = 64 << 10;
/// Preferred distance to the module.
const DISTANCE: u64 = 16 << 20;
/// Bytes left free for growth of heap and stack.
const GROWTH: u64 = 256 << 20;
/// Bytes always left free for a heap: if it cannot grow, malloc(3) maps memory elsewhere.
const LEAST: u64 = 64 << 20;

/// Unmapped ranges, in order, without room for growth of heap and stack.
pub fn vacant(pid: i32, mappings: &[Mapping]) -> Vec<Range<u64>> {
    vacant_but(pid, mappings, GROWTH)
}

/// Unmapped ranges, including those into which the heap grows later.
pub fn vacant_yet(pid: i32, mappings: &[Mapping]) -> Vec<Range<u64>> {
    vacant_but(pid, mappings, LEAST)
}

/// Unmapped ranges without `growth` bytes for a heap.
fn vacant_but(pid: i32, mappings: &[Mapping], growth: u64) -> Vec<Range<u64>> {
    let lowest = fs::read_to_string("/proc/sys/vm/mmap_min_addr");
    let lowest = lowest.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0).max(LOWEST);
    let mut taken: Vec<Range<u64>> = mappings.iter().map(|m| m.start..m.end).collect();
    let stacks = mappings.iter().filter(|m| m.path == "[stack]");
    taken.extend(stacks.map(|m| m.start.saturating_sub(GROWTH)..m.start));
    let end = mappings.iter().find(|m| m.path == "[heap]").map_or(0, |m| m.end);
    let grown = |start: u64| start..(start + growth).max(end + growth.min(LEAST));
    taken.extend(heap(pid).map(grown));
    // Also below the page of vsyscall, at the end of the address space.
    taken.push(END..u64::MAX);
    taken.sort_by_key(|range| range.start);
    let (mut free, mut end) = (Vec::new(), lowest);
    for range in taken {
        if end < range.start {
            free.push(end..range.start);
        }
        end = end.max(range.end);
    }
    free
}

/// Start of the heap, which may not be mapped yet.
fn heap(pid: i32) -> Option<u64> {
    stat(pid, 47)?.parse().ok()
}

/// A field of proc_pid_stat(5) from the third on.
pub fn stat(tid: i32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    // The second field, a name in parentheses, may have spaces.
    stat.rsplit_once(')')?.1.split_whitespace().nth(field - 3).map(str::to_owned)
}

/// The number in a line of proc_pid_status(5).
pub fn status(tid: i32, name: &str) -> Option<i32> {
    line(tid, name)?.parse().ok()
}

/// The signals in a line of proc_pid_status(5), as a mask.
pub fn signals(tid: i32, name: &str) -> Option<u64> {
    u64::from_str_radix(&line(tid, name)?, 16).ok()
}

fn line(tid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let found = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(found.trim().to_owned())
}

/// An address for `length` bytes with all distances to `module` below `reach`: in the widest range,
/// rather below the module than above, and away from growing memory.
pub fn near(vacant: &[Range<u64>], module: &Range<u64>, length: u64, reach: u64) -> Option<u64> {
    let low = module.end.saturating_sub(reach);
    let high = module.start.saturating_add(reach);
    let fits = |range: &Range<u64>| {
        let (start, end) = (range.start.max(low), range.end.min(high));
        let room = end.checked_sub(start)?.checked_sub(length)?;
        // Close to the module, but out of the way of the heap after it.
        let above = range.start >= module.end;
        let away = DISTANCE.min(room / 2);
        let at = if above { start + away.max(room / 2) } else { end - length - away };
        Some((above, std::cmp::Reverse(away), at & !0xfff)).filter(|_| at & !0xfff >= start)
    };
    vacant.iter().filter_map(fits).min().map(|(_, _, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_found_in_the_executable_mapping_of_the_file() {
        // As proc_pid_maps(5) shows them.
        let lines = "55a0c0000000-55a0c0001000 r--p 00000000 fe:01 42    /bin/a b\n\
                     55a0c0001000-55a0c0003000 r-xp 00001000 fe:01 42    /bin/a b\n\
                     7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0     [stack]\n";
        let all: Vec<Mapping> = lines.lines().filter_map(Mapping::parse).collect();
        assert_eq!(all.len(), 3);
        assert_eq!((&*all[2].rights, &*all[2].path), ("rw-p", "[stack]"));
        let image = |path: &str, inode| Image { path: path.into(), device: (0xfe, 1), inode };
        assert_eq!(image("/bin/other", 42).find(&all, 0x1139), Some(0x55a0_c000_1139));
        assert_eq!(image("/bin/a b", 7).find(&all, 0x1139), Some(0x55a0_c000_1139));
        assert_eq!(image("/bin/other", 7).find(&all, 0x1139), None);
        assert_eq!(image("/bin/a b", 42).find(&all, 0x10), None, "it is not executable there");
        assert_eq!(image("/bin/a b", 42).find(&all, 0x3000), None);
    }

    #[test]
    fn this_process_has_a_loader_with_the_function() {
        let pid = std::process::id().cast_signed();
        let all = super::mappings(pid);
        let Some(_) = base(&fs::read("/proc/self/auxv").unwrap()) else { return };
        let hook = hook(pid, &all).unwrap();
        assert!(all.iter().any(|m| m.is_executable() && (m.start..m.end).contains(&hook)));
    }

    #[test]
    fn this_process_has_a_heap_where_its_mappings_say() {
        let pid = std::process::id().cast_signed();
        let all = super::mappings(pid);
        let Some(mapped) = all.iter().find(|m| m.path == "[heap]") else { return };
        assert_eq!(heap(pid), Some(mapped.start));
        assert!(vacant(pid, &all).iter().all(|r| r.end <= mapped.start || r.start >= mapped.end));
    }

    #[test]
    fn room_is_found_below_a_module_or_else_above_its_heap() {
        let module = 0x4000_0000..0x4001_0000;
        let below = [0x1_0000..0x4000_0000, 0x4100_0000..0x8000_0000];
        let at = near(&below, &module, 0x4000, 1 << 31).unwrap();
        assert!(at < module.start && module.start - at < 32 << 20, "{at:#x}");
        let above: Vec<_> = std::iter::once(0x4100_0000..0x10_0000_0000).collect();
        let at = near(&above, &module, 0x4000, 1 << 31).unwrap();
        assert!(at > 0x6000_0000 && at + 0x4000 - module.start < 1 << 31, "{at:#x}");
        assert_eq!(near(&above, &module, 0x4000, 1 << 20), None);
    }
}
