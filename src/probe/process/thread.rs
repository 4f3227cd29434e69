//! Registers and debug registers of a stopped thread.

use nix::Result;
use nix::sys::ptrace;
use nix::unistd::Pid;

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
///
/// # Errors
/// `ESRCH`: it is not stopped, or has ended.
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

/// Moves the instruction pointer.
///
/// # Errors
/// `ESRCH`: it is not stopped, or has ended.
pub fn set_pointer(tid: i32, address: u64) -> Result<()> {
    let mut registers = ptrace::getregs(Pid::from_raw(tid))?;
    registers.rip = address;
    ptrace::setregs(Pid::from_raw(tid), registers)
}

/// Lets the next instruction run although a debug register holds its address: sets RF (Intel SDM
/// vol. 3, 19.3.1.1).
///
/// # Errors
/// `ESRCH`: it is not stopped, or has ended.
pub fn skip_breakpoint(tid: i32) -> Result<()> {
    let mut registers = ptrace::getregs(Pid::from_raw(tid))?;
    registers.eflags |= 1 << 16;
    ptrace::setregs(Pid::from_raw(tid), registers)
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

/// Sets the execution breakpoints of a thread in its debug registers 0 to 3.
///
/// # Errors
/// `ESRCH`: it is not stopped, or has ended; others if the hardware refuses, as when all are in
/// use.
pub fn set_debug_registers(tid: i32, addresses: [Option<u64>; 4]) -> Result<()> {
    let write = |register: usize, value: u64| {
        let offset = std::mem::offset_of!(libc::user, u_debugreg) + register * 8;
        let offset = std::ptr::without_provenance_mut(offset);
        ptrace::write_user(Pid::from_raw(tid), offset, value as libc::c_long)
    };
    write(7, 0)?;
    let mut control = 0;
    for (number, address) in addresses.into_iter().enumerate() {
        if let Some(address) = address {
            write(number, address)?;
            // L0 to L3; type 0 (execution) and length 0 in the upper half (Intel SDM vol. 3, 19.2.4).
            control |= 1 << (2 * number);
        }
    }
    if control == 0 { Ok(()) } else { write(7, control) }
}
