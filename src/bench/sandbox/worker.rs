//! One worker process and the runner's view of its memory.

use super::layout::{self as at, PAGE, USER_TOP, mail};
use super::{filter, runtime, sys};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// All of it ran.
    Done,
    /// An exception that mapping a page does not cure.
    Fault(Fault),
    /// The kernel refused to map a page for this fault.
    MapRefused(Fault),
    /// The block touches more pages than it may.
    TooManyPages(Fault),
    /// The watchdog stopped it.
    TimedOut,
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

/// What protects the host, and what of it could not be had here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// Why the worker has no namespaces of its own; `None` if it has them.
    pub without_namespaces: Option<String>,
    /// Whether some of the forking process's memory stayed mapped (its system pages, sealed).
    pub left_mapped: u32,
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
    /// Starts a worker on `cpu`, or wherever the scheduler likes. With `inspect` the user's other
    /// processes may look at it, which the kernel demands for counting it unprivileged.
    ///
    /// # Errors
    /// No shared memory, no process, or no system-call filter.
    pub fn start(cpu: Option<usize>, inspect: bool, random: u64) -> Result<Self> {
        let failed = |what: &str| {
            Error::not_possible("cannot start the block sandbox")
                .because(format!("{what}: {}", std::io::Error::last_os_error()))
        };
        check_file_limit()?;
        let region = memory_file().ok_or_else(|| failed("memfd_create"))?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let view = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
            libc::mmap(std::ptr::null_mut(), at::SIZE, access, flags, region, 0)
        };
        if view == libc::MAP_FAILED {
            let error = failed("mmap");
            close(region);
            return Err(error);
        }
        let mut worker = Self {
            pid: 0,
            view: view.cast(),
            base: base(random),
            rip_area: rip_area(super::random()),
            rip_offset: 0,
            layers: Layers::default(),
            gone: true,
            status: std::cell::OnceCell::new(),
        };
        let started = worker.launch(region, cpu, inspect);
        close(region);
        started.map(|()| worker)
    }

    fn launch(&mut self, region: i32, cpu: Option<usize>, inspect: bool) -> Result<()> {
        self.write(at::RUNTIME, runtime::image());
        self.write_filter();
        self.write_ranges();
        self.put32(at::MAIL + mail::STATE, mail::STARTING);
        let parent = u64::from(std::process::id());
        let rseq = sys::rseq_offset();
        let plan =
            sys::Plan { region, base: self.base, cpu, inspect, namespaces: true, parent, rseq };
        let mut pid = sys::fork(plan);
        if pid < 0 {
            let error = std::io::Error::from_raw_os_error(-pid as i32);
            self.layers.without_namespaces = Some(error.to_string());
            pid = sys::fork(sys::Plan { namespaces: false, ..plan });
        }
        let refused =
            |cause: String| Error::not_possible("cannot start the block sandbox").because(cause);
        if pid < 0 {
            let error = std::io::Error::from_raw_os_error(-pid as i32);
            return Err(refused(format!("no new process: {error}")));
        }
        self.pid = pid as i32;
        self.gone = false;
        match self.wait(mail::STARTING, Duration::from_secs(5)) {
            Ended::Done => {}
            Ended::Died(how) => return Err(refused(format!("the worker ended at once: {how}"))),
            _ => return Err(refused("the worker does not answer".to_owned())),
        }
        let filter = self.get32(at::MAIL + mail::FILTER_RESULT) as i32;
        if filter != 0 {
            let error = std::io::Error::from_raw_os_error(-filter);
            return Err(refused(format!("the kernel takes no system-call filter: {error}"))
                .hint("a kernel with CONFIG_SECCOMP_FILTER; blocks never run without it"));
        }
        self.layers.left_mapped = self.get32(at::MAIL + mail::LEFT_MAPPED);
        Ok(())
    }

    fn write_filter(&mut self) {
        let code = filter::program(self.base);
        let address = self.base + (at::MAIL + mail::FILTER_CODE) as u64;
        self.put64(at::MAIL + mail::FILTER, code.len() as u64);
        self.put64(at::MAIL + mail::FILTER + 8, address);
        for (i, (code, yes, no, k)) in code.iter().enumerate() {
            let at = at::MAIL + mail::FILTER_CODE + 8 * i;
            self.put32(at, u32::from(*code) | u32::from(*yes) << 16 | u32::from(*no) << 24);
            self.put32(at + 4, *k);
        }
    }

    /// What the worker unmaps: all below and above the region, and then each mapping by itself,
    /// since one sealed page fails the whole range.
    fn write_ranges(&mut self) {
        let end = self.base + at::SIZE as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for line in maps.lines() {
            let Some((start, stop)) = line.split(' ').next().and_then(|r| r.split_once('-')) else {
                continue;
            };
            let number = |text| u64::from_str_radix(text, 16).ok();
            let (Some(start), Some(stop)) = (number(start), number(stop)) else { continue };
            let sealed = line.contains("[v");
            match ranges.last_mut() {
                Some(last) if last.1 == start && !sealed => last.1 = stop,
                _ if stop <= USER_TOP => ranges.push((start, stop)),
                _ => {}
            }
        }
        ranges.truncate(mail::RANGES_MAX - 3);
        ranges.extend([(0, self.base), (end, USER_TOP)]);
        for (i, (start, stop)) in ranges.iter().enumerate() {
            self.put64(at::MAIL + mail::RANGES + 16 * i, *start);
            self.put64(at::MAIL + mail::RANGES + 16 * i + 8, stop - start);
        }
        self.put64(at::MAIL + mail::RANGES + 16 * ranges.len() + 8, 0);
    }

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

    /// How the worker ended, if it has.
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

    /// Has it run on another processor; it stays where it is if the kernel refuses.
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

    /// Moves that area by so many bytes, less than a page: `[rip+x]` then has the place within a page
    /// that it has in the program.
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

    /// Involuntary context switches so far, from the kernel's account of the process.
    pub fn switches(&self) -> Option<u64> {
        let path = || format!("/proc/{}/status", self.pid);
        let file = self.status.get_or_init(|| std::fs::File::open(path()).ok()).as_ref()?;
        let mut text = [0; 8192];
        let size = std::os::unix::fs::FileExt::read_at(file, &mut text, 0).ok()?;
        let status = std::str::from_utf8(&text[..size]).ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix("nonvoluntary_ctxt_switches:"))?;
        line.trim().parse().ok()
    }

    fn state(&self) -> &AtomicU32 {
        // SAFETY: inside the view, aligned, and only ever used as an atomic while shared.
        unsafe { AtomicU32::from_ptr(self.view.add(at::MAIL + mail::STATE).cast()) }
    }

    fn futex(&self, operation: i32, value: u32, limit: Option<Duration>) {
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

    /// Copies from an offset in the region. What the worker wrote there is not to be trusted.
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

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        // SAFETY: our own mapping, used by nobody any more.
        unsafe { libc::munmap(self.view.cast(), at::SIZE) };
    }
}

/// A random place for the region: far from where programs and libraries lie, with room for the
/// `rip` area after it before the next multiple of 4 GiB.
fn base(random: u64) -> u64 {
    let high = 0x1000 + (random >> 32) % 0x4000;
    let low = 0x1000_0000 + (random & 0xffff_ffff) % 0xc000_0000;
    (high << 32 | low) & !(PAGE as u64 - 1)
}

/// A random place for what `[rip+x]` points at.
fn rip_area(random: u64) -> usize {
    let page = PAGE as u64;
    at::RIP_AREA + (random % (at::RIP_AREA_SPREAD / page) * page) as usize
}

/// Refuses a limit on file sizes that the region would exceed: the kernel would end this process.
fn check_file_limit() -> Result<()> {
    use nix::sys::resource::{Resource, getrlimit};
    match getrlimit(Resource::RLIMIT_FSIZE) {
        Ok((limit, _)) if limit < at::SIZE as u64 => {
            Err(Error::not_possible("cannot start the block sandbox")
                .because(format!(
                    "files may have {limit} bytes only, shared memory needs {}",
                    at::SIZE
                ))
                .hint("raise the limit on file sizes (ulimit -f)"))
        }
        _ => Ok(()),
    }
}

/// An anonymous file of the region's size.
fn memory_file() -> Option<i32> {
    let name = c"tdtool block sandbox".as_ptr();
    // SAFETY: the name is a live string; the descriptor is ours.
    unsafe {
        let executable = libc::memfd_create(name, libc::MFD_CLOEXEC | libc::MFD_EXEC);
        // Kernels before 6.3 do not know the flag and need none.
        let file =
            if executable < 0 { libc::memfd_create(name, libc::MFD_CLOEXEC) } else { executable };
        if file < 0 {
            return None;
        }
        if libc::ftruncate(file, at::SIZE as i64) != 0 {
            close(file);
            return None;
        }
        Some(file)
    }
}

fn close(file: i32) {
    // SAFETY: a descriptor of ours that is used no more.
    unsafe { libc::close(file) };
}
