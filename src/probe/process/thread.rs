//! Traced processes and threads as data, the registers of a stopped thread, and breakpoints: in the debug registers
//! of each thread, or as `int3` in the memory of each process where debug registers are refused by the kernel or a
//! virtual machine.
//!
//! A debug register stops one thread before the instruction, without changing code; passing it costs one stop. An `int3`
//! must be removed while the thread that hit it executes the instruction, during which the other threads of its process
//! are stopped.

use super::memory::{Memory, status};
use nix::Result;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;
use pmu::perf::Resume;

/// A traced thread.
#[derive(Debug)]
pub struct Task {
    /// Its process.
    pub process: i32,
    /// How it continues, if it is stopped.
    pub stopped: Option<Resume>,
    /// Its debug registers.
    pub slots: [Option<u64>; 4],
    /// Whether PTRACE_INTERRUPT was sent.
    pub interrupted: bool,
    /// A signal that came during a step.
    pub deferred: Option<i32>,
}

impl Task {
    /// A running thread of `process`.
    pub fn new(process: i32) -> Self {
        Self { process, stopped: None, slots: [None; 4], interrupted: false, deferred: None }
    }
}

/// A traced process.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Address of the block, once its file is mapped.
    pub block: Option<u64>,
    /// Address of the loader's hook for mapped files, until the block is found.
    pub hook: Option<u64>,
    /// System calls still to be traced if it has no hook.
    pub calls: u32,
    /// Addresses with an `int3`, and the replaced bytes.
    pub patched: Vec<(u64, u8)>,
}

impl Process {
    /// Addresses of its breakpoints.
    pub fn stops(&self) -> [Option<u64>; 4] {
        [self.block, self.hook.filter(|_| self.block.is_none()), None, None]
    }
}

/// The process of a thread; the thread itself if unknown.
pub fn process_of(tid: i32) -> i32 {
    status(tid, "Tgid:").unwrap_or(tid)
}

/// The registers of a stopped thread, without vector and x87 registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    /// General-purpose registers in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
    pub general: [u64; 16],
    /// Address of the next instruction.
    pub pointer: u64,
    /// rflags.
    pub flags: u64,
    /// Base of the fs segment.
    pub fs_base: u64,
    /// Base of the gs segment.
    pub gs_base: u64,
}

/// RF and TF of rflags, set by debugging, not by the program (Intel SDM vol. 3, 2.3).
const DEBUG_FLAGS: u64 = 1 << 16 | 1 << 8;

/// The registers of a thread.
pub fn registers(tid: i32) -> Result<Registers> {
    let r = ptrace::getregs(Pid::from_raw(tid))?;
    Ok(Registers {
        general: [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15,
        ],
        pointer: r.rip,
        flags: r.eflags & !DEBUG_FLAGS,
        fs_base: r.fs_base,
        gs_base: r.gs_base,
    })
}

/// Changes registers of a stopped thread.
pub fn change(tid: i32, how: impl FnOnce(&mut libc::user_regs_struct)) -> Result<()> {
    let mut registers = ptrace::getregs(Pid::from_raw(tid))?;
    how(&mut registers);
    ptrace::setregs(Pid::from_raw(tid), registers)
}

/// Lets the next instruction run although a debug register holds its address: sets RF (Intel SDM
/// vol. 3, 19.3.1.1).
pub fn skip_breakpoint(tid: i32) -> Result<()> {
    change(tid, |registers| registers.eflags |= 1 << 16)
}

/// Cause of a SIGTRAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// A debug register or a single step.
    Debug,
    /// An `int3`.
    Int3,
    /// Sent by a process.
    Sent,
}

/// Why a thread has stopped with SIGTRAP.
pub fn trap(tid: i32) -> Trap {
    // include/uapi/asm-generic/siginfo.h; `int3` has SI_KERNEL (arch/x86/kernel/traps.c).
    const SI_KERNEL: i32 = 0x80;
    match ptrace::getsiginfo(Pid::from_raw(tid)).map(|info| info.si_code) {
        Ok(SI_KERNEL) => Trap::Int3,
        Ok(1..) => Trap::Debug,
        _ => Trap::Sent,
    }
}

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

/// Sets the execution breakpoints of a stopped thread in its debug registers 0 to 3, if they differ.
///
/// # Errors
/// The thread is not stopped, or the hardware refuses the addresses, as when all are in use.
pub fn set(tid: i32, task: &mut Task, slots: [Option<u64>; 4]) -> Result<()> {
    if task.slots == slots {
        return Ok(());
    }
    let write = |register: usize, value: u64| {
        let offset = std::mem::offset_of!(libc::user, u_debugreg) + register * 8;
        let offset = std::ptr::without_provenance_mut(offset);
        ptrace::write_user(Pid::from_raw(tid), offset, value as libc::c_long)
    };
    write(7, 0)?;
    let mut control = 0;
    for (number, address) in slots.into_iter().enumerate() {
        if let Some(address) = address {
            write(number, address)?;
            // L0 to L3; type 0 (execution) and length 0 in the upper half (Intel SDM vol. 3, 19.2.4).
            control |= 1 << (2 * number);
        }
    }
    if control != 0 {
        write(7, control)?;
    }
    task.slots = slots;
    Ok(())
}

/// Writes `int3` at the wanted addresses of a process, and removes it elsewhere.
pub fn patch(pid: i32, process: &mut Process, wanted: &[u64]) -> Result<()> {
    let is_wanted = |(address, _): &(u64, u8)| wanted.contains(address);
    if process.patched.len() == wanted.len() && process.patched.iter().all(is_wanted) {
        return Ok(());
    }
    let memory = Memory::open(pid).map_err(|_| Errno::EIO)?;
    let write = |address, byte| memory.write_all(address, &[byte]).map_err(|_| Errno::EIO);
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
