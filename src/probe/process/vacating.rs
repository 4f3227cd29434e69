//! Unmaps our memory from processes with restored code, if no context returns to it.
//!
//! While a thread is in a trampoline, or a saved context has an address in one, the memory stays.
//! (Threads are not stepped out: a signal in between can leave the SIGTRAP of a step pending, which
//! ends the program.)

use super::halting::Halting;
use super::held::{Stack, holds};
use super::living::pointer;
use super::maps::mappings;
use super::memory::Memory;
use super::obstacle::Obstacle;
use nix::sys::ptrace;
use nix::unistd::Pid;
use std::ops::Range;

/// Unmaps it, with all threads stopped; why some of it stays.
pub fn vacate(halting: &mut Halting<'_>) -> Option<Obstacle> {
    let all: Vec<i32> = halting.processes().into_keys().collect();
    all.into_iter().find_map(|process| of_process(halting, process).err())
}

fn of_process(halting: &mut Halting<'_>, process: i32) -> Result<(), Obstacle> {
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
    let held = holds(tracee.tid, &memory, &mappings, &ranges, &stacks)?;
    if let Some(at) = held {
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
