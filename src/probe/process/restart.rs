//! System calls that a stop has interrupted, restarted.
//!
//! The kernel restarts most of them. Some return EINTR whatever has interrupted them, also for
//! a stop by ptrace and a signal that is ignored (signal(7), "Interruption of system calls and library
//! functions by stop signals"). While a thread is stopped in the search for signals, the result is still
//! to be judged: with ERESTARTNOHAND in its place the kernel makes the call again, unless a handler runs,
//! and gives EINTR then.

use nix::sys::ptrace;
use nix::unistd::Pid;

/// `ERESTARTNOHAND` (linux/errno.h).
const RESTART: i64 = 514;

/// `io_pgetevents`, which libc has not (asm/unistd_64.h).
const IO_PGETEVENTS: libc::c_long = 333;

/// The calls that return EINTR without having done anything, and may be made again.
const CALLS: [libc::c_long; 23] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    IO_PGETEVENTS,
    libc::SYS_io_uring_enter,
    // Sockets with a timeout (socket(7), SO_RCVTIMEO and SO_SNDTIMEO).
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendfile,
];

/// Whether a call with these `rax` and `orig_rax` is to be made again.
fn is_interrupted(result: u64, call: u64) -> bool {
    // Outside of system calls the second one is -1.
    result.cast_signed() == i64::from(-libc::EINTR) && CALLS.contains(&call.cast_signed())
}

/// Has the kernel restart the system call that a thread was stopped in.
pub fn restart(tid: i32) {
    let pid = Pid::from_raw(tid);
    let Ok(mut registers) = ptrace::getregs(pid) else { return };
    if is_interrupted(registers.rax, registers.orig_rax) {
        registers.rax = (-RESTART).cast_unsigned();
        // Killed meanwhile, or as the kernel has it.
        let _ = ptrace::setregs(pid, registers);
    }
}
