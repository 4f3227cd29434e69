//! Blocked signals and the restartable sequence of a stopped thread (`unsafe`: ptrace requests
//! missing in nix).

use super::memory::Memory;
use nix::Result;
use nix::errno::Errno;

/// `PTRACE_GETSIGMASK`, `PTRACE_SETSIGMASK` and `PTRACE_GET_RSEQ_CONFIGURATION` (linux/ptrace.h).
const GET_MASK: libc::c_uint = 0x420a;
const SET_MASK: libc::c_uint = 0x420b;
const GET_RSEQ: libc::c_uint = 0x420f;
/// Offset of `rseq_cs` in `struct rseq` (linux/rseq.h).
const SEQUENCE: u64 = 8;

/// The blocked signals of a stopped thread; in sigsuspend(2) and the like those blocked otherwise.
///
/// # Errors
/// `ESRCH`: it is not stopped, or has ended.
pub fn mask(tid: i32) -> Result<u64> {
    let mut mask = 0_u64;
    // SAFETY: the kernel writes as many bytes as the third argument says to where the last one points.
    let got = unsafe { libc::ptrace(GET_MASK, tid, size_of::<u64>(), &raw mut mask) };
    Errno::result(got).map(|_| mask)
}

/// Blocks these signals, and no others, in a stopped thread.
///
/// # Errors
/// `ESRCH`: it is not stopped, or has ended.
pub fn set_mask(tid: i32, mask: u64) -> Result<()> {
    // SAFETY: the kernel reads as many bytes as the third argument says from where the last one points.
    let got = unsafe { libc::ptrace(SET_MASK, tid, size_of::<u64>(), &raw const mask) };
    Errno::result(got).map(drop)
}

/// Whether a stopped thread may be inside a restartable sequence (rseq(2)): moved away and back, it
/// would continue where it must restart.
pub fn may_restart(tid: i32, memory: &Memory) -> bool {
    // struct ptrace_rseq_configuration: address of struct rseq, its size, and more.
    let mut configuration = [0_u64; 3];
    let length = size_of_val(&configuration);
    // SAFETY: the kernel writes at most as many bytes as the third argument says to the array.
    let got = unsafe { libc::ptrace(GET_RSEQ, tid, length, configuration.as_mut_ptr()) };
    if got < 0 || configuration[0] == 0 {
        // Not registered, or a kernel before 5.13, on which few allocators use it.
        return false;
    }
    memory.read(configuration[0] + SEQUENCE, 8) != [0; 8]
}
