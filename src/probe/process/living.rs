//! A live process before it is traced.

use super::memory::Memory;
use super::seize::{other_tracer, refused};
use nix::errno::Errno;
use std::fs;
use tma::{Error, Result};

/// A live process.
#[derive(Debug, Clone, Copy)]
pub struct Living {
    /// Its number.
    pub pid: i32,
    /// Start time: the number may be reused.
    started: u64,
}

impl Living {
    /// Finds the process with this number, if it may be traced.
    ///
    /// # Errors
    /// There is none, or it may not be traced.
    pub fn find(pid: i32) -> Result<Self> {
        let none = || Error::failed(format!("there is no process {pid}"));
        let living = Self { pid, started: started(pid).ok_or_else(none)? };
        let tid = living.thread().ok_or_else(none)?;
        let refused = |errno| refused(&format!("process {pid}"), tid, errno);
        if other_tracer(tid).is_some() {
            return Err(refused(Errno::EPERM));
        }
        // Access to its memory needs the same permission as tracing (proc_pid_mem(5)).
        match Memory::open(tid).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0))) {
            Err(errno @ (Errno::EPERM | Errno::EACCES)) => Err(refused(errno)),
            Err(_) => Err(none()),
            Ok(_) => Ok(living),
        }
    }

    /// A thread that has not ended; the first may have.
    pub fn thread(&self) -> Option<i32> {
        if started(self.pid) != Some(self.started) {
            return None;
        }
        threads(self.pid).into_iter().find(|tid| !has_ended(*tid))
    }

    /// Waits until our tracing thread has left it.
    pub fn settle(&self) {
        for tid in threads(self.pid) {
            other_tracer(tid);
        }
    }

    /// The error when it has ended meanwhile.
    pub fn ended(&self, meanwhile: &str) -> Error {
        Error::failed(format!("process {} has ended {meanwhile}", self.pid))
            .because("nothing of it was counted")
    }
}

/// The threads of a process.
pub fn threads(pid: i32) -> Vec<i32> {
    let all = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The fields of proc_pid_stat(5) from the third on.
fn stat(tid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.trim_start().to_owned())
}

/// Field 22: start time.
fn started(pid: i32) -> Option<u64> {
    stat(pid)?.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// The state of a thread.
pub fn state(tid: i32) -> Option<char> {
    stat(tid)?.chars().next()
}

/// Whether a thread is gone or a zombie.
pub fn has_ended(tid: i32) -> bool {
    matches!(state(tid), None | Some('Z' | 'X'))
}

/// The address to which a thread that waits in the kernel will return (proc_pid_syscall(5)).
pub fn pointer(tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
    u64::from_str_radix(text.split_whitespace().last()?.strip_prefix("0x")?, 16).ok()
}
