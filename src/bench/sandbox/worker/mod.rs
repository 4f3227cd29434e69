//! One worker process and the runner's view of its memory.
//!
//! `start` leads from the shared memory to a worker that waits for commands.

mod start;

use super::layout::{self as at, PAGE, mail};
use crate::layers::Layers;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It ran completely.
    Done,
    /// An exception that mapping a page does not cure.
    Fault(Fault),
    /// The kernel refused to map a page for this fault.
    MapRefused(Fault),
    /// The block touches more pages than it may.
    TooManyPages(Fault),
    /// The watchdog stopped it.
    TimedOut,
    /// Its block has used up its time: it did not begin, or was stopped.
    OutOfTime,
    /// The worker died, by this signal or with this exit status.
    Died(String),
}

/// An exception as the worker saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Signal number.
    pub signal: i32,
    /// `si_code`.
    pub code: i32,
    /// `si_addr`.
    pub address: u64,
    /// Instruction pointer, as an offset in the region; `None` outside it.
    pub offset: Option<usize>,
    /// Trap number of the processor.
    pub trap: u64,
    /// Address of the last page fault.
    pub cr2: u64,
}

/// A worker process. It belongs to the thread that started it: the kernel ends the worker with
/// that thread.
pub struct Worker {
    pid: i32,
    view: *mut u8,
    base: u64,
    rip_area: usize,
    rip_offset: usize,
    layers: Layers,
    gone: bool,
    /// The kernel's status of the process, once read.
    status: std::cell::OnceCell<Option<std::fs::File>>,
}

impl Worker {
    /// Gives the worker a command and waits for its end, at most `limit`. After
    /// [`Ended::TimedOut`] and [`Ended::Died`] the worker is gone.
    pub fn command(&mut self, operation: u32, limit: Duration) -> Ended {
        if self.gone {
            return Ended::Died("before the command".to_owned());
        }
        self.put32(at::MAIL + mail::OPERATION, operation);
        self.state().store(mail::COMMAND, Ordering::SeqCst);
        self.futex(libc::FUTEX_WAKE, 1, None);
        self.wait(mail::COMMAND, limit)
    }

    /// Waits while the state is `busy`.
    fn wait(&mut self, busy: u32, limit: Duration) -> Ended {
        let start = Instant::now();
        while self.state().load(Ordering::SeqCst) == busy {
            self.futex(libc::FUTEX_WAIT, busy, Some(Duration::from_millis(5)));
            if self.state().load(Ordering::SeqCst) != busy {
                break;
            }
            if let Some(how) = self.reap(libc::WNOHANG) {
                return Ended::Died(how);
            }
            if start.elapsed() > limit {
                self.kill();
                return Ended::TimedOut;
            }
        }
        match self.get32(at::MAIL + mail::STATUS) {
            _ if busy == mail::STARTING => Ended::Done,
            mail::DONE => Ended::Done,
            mail::MAP_REFUSED => Ended::MapRefused(self.fault()),
            mail::TOO_MANY_PAGES => Ended::TooManyPages(self.fault()),
            _ => Ended::Fault(self.fault()),
        }
    }

    fn fault(&self) -> Fault {
        let at = at::MAIL + mail::FAULT_RECORD;
        let offset = self.get64(at + 16).wrapping_sub(self.base) as usize;
        Fault {
            signal: self.get32(at) as i32,
            code: self.get32(at + 4) as i32,
            address: self.get64(at + 8),
            offset: (offset < at::SIZE).then_some(offset),
            trap: self.get64(at + 32),
            cr2: self.get64(at + 40),
        }
    }

    /// The cause of the worker's end, if it has ended.
    fn reap(&mut self, options: i32) -> Option<String> {
        let mut status = 0;
        // SAFETY: waits for our own child and writes to a live local.
        let reaped = unsafe { libc::waitpid(self.pid, &raw mut status, options) };
        if reaped == 0 {
            return None;
        }
        self.gone = true;
        Some(if libc::WIFSIGNALED(status) {
            match libc::WTERMSIG(status) {
                libc::SIGSYS => "stopped by the system-call filter".to_owned(),
                signal => format!("signal {signal}"),
            }
        } else {
            format!("exit status {}", libc::WEXITSTATUS(status))
        })
    }

    fn kill(&mut self) {
        if !self.gone {
            // SAFETY: our own child, not yet reaped, so the number cannot be another process.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.reap(0);
        }
    }

    /// Moves it to another processor; it stays where it is if the kernel refuses.
    pub fn move_to(&mut self, cpu: usize) {
        let mut set = nix::sched::CpuSet::new();
        if !self.gone && set.set(cpu).is_ok() {
            let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(self.pid), &set);
        }
    }

    /// Its process id.
    pub fn process(&self) -> i32 {
        self.pid
    }

    /// Address of the region in the worker.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Where `[rip+x]` of a block points, as a distance from the start of the region.
    pub fn rip_area(&self) -> usize {
        self.rip_area + self.rip_offset
    }

    /// Moves that area by `offset` bytes, less than a page, so that `[rip+x]` has its offset within a page as in
    /// the program.
    pub fn set_rip_offset(&mut self, offset: usize) {
        self.rip_offset = offset % PAGE;
    }

    /// The layers of protection.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Whether it can take no more commands.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Involuntary context switches so far.
    pub fn switches(&self) -> Option<u64> {
        self.account("nonvoluntary_ctxt_switches:")?.parse().ok()
    }

    /// A line of the kernel's account of the process, without its name.
    fn account(&self, line: &str) -> Option<String> {
        let path = || format!("/proc/{}/status", self.pid);
        let file = self.status.get_or_init(|| std::fs::File::open(path()).ok()).as_ref()?;
        let mut text = [0; 8192];
        let size = std::os::unix::fs::FileExt::read_at(file, &mut text, 0).ok()?;
        let status = std::str::from_utf8(&text[..size]).ok()?;
        Some(status.lines().find_map(|l| l.strip_prefix(line))?.trim().to_owned())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        // SAFETY: our own mapping, used by nobody any more.
        unsafe { libc::munmap(self.view.cast(), at::SIZE) };
    }
}

impl Worker {
    pub(super) fn state(&self) -> &AtomicU32 {
        // SAFETY: inside the view, aligned, and only ever used as an atomic while shared.
        unsafe { AtomicU32::from_ptr(self.view.add(at::MAIL + mail::STATE).cast()) }
    }

    pub(super) fn futex(&self, operation: i32, value: u32, limit: Option<Duration>) {
        let limit = limit.map(|d| libc::timespec {
            tv_sec: d.as_secs() as i64,
            tv_nsec: i64::from(d.subsec_nanos()),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the word lives as long as the view; the time-out is a live local or null.
        unsafe {
            libc::syscall(libc::SYS_futex, self.state().as_ptr(), operation, value, limit, 0, 0)
        };
    }

    /// Copies `bytes` to an offset in the region.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= at::SIZE, "outside the region");
        // SAFETY: inside the view, as just checked; nothing else holds a reference into it.
        unsafe { self.view.add(at).copy_from(bytes.as_ptr(), bytes.len()) };
    }

    /// Copies from an offset in the region. Data that the worker wrote there is untrusted.
    pub fn read(&self, at: usize, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        self.copy(at, &mut bytes);
        bytes
    }

    /// Copies from an offset in the region to `bytes`, as [`Worker::read`].
    pub fn copy(&self, at: usize, bytes: &mut [u8]) {
        assert!(at + bytes.len() <= at::SIZE, "outside the region");
        // SAFETY: inside the view, as just checked.
        unsafe { self.view.add(at).copy_to(bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Writes a number.
    pub fn put32(&mut self, at: usize, value: u32) {
        self.write(at, &value.to_le_bytes());
    }

    /// Writes a number.
    pub fn put64(&mut self, at: usize, value: u64) {
        self.write(at, &value.to_le_bytes());
    }

    /// Reads a number.
    pub fn get32(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        self.copy(at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// Reads a number.
    pub fn get64(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        self.copy(at, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Reads `count` 32-bit numbers.
    pub fn words(&self, at: usize, count: usize) -> Vec<u32> {
        let bytes = self.read(at, 4 * count);
        bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
    }
}
