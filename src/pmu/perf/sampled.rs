//! Open events that write records (samples, mappings, names, starts and ends), and the ring buffer that the kernel
//! writes them into.

use super::events::errno;
use crate::machine::Encoding;
use crate::records::format::SampleFormat;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use perf_event::events::Raw;
use perf_event::{Builder, Clock, Counter};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// `PERF_FORMAT_LOST` of linux/perf_event.h, from Linux 6.0.
pub const FORMAT_LOST: u64 = 1 << 4;

/// How often an event is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Samples a second; the kernel chooses the period.
    Frequency(u64),
    /// Events between samples; 0: it counts and is not sampled.
    Period(u64),
}

/// The tasks whose records are written.
#[derive(Debug, Clone, Copy)]
pub enum SampledTasks<'a> {
    /// One thread.
    Task(i32),
    /// All tasks on the CPU.
    All,
    /// The members of a control group.
    Cgroup(&'a File),
}

/// An event to open for records.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// Event to sample.
    pub encoding: Encoding,
    /// `precise_ip`.
    pub precise: u8,
    /// How often it is sampled; `None`: it tracks mappings, names, starts and ends instead.
    pub rate: Option<Rate>,
    /// Layout of its records.
    pub format: SampleFormat,
    /// The tasks whose records are written.
    pub tasks: SampledTasks<'a>,
    /// The CPU; `None`: all, and without a ring buffer.
    pub cpu: Option<u32>,
    /// Children and new threads too.
    pub inherit: bool,
    /// User mode only.
    pub user_only: bool,
    /// Starts when the task calls exec.
    pub enable_on_exec: bool,
    /// Starts at once.
    pub enabled: bool,
    /// Whether mappings carry build-ids (Linux 5.12).
    pub build_ids: bool,
    /// Bytes in the ring buffer that wake the reader.
    pub watermark: u32,
}

/// An open event.
pub struct Sampled {
    counter: Counter,
    counts_lost: bool,
}

impl Sampled {
    /// Opens it.
    pub fn open(opening: &Opening<'_>) -> Result<Self, Errno> {
        let counter = builder(opening).build().map_err(errno)?;
        Ok(Self { counter, counts_lost: opening.format.read_format == FORMAT_LOST })
    }

    /// Opens it in the group of `leader`.
    pub fn open_in(opening: &Opening<'_>, leader: &mut Self) -> Result<Self, Errno> {
        let counter = builder(opening).build_with_group(&mut leader.counter).map_err(errno)?;
        Ok(Self { counter, counts_lost: opening.format.read_format == FORMAT_LOST })
    }

    /// The id in its records; inherited events have that of their parent.
    pub fn id(&self) -> u64 {
        self.counter.id()
    }

    /// Starts it and its inherited copies. If that fails, its task has ended.
    pub fn enable(&mut self) {
        let _ = self.counter.enable();
    }

    /// Stops it and its inherited copies.
    pub fn disable(&mut self) {
        let _ = self.counter.disable();
    }

    /// A ring buffer for it.
    ///
    /// # Errors
    /// As [`Ring::new`].
    pub fn ring(&self, size: usize) -> Result<Ring, Errno> {
        Ring::new(self.as_fd(), size)
    }

    /// Redirects its records to the ring buffer of `other`; both must be on the same CPU.
    pub fn redirect(&self, other: &Self) -> Result<(), Errno> {
        // PERF_EVENT_IOC_SET_OUTPUT of linux/perf_event.h: _IO('$', 5).
        const SET_OUTPUT: libc::c_ulong = 0x2405;
        let (fd, other) = (self.counter.as_raw_fd(), other.counter.as_raw_fd());
        // SAFETY: takes two open descriptors and changes no memory of this process.
        Errno::result(unsafe { libc::ioctl(fd, SET_OUTPUT as _, other) }).map(|_| ())
    }

    /// Samples that the kernel had no room for, if it counts them.
    pub fn lost(&self) -> Option<u64> {
        if !self.counts_lost {
            return None;
        }
        let mut words = [0; 16];
        // value, lost: the only two of this read_format.
        let read = nix::unistd::read(self.as_fd(), &mut words).ok()?;
        (read == 16).then(|| u64::from_ne_bytes(words[8..].try_into().unwrap_or_default()))
    }
}

impl AsFd for Sampled {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the counter holds its descriptor open for as long as it is borrowed here.
        unsafe { BorrowedFd::borrow_raw(self.counter.as_raw_fd()) }
    }
}

fn builder<'a>(opening: &Opening<'a>) -> Builder<'a> {
    let Encoding { kind, config, config1, config2, user_only, kernel_only } = opening.encoding;
    let format = opening.format;
    let mut builder = Builder::new(Raw::new(config));
    let attr = builder.attrs_mut();
    (attr.type_, attr.config1, attr.config2) = (kind, config1, config2);
    (attr.sample_type, attr.read_format) = (format.sample_type, format.read_format);
    attr.branch_sample_type = format.branch_sample_type;
    attr.sample_regs_user = format.regs_user;
    attr.sample_stack_user = format.stack_user;
    attr.set_precise_ip(opening.precise.into());
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = opening.watermark;
    match opening.rate {
        Some(Rate::Frequency(hertz)) => {
            attr.set_freq(1);
            attr.__bindgen_anon_1.sample_freq = hertz;
        }
        Some(Rate::Period(events)) => attr.__bindgen_anon_1.sample_period = events,
        None => {
            attr.set_mmap(1);
            attr.set_mmap2(1);
            attr.set_comm(1);
            attr.set_comm_exec(1);
            attr.set_task(1);
            attr.set_build_id(opening.build_ids.into());
        }
    }
    match opening.tasks {
        SampledTasks::Task(tid) => builder.observe_pid(tid),
        SampledTasks::All => builder.any_pid(),
        SampledTasks::Cgroup(group) => builder.observe_cgroup(group),
    };
    if let Some(cpu) = opening.cpu {
        builder.one_cpu(cpu as usize);
    }
    let user_only = opening.user_only || user_only;
    builder
        .sample_id_all(format.sample_id_all)
        .clockid(Clock::MONOTONIC)
        .inherit(opening.inherit)
        .enabled(opening.enabled)
        .enable_on_exec(opening.enable_on_exec)
        .exclude_kernel(user_only)
        .exclude_hv(user_only)
        .exclude_callchain_kernel(user_only)
        // Callers in user mode come from the copy of the stack.
        .exclude_callchain_user(format.stack_user > 0)
        .exclude_user(kernel_only);
    builder
}

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
