//! Starts a worker (shared memory, process, namespaces, system-call filter), and verifies which layers hold, by the
//! worker's mailbox and the kernel's account of the process. The mailbox is trusted only before a block has run.

use super::{Ended, Worker};
use crate::layers::{Layer, Layers};
use crate::sandbox::layout::{PAGE, USER_TOP, mail};
use crate::sandbox::restraints::Restraint;
use crate::sandbox::{filter, layout as at, runtime, sys};
use std::fmt;
use std::time::Duration;
use tma::{Error, Result};

const FILTER: Layer = Layer::Other("system-call filter");
const MEMORY: Layer = Layer::Other("no memory of tdtool");
const NAMESPACES: Layer = Layer::Other("namespaces of its own");

impl Worker {
    /// Starts a worker on `cpu`, or wherever the scheduler likes. With `inspect` the user's other
    /// processes may look at it, which the kernel demands for counting it unprivileged.
    ///
    /// # Errors
    /// No shared memory, no process, or no system-call filter.
    pub fn start(cpu: Option<usize>, inspect: bool, random: u64) -> Result<Self> {
        Self::start_with(true, cpu, inspect, random)
    }

    /// Starts a worker, with `namespaces` of its own if the kernel permits.
    pub(in crate::sandbox) fn start_with(
        namespaces: bool,
        cpu: Option<usize>,
        inspect: bool,
        random: u64,
    ) -> Result<Self> {
        let failed = |what: &str| {
            Error::not_possible("cannot start the block sandbox")
                .because(format!("{what}: {}", std::io::Error::last_os_error()))
        };
        check_file_limit()?;
        let region = memory_file().ok_or_else(|| failed("memfd_create"))?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let view = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), at::SIZE, access, libc::MAP_SHARED, region, 0)
        };
        if view == libc::MAP_FAILED {
            let error = failed("mmap");
            close(region);
            return Err(error);
        }
        // SAFETY: the mapping just made; a kernel that does not know the advice allocates at first touch.
        unsafe { libc::madvise(view, at::USUAL, libc::MADV_POPULATE_WRITE) };
        let mut worker = Self {
            pid: 0,
            view: view.cast(),
            base: base(random),
            rip_area: rip_area(crate::sandbox::random()),
            rip_offset: 0,
            layers: Layers::default(),
            gone: true,
            status: std::cell::OnceCell::new(),
        };
        let started = worker.launch(region, cpu, inspect, namespaces);
        close(region);
        started.map(|()| worker)
    }

    fn launch(
        &mut self,
        region: i32,
        cpu: Option<usize>,
        inspect: bool,
        namespaces: bool,
    ) -> Result<()> {
        self.write(at::RUNTIME, runtime::image());
        self.write_filter();
        self.write_ranges();
        self.put32(at::MAIL + mail::STATE, mail::STARTING);
        let parent = u64::from(std::process::id());
        let rseq = sys::rseq_offset();
        let plan = sys::Plan { region, base: self.base, cpu, inspect, namespaces, parent, rseq };
        let mut without_namespaces = None;
        let mut pid = sys::fork(plan);
        if pid < 0 {
            without_namespaces = Some(std::io::Error::from_raw_os_error(-pid as i32).to_string());
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
        self.verify_layers(without_namespaces).map_err(|why| refused(why.to_string()))
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

    /// Writes the ranges that the worker unmaps: all below and above the region, and then each mapping separately,
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

/// A layer that does not hold, and without which blocks never run.
enum Unprotected {
    /// The kernel's mode of the system-call filter.
    Filter(String),
    /// A restraint, and why it does not hold.
    Restraint(Layer, String),
}

impl fmt::Display for Unprotected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(mode) => {
                write!(f, "the system-call filter is not in force (Seccomp: {mode})")
            }
            Self::Restraint(layer, why) => write!(f, "{layer}: {why}"),
        }
    }
}

impl Worker {
    /// Enters the layers.
    ///
    /// # Errors
    /// A layer does not hold without which blocks never run.
    fn verify_layers(&mut self, without: Option<String>) -> std::result::Result<(), Unprotected> {
        // Where there is no account to read, the kernel's answer to the worker stands.
        if let Some(mode) = self.account("Seccomp:").filter(|mode| mode != "2") {
            return Err(Unprotected::Filter(mode));
        }
        let mut layers = std::mem::take(&mut self.layers);
        layers.enter(FILTER, None);
        let left = self.get32(at::MAIL + mail::LEFT_MAPPED);
        let sealed = || format!("{left} of its mappings are sealed and stay (system pages)");
        layers.enter(MEMORY, (left > 0).then(sealed));
        let without = without.or_else(|| {
            let ids = self.account("NSpid:")?;
            (ids.split_whitespace().count() < 2).then(|| format!("the process has one id, {ids}"))
        });
        layers.enter(NAMESPACES, without);
        for (restraint, layer) in Restraint::ALL {
            let why_not = why_not(self.get32(restraint.place()) as i32);
            if let (Restraint::EndsWithParent | Restraint::NoNewPrivileges, Some(why)) =
                (restraint, &why_not)
            {
                return Err(Unprotected::Restraint(layer, why.clone()));
            }
            layers.enter(layer, why_not);
        }
        self.layers = layers;
        Ok(())
    }
}

/// Why a restraint does not hold, by what the worker entered.
fn why_not(outcome: i32) -> Option<String> {
    match outcome {
        mail::HELD => None,
        error if error < 0 => Some(std::io::Error::from_raw_os_error(-error).to_string()),
        mail::READS_OTHERWISE => Some("set without an error, and reads back otherwise".to_owned()),
        _ => Some("the worker has not tried".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_read_back_holds() {
        assert_eq!(why_not(mail::HELD), None);
        assert!(why_not(-libc::EPERM).unwrap().contains("not permitted"));
        assert!(why_not(mail::READS_OTHERWISE).unwrap().contains("reads back"));
        assert!(why_not(0).is_some(), "a worker that entered nothing holds nothing");
    }

    /// All layers as the kernel accounts for them from outside, also the limits.
    #[test]
    fn the_kernel_s_account_of_a_worker_agrees() {
        let worker = Worker::start(None, false, crate::sandbox::random()).unwrap();
        let layers = worker.layers();
        let file = |name: &str| {
            std::fs::read_to_string(format!("/proc/{}/{name}", worker.process())).unwrap()
        };
        assert_eq!(worker.account("NoNewPrivs:").as_deref(), Some("1"));
        assert_eq!(worker.account("Seccomp:").as_deref(), Some("2"));
        // All but SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGKILL, SIGSEGV and SIGSTOP.
        assert_eq!(worker.account("SigBlk:").as_deref(), Some("fffffffffffbfa27"));
        let held = |layer: Layer| layers.held.contains(&layer);
        let without = layers.missing.iter().any(|m| m.starts_with(&NAMESPACES.to_string()));
        assert_eq!(held(NAMESPACES), !without);
        let limits = file("limits");
        let most = |name: &str| -> u64 {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap_or(u64::MAX)
        };
        for (name, resource, limit) in [
            ("Max core file size", "core files", 1),
            ("Max file size", "file sizes", 0),
            ("Max open files", "open files", 0),
            ("Max processes", "processes", 0),
            ("Max locked memory", "locked memory", 0),
            ("Max stack size", "the stack", 0),
            ("Max address space", "memory", 16 << 20),
        ] {
            assert_eq!(most(name) <= limit, held(Layer::Limit(resource)), "{name}: {limits}");
        }
        let all = 3 + Restraint::ALL.len();
        assert_eq!(layers.held.len() + layers.missing.len(), all, "{layers:?}");
    }

    #[test]
    fn a_worker_that_may_be_inspected_says_so() {
        let worker = Worker::start(None, true, crate::sandbox::random()).unwrap();
        assert!(worker.layers().missing.iter().any(|m| m.starts_with("not inspectable")));
    }
}
