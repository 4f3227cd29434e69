//! A traced process with a stopped thread in which system calls can be made; many mappings in one stop.

use super::inject::{self, ALL_BUT_TRAP, LONG_MODE, STEP, mask, set_mask, stopped};
use super::memory::{Mapping, Memory, mappings};
use nix::Result;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::{Resume, Stop, resume};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Most tries to unmap memory.
const TRIES: usize = 3;

/// A process with a stopped thread in which system calls can be made.
#[derive(Debug, Clone, Copy)]
pub struct Tracee {
    /// The thread.
    pub tid: i32,
    /// The process whose end is awaited by its owner; 0 if there is none.
    pub(super) leader: i32,
    /// The process.
    pub process: i32,
    /// Its code has been running: threads may be anywhere in it, or return there.
    pub is_live: bool,
}

impl Tracee {
    /// Its mappings.
    pub fn mappings(&self) -> Vec<Mapping> {
        mappings(self.tid)
    }

    /// Its memory.
    pub fn memory(&self) -> std::io::Result<Memory> {
        Memory::open(self.tid)
    }

    /// Opens one of its descriptors here, for reading and writing. Its first thread may have ended.
    ///
    /// # Errors
    /// It has no such descriptor, or one that cannot be opened again.
    pub fn open(&self, descriptor: u64) -> io::Result<File> {
        let path = format!("/proc/{}/fd/{descriptor}", self.tid);
        OpenOptions::new().read(true).write(true).open(path)
    }

    /// Maps executable memory at these addresses; the number of mappings made. `own` is such memory
    /// and overwritten: the stopped thread executes a loop over mmap(2) in it, since each injected
    /// call takes two switches to it and back.
    ///
    /// # Errors
    /// Its end was not seen: some of the first mappings may exist.
    pub fn map_many(
        &self,
        memory: &Memory,
        own: &Range<u64>,
        ranges: &[Range<u64>],
    ) -> nix::Result<usize> {
        let fit = ((own.end - own.start).saturating_sub(PAIRS) / PAIR) as usize;
        let ranges = &ranges[..ranges.len().min(fit)];
        map_within(STEP, self.tid, self.leader, memory, own.start, ranges)
    }

    /// Unmaps our ranges, with one call if nothing else is between them; the number of ranges that
    /// remain.
    pub fn unmap(&self, memory: &Memory, mappings: &[Mapping], ranges: &[Range<u64>]) -> usize {
        let is_other = |from: u64, to: u64| mappings.iter().any(|m| m.start < to && from < m.end);
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable_by_key(|range| range.start);
        let mut all: Vec<Range<u64>> = Vec::new();
        for range in sorted {
            match all.last_mut() {
                Some(last) if !is_other(last.end, range.start) => {
                    last.end = last.end.max(range.end)
                }
                _ => all.push(range),
            }
        }
        let remains = |range: &&Range<u64>| {
            let arguments = [range.start, range.end - range.start, 0, 0, 0, 0];
            // A signal that cannot be blocked may prevent a call.
            (0..TRIES).all(|_| self.call(memory, libc::SYS_munmap, arguments).is_err())
        };
        all.iter().filter(remains).count()
    }

    /// Makes a system call in it.
    ///
    /// # Errors
    /// The error of the system call or of ptrace(2).
    pub fn call(
        &self,
        memory: &Memory,
        number: libc::c_long,
        arguments: [u64; 6],
    ) -> nix::Result<u64> {
        inject::call(self.tid, self.leader, memory, number.cast_unsigned(), arguments)
    }
}

/// Seccomp mode of a thread: 0 if its system calls are not filtered (proc_pid_status(5)).
pub fn seccomp(tid: i32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status"))?;
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    // A kernel without seccomp shows no mode.
    Ok(mode.and_then(|mode| mode.trim().parse().ok()).unwrap_or(0))
}

/// Maps private executable memory at free addresses: (address, length) pairs of words from rbx to
/// r12. Ends at the first failure, with rbx at its pair.
const LOOP: [u8; 52] = [
    0x4c, 0x39, 0xe3, // cmp rbx, r12
    0x74, 0x2e, // je end
    0x48, 0x8b, 0x3b, // mov rdi, [rbx]
    0x48, 0x8b, 0x73, 0x08, // mov rsi, [rbx+8]
    0xba, 0x05, 0x00, 0x00, 0x00, // mov edx, PROT_READ | PROT_EXEC
    0x41, 0xba, 0x22, 0x00, 0x10,
    0x00, // mov r10d, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE
    0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff, // mov r8, -1
    0x45, 0x31, 0xc9, // xor r9d, r9d
    0xb8, 0x09, 0x00, 0x00, 0x00, // mov eax, 9 (mmap)
    0x0f, 0x05, // syscall
    0x48, 0x3b, 0x03, // cmp rax, [rbx]
    0x75, 0x06, // jne end
    0x48, 0x83, 0xc3, 0x10, // add rbx, 16
    0xeb, 0xcd, // jmp to the beginning
    0xcc, // end: int3
];
/// Offsets in the loop, after the call, at which rbx still points to the mapped pair.
const MAPPED: Range<u64> = 40..46;
/// Offset of the pairs, after the loop.
const PAIRS: u64 = 64;
/// Bytes of a pair.
const PAIR: u64 = 16;
/// Most unrelated stops.
const MOST_STOPS: usize = 16;

/// Maps memory at these addresses with a stopped thread, and restores its registers and blocked
/// signals. Returns the number of mappings: fewer if one is refused or the thread takes longer than
/// `most`. The loop is written to `at`, in our executable memory.
///
/// # Errors
/// As [`super::inject::call`].
fn map_within(
    most: Duration,
    tid: i32,
    leader: i32,
    memory: &Memory,
    at: u64,
    ranges: &[Range<u64>],
) -> Result<usize> {
    let pid = Pid::from_raw(tid);
    let before = ptrace::getregs(pid)?;
    if before.cs != LONG_MODE {
        return Err(Errno::ENOSYS);
    }
    let mut code = LOOP.to_vec();
    code.resize(PAIRS as usize, 0);
    for range in ranges {
        code.extend(range.start.to_le_bytes());
        code.extend((range.end - range.start).to_le_bytes());
    }
    memory.write_all(at, &code).map_err(|_| Errno::EIO)?;
    let mut registers = before;
    registers.rip = at;
    registers.rbx = at + PAIRS;
    registers.r12 = at + code.len() as u64;
    // No call is restarted.
    registers.orig_rax = u64::MAX;
    let blocked = mask(tid)?;
    let mut stops = Vec::new();
    let result = set_mask(tid, ALL_BUT_TRAP)
        .and_then(|()| ptrace::setregs(pid, registers))
        .and_then(|()| end(tid, leader, at, most, &mut stops));
    // All this also after an error.
    let restored = ptrace::setregs(pid, before);
    let unblocked = set_mask(tid, blocked);
    for signal in stops {
        let _ = kill(pid, signal);
    }
    let now = result?;
    restored.and(unblocked)?;
    let pairs = now.rbx.saturating_sub(at + PAIRS) / PAIR;
    let next = ranges.get(pairs as usize);
    let is_after = MAPPED.contains(&now.rip.wrapping_sub(at));
    let is_mapped = is_after && next.is_some_and(|next| now.rax == next.start);
    Ok(pairs as usize + usize::from(is_mapped))
}

/// Runs the thread to the breakpoint at the end of the loop, or interrupts it after `most`; its
/// registers there. `stops` gets signals that cannot be blocked, to be sent again.
fn end(
    tid: i32,
    leader: i32,
    at: u64,
    most: Duration,
    stops: &mut Vec<Signal>,
) -> Result<libc::user_regs_struct> {
    let begin = Instant::now();
    for _ in 0..MOST_STOPS {
        resume(tid, Resume::Continue(0));
        let stopped = stopped(tid, leader, most.saturating_sub(begin.elapsed()))?;
        let now = ptrace::getregs(Pid::from_raw(tid))?;
        match stopped {
            Stop::Signal(libc::SIGTRAP) if now.rip == at + LOOP.len() as u64 => return Ok(now),
            Stop::Attached if begin.elapsed() > most => return Ok(now),
            // System calls from here are sent to a handler (PR_SET_SYSCALL_USER_DISPATCH).
            Stop::Signal(libc::SIGSYS) => return Err(Errno::EPERM),
            Stop::Signal(libc::SIGTRAP | libc::SIGSEGV | libc::SIGBUS | libc::SIGILL) => {
                return Err(Errno::EIO);
            }
            Stop::Signal(signal) => stops.extend(Signal::try_from(signal).ok()),
            _ => {}
        }
    }
    Err(Errno::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    /// As the comments say, by a decoder: both exits lead to the breakpoint, the last jump to the beginning.
    #[test]
    fn the_loop_is_what_it_says() {
        let all: Vec<_> = Decoder::with_ip(64, &LOOP, 0, DecoderOptions::NONE).iter().collect();
        let targets: Vec<u64> = all
            .iter()
            .filter(|i| i.is_jcc_short_or_near() || i.is_jmp_short())
            .map(|i| i.near_branch_target())
            .collect();
        let last = LOOP.len() as u64 - 1;
        assert_eq!(targets, [last, last, 0]);
        assert_eq!(all.last().map(|i| (i.mnemonic(), i.ip())), Some((Mnemonic::Int3, last)));
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let immediates: Vec<u64> = all
            .iter()
            .filter(|i| i.mnemonic() == Mnemonic::Mov && i.op_count() == 2)
            .filter_map(|i| i.try_immediate(1).ok())
            .collect();
        let rights = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        assert_eq!(immediates, [rights, flags as u64, u64::MAX, libc::SYS_mmap as u64]);
        assert!(LOOP.len() as u64 <= PAIRS);
        let at = |mnemonic| all.iter().find(|i| i.mnemonic() == mnemonic).map(|i| i.ip());
        let call = all.iter().find(|i| i.mnemonic() == Mnemonic::Syscall).unwrap();
        let add = at(Mnemonic::Add).unwrap();
        assert!(MAPPED.contains(&call.next_ip()) && MAPPED.contains(&add));
        assert!(!MAPPED.contains(&call.ip()) && all.iter().all(|i| i.ip() != add + 1));
        assert!(all.iter().filter(|i| i.ip() > add).all(|i| !MAPPED.contains(&i.ip())));
    }

    /// A thread that is still in the loop when its time is over: it is stopped there, what it has mapped is known, and
    /// it goes on with its own registers.
    #[test]
    fn a_thread_that_takes_too_long_is_stopped_and_put_back() {
        use super::super::memory::mappings;
        use super::super::seize::{TASKS, seize};
        use std::io::{Read as _, Write as _};
        use std::os::unix::process::CommandExt as _;
        use std::process::{Command, Stdio};
        let mut cat = Command::new("cat");
        let alarm = || {
            // SAFETY: alarm(2) only takes a number.
            unsafe { libc::alarm(300) };
            Ok(())
        };
        // SAFETY: that call is async-signal-safe. It outlives execve(2), and ends what should hang.
        unsafe { cat.pre_exec(alarm) };
        let mut cat = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let tid = cat.id().cast_signed();
        if let Err(why) = seize(tid, TASKS) {
            eprintln!("skipped: {why}");
            cat.kill().unwrap();
            cat.wait().unwrap();
            return;
        }
        ptrace::interrupt(Pid::from_raw(tid)).unwrap();
        stopped(tid, 0, STEP).unwrap();
        let memory = Memory::open(tid).unwrap();
        // Below the stack and the libraries, where nothing is.
        let (own, many, page) = (0x1000_0000_0000_u64, 400_u64, 4096);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let rights = libc::PROT_READ | libc::PROT_EXEC;
        let arguments = [own, 4 * page, rights as u64, flags.cast_unsigned().into(), u64::MAX, 0];
        let call = libc::SYS_mmap.cast_unsigned();
        let got = super::super::inject::call(tid, 0, &memory, call, arguments);
        assert_eq!(got, Ok(own));
        let before = ptrace::getregs(Pid::from_raw(tid)).unwrap();
        let at = |n: u64| own + (16 + 2 * n) * page;
        // On a busy machine the thread may have finished before it is interrupted, so one more row
        // of ranges is mapped until it has not.
        let mut calls = 0;
        for row in 0..64 {
            let ranges: Vec<Range<u64>> =
                (row * many..(row + 1) * many).map(|n| at(n)..at(n) + page).collect();
            let mut done = 0;
            calls = 0;
            while done < ranges.len() {
                let rest = &ranges[done..];
                done += map_within(Duration::ZERO, tid, 0, &memory, own, rest).unwrap();
                calls += 1;
                assert_eq!(ptrace::getregs(Pid::from_raw(tid)).unwrap(), before);
                let is_ours = |start: u64| ranges.iter().any(|range| range.start == start);
                let mapped = mappings(tid).iter().filter(|m| is_ours(m.start)).count();
                assert_eq!(mapped, done, "after {calls} calls");
            }
            if calls > 1 {
                break;
            }
        }
        assert!(calls > 1, "it was stopped in the middle");
        ptrace::detach(Pid::from_raw(tid), None).unwrap();
        cat.stdin.take().unwrap().write_all(b"as ever").unwrap();
        let mut out = String::new();
        cat.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(out, "as ever");
        assert!(cat.wait().unwrap().success());
    }
}
