//! Breakpoints in the debug registers of each thread, or as `int3` in the memory of each process
//! where debug registers are refused by the kernel or a virtual machine.
//!
//! A debug register stops one thread before the instruction, without changing code; passing it
//! costs one stop. An `int3` must be removed while the thread that hit it executes the instruction,
//! during which the other threads of its process are stopped.

use super::memory::Memory;
use super::task::{Process, Task};
use super::thread;
use nix::Result;
use nix::errno::Errno;

/// Kind of breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Debug registers.
    #[default]
    Debug,
    /// `int3`.
    Int3,
}

/// The instruction.
const INT3: u8 = 0xcc;

/// Sets the debug registers of a stopped thread, if they differ.
///
/// # Errors
/// The thread is not stopped, or the hardware refuses the addresses.
pub fn set(tid: i32, task: &mut Task, slots: [Option<u64>; 4]) -> Result<()> {
    if task.slots != slots {
        thread::set_debug_registers(tid, slots)?;
        task.slots = slots;
    }
    Ok(())
}

/// Writes `int3` at the wanted addresses of a process, and removes it elsewhere.
///
/// # Errors
/// `EIO`: its memory cannot be opened or written.
pub fn patch(pid: i32, process: &mut Process, wanted: &[u64]) -> Result<()> {
    let is_wanted = |(address, _): &(u64, u8)| wanted.contains(address);
    if process.patched.len() == wanted.len() && process.patched.iter().all(is_wanted) {
        return Ok(());
    }
    let memory = Memory::open(pid).map_err(|_| Errno::EIO)?;
    let write = |address, byte| memory.write(address, byte).map_err(|_| Errno::EIO);
    for (address, byte) in std::mem::take(&mut process.patched) {
        if wanted.contains(&address) {
            process.patched.push((address, byte));
        } else {
            write(address, byte)?;
        }
    }
    for &address in wanted {
        if process.patched.iter().all(|(patched, _)| *patched != address) {
            let byte = *memory.read(address, 1).first().ok_or(Errno::EIO)?;
            write(address, INT3)?;
            process.patched.push((address, byte));
        }
    }
    Ok(())
}
