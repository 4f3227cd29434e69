//! Unmaps our memory from processes with restored code, if no context returns to it.
//!
//! While a thread is in a trampoline, or a saved context has an address in one, the memory stays. (Threads are not
//! stepped out: a signal in between can leave the SIGTRAP of a step pending, which ends the program.) The kernel (for
//! signal handlers) and programs that switch contexts save addresses as words. As in conservative garbage collectors,
//! every word may be an address.

use super::halting::{Halting, Obstacle};
use super::memory::{Mapping, Memory, PAGE, mappings};
use super::seize::pointer;
use nix::sys::ptrace;
use nix::unistd::Pid;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Unmaps it, with all threads stopped, after a search for saved addresses if there `may_be` some; why some of it stays.
pub fn vacate(halting: &mut Halting<'_>, may_be: bool) -> Option<Obstacle> {
    let all: Vec<i32> = halting.processes().into_keys().collect();
    all.into_iter().find_map(|process| of_process(halting, process, may_be).err())
}

fn of_process(halting: &mut Halting<'_>, process: i32, may_be: bool) -> Result<(), Obstacle> {
    let ranges = halting.following.follower.unused(process).ok_or(Obstacle::Leads)?;
    if ranges.is_empty() {
        return Ok(());
    }
    let none = Obstacle::NoCalls { is_after: true };
    let memory = Memory::open(halting.fit(process).ok_or(none.clone())?.tid)
        .map_err(|e| Obstacle::Unopened(e.into()))?;
    // Threads of all processes: one in vfork(2) has the memory of its parent.
    for tid in halting.following.tasks.keys().copied().collect::<Vec<_>>() {
        if halting.following.ending.contains(&tid) {
            continue;
        }
        match halting.halted.contains_key(&tid) {
            true => {
                let registers = ptrace::getregs(Pid::from_raw(tid)).map_err(Obstacle::Registers)?;
                if is_in(registers.rip, &ranges) {
                    return Err(Obstacle::Inside);
                }
            }
            false if pointer(tid).is_none_or(|at| is_in(at, &ranges)) => {
                return Err(Obstacle::Waits);
            }
            false => {}
        }
    }
    let tracee = halting.fit(process).ok_or(none)?;
    let mappings = mappings(tracee.tid);
    let stack = |tid: &i32| {
        let registers = ptrace::getregs(Pid::from_raw(*tid)).ok()?;
        Some(Stack { pointer: registers.rsp, control: registers.fs_base })
    };
    let stacks: Vec<Stack> = halting.halted.keys().filter_map(stack).collect();
    let held = may_be.then(|| holds(tracee.tid, &memory, &mappings, &ranges, &stacks));
    if let Some(at) = held.transpose()?.flatten() {
        return Err(Obstacle::Held(at));
    }
    match tracee.unmap(&memory, &mappings, &ranges) {
        0 => Ok(()),
        left => Err(Obstacle::Mapped(left)),
    }
}

fn is_in(address: u64, ranges: &[Range<u64>]) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

/// Most bytes searched: a process is stopped for about a millisecond per MiB.
const MOST: u64 = 64 << 20;
/// Most bytes of addresses checked for memory.
const MOST_ADDRESSES: u64 = 8 << 30;
/// Bytes below a stack pointer that are in use (System V ABI, AMD64, 3.2.2).
const RED_ZONE: u64 = 128;
/// Pages read at once.
const AT_ONCE: usize = 256;
/// Bits of a page in memory or swapped out (Linux, Documentation/admin-guide/mm/pagemap.rst).
const IS_THERE: u64 = 0b11 << 62;

/// The stack of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Stack {
    /// Its stack pointer.
    pub pointer: u64,
    /// Its thread control block, which pthread_create(3) puts above the stack.
    pub control: u64,
}

impl Stack {
    /// Whether a mapping is this stack: that of the first thread, or one with a guard below and the
    /// control block above.
    fn is_in(&self, mapping: &Mapping, all: &[Mapping]) -> bool {
        let range = mapping.start..mapping.end;
        let is_guard = |m: &Mapping| m.end == mapping.start && m.rights.starts_with("---");
        let is_own = || {
            self.control > self.pointer && range.contains(&self.control) && all.iter().any(is_guard)
        };
        range.contains(&self.pointer) && (mapping.path == "[stack]" || is_own())
    }
}

/// The address of a word that is an address in one of these ranges. Stack below the red zone of a
/// thread's stack pointer is unused and skipped.
pub fn holds(
    tid: i32,
    memory: &Memory,
    mappings: &[Mapping],
    ranges: &[Range<u64>],
    stacks: &[Stack],
) -> Result<Option<u64>, Obstacle> {
    let is_searched = |m: &&Mapping| may_save(m) && !is_in(m.start, ranges);
    let all: Vec<&Mapping> = mappings.iter().filter(is_searched).collect();
    if all.iter().map(|m| m.end - m.start).sum::<u64>() > MOST_ADDRESSES {
        return Err(Obstacle::Addresses);
    }
    let unknown = |e: std::io::Error| Obstacle::Unseen(e.into());
    let map = File::open(format!("/proc/{tid}/pagemap")).map_err(unknown)?;
    let mut left = MOST / PAGE as u64;
    for mapping in all {
        let lowest = stacks
            .iter()
            .filter(|stack| stack.is_in(mapping, mappings))
            .map(|stack| stack.pointer)
            .min();
        let lowest = lowest.map(|pointer| pointer.saturating_sub(RED_ZONE));
        let mut page = lowest.unwrap_or(0).max(mapping.start) / PAGE as u64;
        let end = mapping.end / PAGE as u64;
        while page < end {
            let mut states = vec![0; 8 * AT_ONCE.min((end - page) as usize)];
            map.read_exact_at(&mut states, page * 8).map_err(unknown)?;
            // Shared memory may exist although this process has not used it lately.
            let is_shared = mapping.rights.ends_with('s');
            let states = states.as_chunks().0.iter().map(|state| u64::from_le_bytes(*state));
            let there: Vec<bool> = states.map(|s| is_shared || s & IS_THERE != 0).collect();
            for run in runs(&there) {
                let length = run.len();
                left = left.checked_sub(length as u64).ok_or(Obstacle::Memory(MOST >> 20))?;
                let start = (page + run.start as u64) * PAGE as u64;
                let bytes = memory.read(start, length * PAGE);
                if bytes.len() < length * PAGE {
                    return Err(Obstacle::Unread);
                }
                // The first page begins with unused stack.
                let skipped = lowest.map_or(0, |sp| sp.saturating_sub(start) as usize / 8);
                let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
                let found = words.enumerate().skip(skipped).find(|(_, word)| is_in(*word, ranges));
                if let Some((number, _)) = found {
                    return Ok(Some(start + 8 * number as u64));
                }
            }
            page += there.len() as u64;
        }
    }
    Ok(None)
}

/// Whether contexts may be saved in a mapping: not in the kernel's own, in read-only files, and in
/// devices.
fn may_save(mapping: &Mapping) -> bool {
    let path = mapping.path.as_str();
    let is_written = mapping.is_writable();
    let is_readable = mapping.rights.starts_with('r') || is_written;
    let is_device = path.starts_with("/dev/") && !path.starts_with("/dev/shm");
    let is_kernel = path.starts_with("[v");
    is_readable && !is_kernel && !is_device && (is_written || !path.starts_with('/'))
}

/// Runs of existing pages.
fn runs(there: &[bool]) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for at in (0..there.len()).filter(|at| there[*at]) {
        match all.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => all.push(at..at + 1),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::memory::mappings;
    use super::*;

    #[test]
    fn words_in_memory_are_found_and_others_are_not() {
        let pid = std::process::id().cast_signed();
        let address = 0x1234_5670_0000_u64;
        let memory = Memory::open(pid).unwrap();
        // On the heap, computed here, so that no other word of the program has this value.
        let held = Box::new(std::hint::black_box(address) + 0x123);
        // Only the mappings around it: a test runner has many.
        let at = std::ptr::from_ref(&*held).addr() as u64;
        let mut all = mappings(pid);
        all.retain(|m| (m.start..m.end).contains(&at));
        let found = |range: Range<u64>| holds(pid, &memory, &all, &[range], &[]);
        assert_eq!(found(*held..*held + 1), Ok(Some(at)));
        assert_eq!(all.len(), 1);
        assert_eq!(runs(&[true, true, false, true]), [0..2, 3..4]);
    }
}
