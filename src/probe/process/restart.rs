//! Restarts system calls that a stop interrupted.
//!
//! The kernel restarts most of them. Some return EINTR after any interruption, even a stop by
//! ptrace or an ignored signal (signal(7), "Interruption of system calls and library functions by
//! stop signals"). While a thread is stopped in the check for signals, the kernel has not yet
//! evaluated the result: with ERESTARTNOHAND in its place it makes the call again, unless a handler
//! runs: then it returns EINTR.

use nix::sys::ptrace;
use nix::unistd::Pid;

/// `ERESTARTNOHAND` (linux/errno.h).
const RESTART: i64 = 514;

/// `io_pgetevents`, missing in libc (asm/unistd_64.h).
const IO_PGETEVENTS: libc::c_long = 333;

/// Calls that return EINTR without any effect and may be made again.
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

/// Whether to restart a call with these `rax` and `orig_rax`.
fn is_interrupted(result: u64, call: u64) -> bool {
    // Outside of system calls `orig_rax` is -1.
    result.cast_signed() == i64::from(-libc::EINTR) && CALLS.contains(&call.cast_signed())
}

/// Has the kernel restart the system call in which a thread was stopped.
pub fn restart(tid: i32) {
    let pid = Pid::from_raw(tid);
    let Ok(mut registers) = ptrace::getregs(pid) else { return };
    if is_interrupted(registers.rax, registers.orig_rax) {
        registers.rax = (-RESTART).cast_unsigned();
        // If this fails, the thread was killed.
        let _ = ptrace::setregs(pid, registers);
    }
}
