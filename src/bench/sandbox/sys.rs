//! Raw system calls and the worker's path from the fork to its own code.
//!
//! Between the fork and the jump into the runtime nothing allocates, locks or touches library
//! state: the forking process may have other threads.

use super::layout as at;
use super::runtime::{Entry, offset};
use std::arch::asm;

/// A system call as the kernel takes it; the result is negative on an error.
///
/// # Safety
/// As dangerous as the call itself: pointers must be valid for what the kernel does with them.
unsafe fn call(number: i64, arguments: [u64; 6]) -> i64 {
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

/// Namespaces of its own for the worker: no user, process, network, mount, IPC or host name of
/// the outside.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// What a new worker needs to know.
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
    // SAFETY: looks up a data symbol that, where it exists, is a constant `ptrdiff_t`; its
    // neighbour tells whether anything is registered at all.
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
    let fixed = (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_POPULATE) as u64;
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
        call(libc::SYS_setsid, [0; 6]);
        demand(prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64) == 0, 103);
        let parent = call(libc::SYS_getppid, [0; 6]) as u64;
        demand(parent == plan.parent || parent == 0, 104);
        demand(prctl(libc::PR_SET_NO_NEW_PRIVS, 1) == 0, 105);
        // perf_event_open(2) asks for the right to inspect, which takes a dumpable process. No
        // core is written all the same: see `limits`.
        prctl(libc::PR_SET_DUMPABLE, u64::from(plan.inspect));
        if let Some(offset) = plan.rseq {
            demand(leave_rseq(offset), 109);
        }
        limits();
        signals(base);
        let set = |what: u64, to| call(libc::SYS_arch_prctl, [what, to, 0, 0, 0, 0]);
        demand(set(0x1002, at::FS_BASE) == 0 && set(0x1001, at::GS_BASE) == 0, 106);
        if let Some(cpu) = plan.cpu {
            let mut mask = [0u64; 16];
            mask[cpu / 64 % 16] = 1 << (cpu % 64);
            let mask = mask.as_ptr() as u64;
            call(libc::SYS_sched_setaffinity, [0, 128, mask, 0, 0, 0]);
        }
        if call(libc::SYS_close_range, [0, u64::from(u32::MAX), 0, 0, 0, 0]) != 0 {
            for descriptor in 0..65536 {
                call(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0]);
            }
        }
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
    // SAFETY: the first word behind fs is the thread pointer itself (x86-64 ABI); the kernel
    // checks address, length and signature, and a wrong length only fails.
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

/// # Safety
/// Only with options that take a plain number.
unsafe fn prctl(option: i32, value: u64) -> i64 {
    // SAFETY: no pointer is passed.
    unsafe { call(libc::SYS_prctl, [option as u64, value, 0, 0, 0, 0]) }
}

/// No files, no processes, no cores, no locked memory, and little memory at all.
///
/// # Safety
/// Only in the worker.
unsafe fn limits() {
    let limits = [
        // 1, not 0: that also keeps the kernel from starting a core handler
        // (Linux, fs/coredump.c).
        (libc::RLIMIT_CORE, 1),
        (libc::RLIMIT_FSIZE, 0),
        (libc::RLIMIT_NOFILE, 0),
        (libc::RLIMIT_NPROC, 0),
        (libc::RLIMIT_MEMLOCK, 0),
        (libc::RLIMIT_STACK, 0),
        (libc::RLIMIT_AS, (at::SIZE + 2 * at::PAGES_MAX * at::PAGE) as u64),
    ];
    for (what, limit) in limits {
        let limit = [limit, limit];
        // SAFETY: the pointer is to a live pair of numbers.
        unsafe {
            call(libc::SYS_setrlimit, [u64::from(what), limit.as_ptr() as u64, 0, 0, 0, 0]);
        }
    }
}

/// Exceptions go to the runtime, on a stack of their own; every other signal is blocked.
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
    let mut blocked = !0u64;
    // SAFETY: all pointers are to live locals of the kernel's layout.
    unsafe {
        let stack = &raw const stack as u64;
        demand(call(libc::SYS_sigaltstack, [stack, 0, 0, 0, 0, 0]) == 0, 107);
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP] {
            blocked &= !(1 << (signal - 1));
            let action = &raw const action as u64;
            let done = call(libc::SYS_rt_sigaction, [signal as u64, action, 0, 8, 0, 0]);
            demand(done == 0, 108);
        }
        let mask = &raw const blocked as u64;
        call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, mask, 0, 8, 0, 0]);
    }
}
