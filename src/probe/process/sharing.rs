//! Whether two processes share memory (`unsafe`: kcmp(2), missing in nix).

use std::fs;

/// `KCMP_VM` (linux/kcmp.h).
const KCMP_VM: libc::c_long = 1;

/// Other processes that share the memory of thread `tid` of `process` (`CLONE_VM` without
/// `CLONE_THREAD`).
pub fn sharers(tid: i32, process: i32) -> Vec<i32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // Without kcmp(2), equal mappings may be shared.
    match shares(tid, tid) {
        true => others.filter(|other| *other != process && shares(tid, *other)).collect(),
        false => {
            let own = maps(tid);
            let might = |other: &i32| *other != process && maps(*other) == own;
            if own.is_empty() { Vec::new() } else { others.filter(might).collect() }
        }
    }
}

fn maps(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/maps")).unwrap_or_default()
}

/// Whether two processes share their memory; false if unknown.
pub fn shares(one: i32, other: i32) -> bool {
    // SAFETY: this system call takes numbers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) };
    order == 0
}
