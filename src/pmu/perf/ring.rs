//! A ring buffer that the kernel writes records into.
//!
//! The layout is that of `struct perf_event_mmap_page` in linux/perf_event.h: a page with the
//! positions of the kernel (`data_head`) and of the reader (`data_tail`), then a power of two of pages with data.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Offsets of `data_head` and `data_tail` in the first page (linux/perf_event.h: the fields that
/// both sides write begin at 1024).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// A ring buffer that stays mapped until dropped, even if its event is closed.
pub struct Ring {
    page: NonNull<u8>,
    page_size: usize,
    /// Bytes of data, a power of two.
    size: usize,
    tail: u64,
    /// A descriptor to wait on.
    fd: OwnedFd,
}

// SAFETY: the mapping belongs to this value alone; it is not tied to the thread that made it.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring buffer for the event `fd` with `size` bytes of data, rounded up to a power of two of pages.
    ///
    /// # Errors
    /// The kernel's answer: EPERM if the limit on locked memory is reached.
    pub fn new(fd: BorrowedFd<'_>, size: usize) -> Result<Self, Errno> {
        let page_size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)?;
        let page_size = page_size.and_then(|n| usize::try_from(n).ok()).ok_or(Errno::EINVAL)?;
        let size = size.clamp(page_size, 1 << 30).next_power_of_two();
        let copy = fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(0))?;
        // SAFETY: the kernel has just created this descriptor; nothing else owns it.
        let copy = unsafe { OwnedFd::from_raw_fd(copy) };
        let (length, protection) = (page_size + size, libc::PROT_READ | libc::PROT_WRITE);
        let (any, fd) = (std::ptr::null_mut(), copy.as_raw_fd());
        // SAFETY: a new mapping at an address that the kernel chooses; nothing else uses it.
        let page = unsafe { libc::mmap(any, length, protection, libc::MAP_SHARED, fd, 0) };
        if page == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let page = NonNull::new(page.cast()).ok_or(Errno::ENOMEM)?;
        Ok(Self { page, page_size, size, tail: 0, fd: copy })
    }

    /// Its capacity in bytes of data.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Appends every record written since the last call to `into` and frees their space.
    pub fn drain(&mut self, into: &mut Vec<u8>) {
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        let available = usize::try_from(head.wrapping_sub(self.tail)).unwrap_or(usize::MAX);
        // A position out of bounds is not from the kernel; the data cannot be read then.
        if available <= self.size {
            let from = (self.tail % self.size as u64) as usize;
            let first = available.min(self.size - from);
            into.extend_from_slice(self.data(from, first));
            into.extend_from_slice(self.data(0, available - first));
        }
        self.tail = head;
        self.position(DATA_TAIL).store(head, Ordering::Release);
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: both are aligned 64-bit words inside the first page, which stays mapped as long
        // as `self`; the kernel accesses them atomically, too.
        unsafe { AtomicU64::from_ptr(self.page.as_ptr().add(at).cast()) }
    }

    /// Data that the kernel has written and does not touch before `data_tail` has passed it.
    fn data(&self, from: usize, length: usize) -> &[u8] {
        // SAFETY: `from + length` is at most `size` (see `drain`), and `size` bytes are mapped
        // after the first page.
        unsafe { std::slice::from_raw_parts(self.page.as_ptr().add(self.page_size + from), length) }
    }
}

impl AsFd for Ring {
    /// Becomes readable at the event's watermark; hangs up when its task has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped; nothing refers to it any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.page_size + self.size) };
    }
}
