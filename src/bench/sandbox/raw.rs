//! Raw system calls: between the fork and the worker's own code nothing else may be called.

use std::arch::asm;

/// A system call as the kernel takes it; the result is negative on an error.
///
/// # Safety
/// As dangerous as the call itself: pointers must be valid for what the kernel does with them.
pub unsafe fn call(number: i64, arguments: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the register interface of the kernel; rcx and r11 are the ones it clobbers.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0], in("rsi") arguments[1], in("rdx") arguments[2],
            in("r10") arguments[3], in("r8") arguments[4], in("r9") arguments[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// # Safety
/// Only with options that take a plain number, or the address of a live `i32` to write to.
pub unsafe fn prctl(option: i32, value: u64) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { call(libc::SYS_prctl, [option as u64, value, 0, 0, 0, 0]) }
}
