//! Memory of the programs: mapped regions with a choice of page size, how much may be used, and random orders in
//! it, the same in every run.

use crate::command_line::human;
use std::fs;
use std::path::Path;
use std::ptr::{self, NonNull};
use tma::{Error, Result};

/// Which pages should back a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// The system's default.
    Default,
    /// Only small pages (4 KiB on x86).
    Small,
    /// Huge pages if the system permits them: address translation is negligible then.
    Huge,
}

/// x86's huge page; an alignment that lets huge pages begin at the first byte.
const HUGE: usize = 2 << 20;

/// Zeroed memory, aligned to 2 MiB, unmapped when dropped.
pub(super) struct Region {
    mapping: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
    bytes: usize,
}

impl Region {
    /// Maps `bytes` (rounded up to whole pages).
    ///
    /// # Errors
    /// The kernel refuses that much.
    pub fn new(bytes: u64, pages: Pages) -> Result<Self> {
        let refused = |why: String| {
            Error::failed(format!("cannot map {} of memory", human(bytes)))
                .because(why)
                .hint("choose a smaller --size")
        };
        let too_much = || refused("more than the address space".into());
        let bytes = usize::try_from(bytes).map_err(|_| too_much())?.max(1);
        let mapped = bytes.checked_add(HUGE).ok_or_else(too_much)?;
        // SAFETY: a new private anonymous mapping at an address the kernel chooses touches
        // nothing that exists; the result is checked.
        let mapping = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(refused(std::io::Error::last_os_error().to_string()));
        }
        let mapping = mapping.cast::<u8>();
        let skip = mapping.align_offset(HUGE).min(HUGE);
        // SAFETY: `skip` is at most HUGE, and HUGE more than `bytes` were mapped, so the result
        // and `bytes` after it lie in the mapping.
        let start = unsafe { mapping.add(skip) };
        let (Some(mapping), Some(start)) = (NonNull::new(mapping), NonNull::new(start)) else {
            return Err(refused("the kernel mapped address 0".into()));
        };
        let region = Self { mapping, mapped, start, bytes };
        region.advise(pages);
        Ok(region)
    }

    /// Requests the page size; errors are ignored, because the system may have only one (EINVAL).
    fn advise(&self, pages: Pages) {
        let advice = match pages {
            Pages::Default => return,
            Pages::Small => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: start and bytes lie in our own mapping and this advice changes no content.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, advice) };
    }

    /// First byte, valid for reads and writes of the region's bytes while it lives.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The region as bytes.
    #[cfg(target_arch = "x86_64")]
    pub fn contents(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is initialised (zeroed by the kernel), not shared, and borrowed
        // mutably through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// The region as numbers.
    pub fn numbers(&mut self) -> &mut [f64] {
        // SAFETY: the mapping is aligned beyond f64's need, initialised (zeroed by the kernel,
        // and any bit pattern is an f64), not shared, and borrowed mutably through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes / 8) }
    }

    /// Makes the region executable and no longer writable.
    ///
    /// # Errors
    /// A security policy forbids code that was written at run time.
    #[cfg(target_arch = "x86_64")]
    pub fn executable(self) -> Result<Executable> {
        // SAFETY: the pages are our own mapping and nothing borrows them: `self` is consumed.
        let refused = unsafe {
            libc::mprotect(
                self.mapping.as_ptr().cast(),
                self.mapped,
                libc::PROT_READ | libc::PROT_EXEC,
            ) != 0
        };
        if refused {
            return Err(Error::failed("cannot make the generated code executable")
                .because(std::io::Error::last_os_error())
                .hint(
                    "a security policy (SELinux execmem, seccomp) forbids it; allow it for tdtool",
                ));
        }
        Ok(Executable(self))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: exactly what mmap returned; every pointer into it came from `self`.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}

/// A region that holds code; no longer writable.
#[cfg(target_arch = "x86_64")]
pub(super) struct Executable(Region);

#[cfg(target_arch = "x86_64")]
impl Executable {
    /// The first instruction.
    pub fn entry(&self) -> *const u8 {
        self.0.start()
    }
}

/// Bytes a program may use: three quarters of what the machine and the memory cgroup have free.
/// `None` if neither is known.
pub(super) fn allowance() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|t| mem_available(&t));
    let free = match (machine, cgroup_free()) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b)?,
    };
    Some(free / 4 * 3)
}

/// `MemAvailable` of /proc/meminfo in bytes.
fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Memory available by the memory cgroups, as mounted inside a container or named in /proc/self/cgroup;
/// `None` without a limit.
fn cgroup_free() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut folders = vec!["/sys/fs/cgroup".to_owned(), "/sys/fs/cgroup/memory".to_owned()];
    for line in own.lines() {
        match line.splitn(3, ':').collect::<Vec<_>>()[..] {
            ["0", "", path] => folders.push(format!("/sys/fs/cgroup{path}")),
            [_, "memory", path] => folders.push(format!("/sys/fs/cgroup/memory{path}")),
            _ => {}
        }
    }
    folders.iter().filter_map(|folder| free_in(Path::new(folder))).min()
}

/// Limit − usage of one cgroup (version 2 or 1), counting the page cache as free: the kernel
/// reclaims it when a program needs the memory.
fn free_in(folder: &Path) -> Option<u64> {
    let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
    let pairs =
        [("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")];
    let (limit, used) = pairs.iter().find_map(|(l, u)| Some((number(l)?, number(u)?)))?;
    let stat = read("memory.stat").unwrap_or_default();
    let cache = stat.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        matches!(key, "file" | "total_cache").then(|| value.parse().ok())?
    });
    Some(limit.saturating_sub(used.saturating_sub(cache.unwrap_or(0))))
}

/// Size of the largest cache of the first processor in bytes, as the kernel reports it.
pub(super) fn largest_cache() -> Option<u64> {
    let folder = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    folder
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("size")).ok())
        .filter_map(|text| crate::command_line::parse_size(text.trim()).ok())
        .max()
}

/// A random cycle through all of `0..n`: `next[i]` follows `i` (Sattolo's algorithm).
///
/// # Errors
/// The memory cannot be allocated.
pub(super) fn cycle(n: u32) -> Result<Vec<u32>> {
    // A fixed seed: every run has the same order.
    let mut random = fastrand::Rng::with_seed(0x9E37_79B9_7F4A_7C15);
    let mut next: Vec<u32> = Vec::new();
    next.try_reserve_exact(n as usize).map_err(|e| {
        Error::failed(format!("cannot allocate a random order of {n} elements"))
            .because(e)
            .hint("choose a smaller --size")
    })?;
    next.extend(0..n);
    for i in (1..n).rev() {
        next.swap(i as usize, random.usize(..i as usize));
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_zeroed_aligned_and_writable() {
        for pages in [Pages::Default, Pages::Small, Pages::Huge] {
            let mut region = Region::new(3 << 20, pages).unwrap();
            assert_eq!(region.start() as usize % HUGE, 0);
            let numbers = region.numbers();
            assert_eq!(numbers.len(), 3 << 17);
            assert!(numbers.iter().all(|x| *x == 0.0));
            numbers.fill(1.0);
        }
    }

    #[test]
    fn more_than_the_address_space_is_refused() {
        assert!(Region::new(u64::MAX, Pages::Default).is_err());
        assert!(Region::new(1 << 60, Pages::Default).is_err());
    }

    #[test]
    fn meminfo_is_read_in_kib() {
        let text = "MemTotal: 10 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(mem_available(text), Some(2 << 20));
        assert_eq!(mem_available("MemTotal: 10 kB\n"), None);
        assert_eq!(mem_available("MemAvailable: many kB\n"), None);
    }

    #[test]
    fn a_cgroup_counts_its_page_cache_as_free() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        assert_eq!(free_in(folder.path()), None);
        write("memory.max", "max\n");
        write("memory.current", "900\n");
        assert_eq!(free_in(folder.path()), None, "no limit");
        write("memory.max", "1000\n");
        assert_eq!(free_in(folder.path()), Some(100));
        write("memory.stat", "anon 200\nfile 700\n");
        assert_eq!(free_in(folder.path()), Some(800));
    }

    #[test]
    fn a_cycle_visits_everything_once() {
        for n in [1u32, 2, 3, 64, 1000] {
            let next = cycle(n).unwrap();
            let (mut at, mut seen) = (0, vec![false; n as usize]);
            for _ in 0..n {
                assert!(!std::mem::replace(&mut seen[at as usize], true), "{at} twice of {n}");
                at = next[at as usize];
            }
            assert_eq!(at, 0, "back at the start after {n}");
        }
    }
}
