//! Traced processes and threads as data.

use pmu::perf::Resume;
use std::fs;

/// A traced thread.
#[derive(Debug)]
pub struct Task {
    /// Its process.
    pub process: i32,
    /// How it continues, if it is stopped.
    pub stopped: Option<Resume>,
    /// Its debug registers.
    pub slots: [Option<u64>; 4],
    /// Whether PTRACE_INTERRUPT was sent.
    pub interrupted: bool,
    /// A signal that came during a step.
    pub deferred: Option<i32>,
}

impl Task {
    /// A running thread of `process`.
    pub fn new(process: i32) -> Self {
        Self { process, stopped: None, slots: [None; 4], interrupted: false, deferred: None }
    }
}

/// A traced process.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Address of the block, once its file is mapped.
    pub block: Option<u64>,
    /// Address of the loader's hook for mapped files, until the block is found.
    pub hook: Option<u64>,
    /// System calls still to be traced if it has no hook.
    pub calls: u32,
    /// Addresses with an `int3`, and the replaced bytes.
    pub patched: Vec<(u64, u8)>,
}

impl Process {
    /// Addresses of its breakpoints.
    pub fn stops(&self) -> [Option<u64>; 4] {
        [self.block, self.hook.filter(|_| self.block.is_none()), None, None]
    }
}

/// The process of a thread; the thread itself if unknown.
pub fn process_of(tid: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    group.and_then(|number| number.trim().parse().ok()).unwrap_or(tid)
}
