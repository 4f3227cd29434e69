//! Whether two processes have the same memory (`unsafe`: kcmp(2), which nix has not).

use nix::errno::Errno;
use std::fs;

/// `KCMP_VM` (linux/kcmp.h).
const KCMP_VM: libc::c_long = 1;

/// A child or the parent of process `pid` with the same memory (`CLONE_VM` without `CLONE_THREAD`), which
/// runs on while the threads of `pid` are stopped. Others are not looked for.
pub fn shares_with(pid: i32, threads: impl Iterator<Item = i32>) -> Option<i32> {
    let children = threads.flat_map(|tid| {
        let all = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children"));
        let all = all.unwrap_or_default();
        all.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<i32>>()
    });
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let parent = parent.and_then(|parent| parent.trim().parse().ok());
    // A kernel without kcmp does not tell: then a child might.
    let might = |child: &i32| is_same(pid, *child) || Errno::last() == Errno::ENOSYS;
    let mut children = children;
    children.find(might).or(parent.filter(|parent| is_same(pid, *parent)))
}

fn is_same(one: i32, other: i32) -> bool {
    // SAFETY: this system call takes numbers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) };
    order == 0
}
