//! The worker's path from the fork to its own code.
//!
//! Between the fork and the jump into the runtime nothing allocates, locks or touches library
//! state: the forking process may have other threads.

use super::layout as at;
use super::restraints::{EXCEPTIONS, call, close_all, restrain};
use super::runtime::{Entry, offset};
use std::arch::asm;

/// Namespaces of its own for the worker: no user, process, network, mount, IPC or host name of
/// the outside.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// Facts that a new worker needs.
#[derive(Clone, Copy)]
pub struct Plan {
    /// File that holds the region.
    pub region: i32,
    /// Address of the region in the worker.
    pub base: u64,
    /// Processor to stay on.
    pub cpu: Option<usize>,
    /// Leave it open to inspection by the user's own processes.
    pub inspect: bool,
    /// Try to give it namespaces of its own.
    pub namespaces: bool,
    /// Process id of the runner.
    pub parent: u64,
    /// Where the C library has the kernel keep this thread's restartable-sequence state, relative
    /// to the thread pointer, if it has. The worker must take its leave of it: the memory goes.
    pub rseq: Option<i64>,
}

/// The C library's own account of [`Plan::rseq`].
pub fn rseq_offset() -> Option<i64> {
    // SAFETY: looks up a data symbol that, where it exists, is a constant `ptrdiff_t`; the symbol of the size
    // shows whether anything is registered at all.
    unsafe {
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<i64>();
        (!size.is_null() && !offset.is_null() && *size > 0).then(|| *offset)
    }
}

/// Forks a worker and returns its process id, or the negative error number.
pub fn fork(plan: Plan) -> i64 {
    let flags = libc::SIGCHLD | if plan.namespaces { NAMESPACES } else { 0 };
    // SAFETY: a fork without shared memory; the child runs `child` alone, which keeps to raw
    // system calls and never returns.
    unsafe {
        match call(libc::SYS_clone, [flags as u64, 0, 0, 0, 0, 0]) {
            0 => child(plan),
            pid => pid,
        }
    }
}

/// `struct sigaction` of the kernel.
#[repr(C)]
struct Action {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

/// Sets the worker up and enters the runtime. Ends the process where a layer that is not
/// negotiable cannot be had.
///
/// # Safety
/// Only in a fresh child process of one thread.
unsafe fn child(plan: Plan) -> ! {
    let base = plan.base;
    let fixed = (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE) as u64;
    let code = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    let data = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let room = at::CONTEXT_PAGE as u64;
    let rest = at::SIZE as u64 - room;
    let file = plan.region as u64;
    // SAFETY: this process is ours alone and is about to lose all memory but the region; every
    // pointer passed is to a live local.
    unsafe {
        demand(call(libc::SYS_mmap, [base, room, code, fixed, file, 0]) == base as i64, 101);
        let data = call(libc::SYS_mmap, [base + room, rest, data, fixed, file, room]);
        demand(data == (base + room) as i64, 102);
        let (read, write) = (libc::MADV_POPULATE_READ as u64, libc::MADV_POPULATE_WRITE as u64);
        call(libc::SYS_madvise, [base, room, read, 0, 0, 0]);
        call(libc::SYS_madvise, [base + room, at::USUAL as u64 - room, write, 0, 0, 0]);
        restrain(base, plan.inspect);
        // A parent that ended before that was set ends nobody.
        let parent = call(libc::SYS_getppid, [0; 6]) as u64;
        demand(parent == plan.parent || parent == 0, 104);
        if let Some(offset) = plan.rseq {
            demand(leave_rseq(offset), 109);
        }
        signals(base);
        let set = |what: u64, to| call(libc::SYS_arch_prctl, [what, to, 0, 0, 0, 0]);
        demand(set(0x1002, at::FS_BASE) == 0 && set(0x1001, at::GS_BASE) == 0, 106);
        if let Some(cpu) = plan.cpu {
            let mut mask = [0u64; 16];
            mask[cpu / 64 % 16] = 1 << (cpu % 64);
            let mask = mask.as_ptr() as u64;
            call(libc::SYS_sched_setaffinity, [0, 128, mask, 0, 0, 0]);
        }
        close_all(base, plan.region);
        asm!(
            "jmp {enter}",
            enter = in(reg) base + offset(Entry::Enter) as u64,
            options(noreturn)
        )
    }
}

/// Unregisters the restartable-sequence area; whether that worked.
///
/// # Safety
/// Only in the worker, with the C library's own offset.
unsafe fn leave_rseq(offset: i64) -> bool {
    let thread: i64;
    // SAFETY: the first word at fs is the thread pointer itself (x86-64 ABI); the kernel checks address, length
    // and signature, and a wrong length only fails.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly));
        let area = (thread + offset) as u64;
        let lengths = [32, 64, 96, 128, 160, 192, 224, 256];
        lengths.iter().any(|len| call(libc::SYS_rseq, [area, *len, 1, 0x5305_3053, 0, 0]) == 0)
    }
}

/// Ends the process with `status` unless `held`.
///
/// # Safety
/// Only in the worker: it ends the process without any clean-up.
unsafe fn demand(held: bool, status: u64) {
    if !held {
        // SAFETY: ends this process.
        unsafe { call(libc::SYS_exit_group, [status, 0, 0, 0, 0, 0]) };
    }
}

/// Exceptions go to the runtime, on a stack of their own.
///
/// # Safety
/// Only in the worker, whose region lies at `base`.
unsafe fn signals(base: u64) {
    let stack = libc::stack_t {
        ss_sp: (base + at::SIGNAL_STACK as u64) as *mut libc::c_void,
        ss_flags: 0,
        ss_size: at::SIGNAL_STACK_SIZE,
    };
    let flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    let action = Action {
        handler: base + offset(Entry::Signal) as u64,
        flags: flags as u64 | 0x0400_0000, // SA_RESTORER, which the kernel insists on
        restorer: 0,
        mask: 0,
    };
    // SAFETY: all pointers are to live locals of the kernel's layout.
    unsafe {
        let stack = &raw const stack as u64;
        demand(call(libc::SYS_sigaltstack, [stack, 0, 0, 0, 0, 0]) == 0, 107);
        for signal in EXCEPTIONS {
            let action = &raw const action as u64;
            let done = call(libc::SYS_rt_sigaction, [signal as u64, action, 0, 8, 0, 0]);
            demand(done == 0, 108);
        }
    }
}
