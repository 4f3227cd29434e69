//! One file in one process: where its shared memory and trampolines are, and what was patched.

use super::mapped::Shared;
use super::origins::Trampolines;
use super::patched::Patched;
use super::probes::Probes;
use super::tasks::Prefixes;
use super::unprobed::Unprobed;
use crate::plan::PAGE;
use crate::process::Memory;
use std::ops::Range;
use std::sync::Arc;

/// A file that was patched in a process.
pub struct Instance<P: Probes> {
    /// Index of its target.
    pub target: usize,
    /// By function of the target; none where it was not patched.
    pub plans: Vec<Result<P::Plan, Unprobed>>,
    /// What its addresses are more than those in the file.
    pub bias: u64,
    /// What its trampolines write.
    pub shared: Arc<Shared>,
    /// All memory of ours.
    pub(super) ranges: Vec<Range<u64>>,
    /// Addresses of the prefixes of all counts.
    pub(super) prefixes: Vec<u64>,
    /// Address of the number of the process.
    pub(super) process: Option<u64>,
    /// Its code.
    pub code: Patched,
    /// What the parts of trampolines stand for, until they are asked for.
    pub origins: Vec<(Range<u64>, u64)>,
    /// How many probes of an earlier run were taken back.
    pub restored: usize,
}

impl<P: Probes> Instance<P> {
    /// Changes the prefixes of all counts: another thread, or a process with the same counters, is to run.
    ///
    /// # Errors
    /// Some are as before.
    pub(super) fn change(&self, memory: &Memory, prefix: Prefixes) -> Result<(), Unprobed> {
        change(memory, &self.prefixes, prefix).map_err(|e| Unprobed::Prefixes(e.into()))
    }

    /// Tells the trampolines in a copy of a process which one it is.
    ///
    /// # Errors
    /// They do not know it.
    pub fn number(&self, memory: &Memory, process: i32) -> Result<(), Unprobed> {
        let write = |at| memory.write_alive(at, &process.to_le_bytes());
        self.process.map_or(Ok(()), write).map_err(|e| Unprobed::Number(e.into()))
    }

    /// The address in the file of an instruction that is executed at this one, if it is of this file: in its code, or in
    /// a trampoline for it.
    pub(super) fn original(&self, address: u64, trampolines: &[Trampolines]) -> Option<u64> {
        if self.ranges.iter().any(|range| range.contains(&address)) {
            return trampolines.iter().find_map(|of| of.original(address));
        }
        self.code.has(address).then(|| address.wrapping_sub(self.bias))
    }

    /// How many probes it has.
    pub fn probes(&self) -> usize {
        self.code.jumps().len()
    }
}

/// Writes the prefixes of all counts, page by page.
fn change(memory: &Memory, prefixes: &[u64], to: Prefixes) -> std::io::Result<()> {
    for run in prefixes.chunk_by(|one, next| one / PAGE == next / PAGE) {
        let (start, end) = (run[0], run[run.len() - 1] + to.len() as u64);
        let mut bytes = memory.read(start, (end - start) as usize);
        if bytes.is_empty() {
            // The process may have ended; else the error of this.
            memory.write_alive(start, &to)?;
            continue;
        }
        for prefix in run {
            let at = (prefix - start) as usize;
            if let Some(own) = bytes.get_mut(at..at + to.len()) {
                own.copy_from_slice(&to);
            }
        }
        memory.write_alive(start, &bytes)?;
    }
    Ok(())
}
