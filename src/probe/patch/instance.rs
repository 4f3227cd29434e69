//! One patched file in one process: its shared memory, trampolines and code, and the original code of addresses in
//! trampolines.

use super::mapped::Shared;
use super::patched::Patched;
use super::probes::Probes;
use super::tasks::Prefixes;
use super::unprobed::Unprobed;
use crate::plan::PAGE;
use crate::process::Memory;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// A file that was patched in a process.
pub struct Instance<P: Probes> {
    /// Index of its target.
    pub target: usize,
    /// Plan of each function of the target, or why it was not patched.
    pub plans: Vec<Result<P::Plan, Unprobed>>,
    /// Added to a p_vaddr.
    pub bias: u64,
    /// Memory that its trampolines write.
    pub shared: Arc<Shared>,
    /// All our mappings.
    pub(super) ranges: Vec<Range<u64>>,
    /// Addresses of the prefixes of all counts.
    pub(super) prefixes: Vec<u64>,
    /// Address of the number of the process.
    pub(super) process: Option<u64>,
    /// Its patched code.
    pub code: Patched,
    /// Addresses in trampolines → original p_vaddr, until they are taken.
    pub origins: Vec<(Range<u64>, u64)>,
    /// Number of probes of an earlier run that were removed.
    pub restored: usize,
}

impl<P: Probes> Instance<P> {
    /// Changes the prefixes of all counts, before another thread or process with the same counters
    /// runs.
    pub(super) fn change(&self, memory: &Memory, to: Prefixes) -> Result<(), Unprobed> {
        for run in self.prefixes.chunk_by(|one, next| one / PAGE == next / PAGE) {
            let (start, end) = (run[0], run[run.len() - 1] + to.len() as u64);
            let mut bytes = memory.read(start, (end - start) as usize);
            if bytes.is_empty() {
                // No error if the process has ended.
                bytes = to.to_vec();
            }
            for prefix in run {
                let at = (prefix - start) as usize;
                if let Some(own) = bytes.get_mut(at..at + to.len()) {
                    own.copy_from_slice(&to);
                }
            }
            memory.write_alive(start, &bytes).map_err(|e| Unprobed::Prefixes(e.into()))?;
        }
        Ok(())
    }

    /// Tells the trampolines in a forked process its number.
    pub fn number(&self, memory: &Memory, process: i32) -> Result<(), Unprobed> {
        let write = |at| memory.write_alive(at, &process.to_le_bytes());
        self.process.map_or(Ok(()), write).map_err(|e| Unprobed::Number(e.into()))
    }

    /// The p_vaddr of the instruction executed at an address, in this file's code or in a
    /// trampoline for it.
    pub(super) fn original(&self, address: u64, trampolines: &[Trampolines]) -> Option<u64> {
        if self.ranges.iter().any(|range| range.contains(&address)) {
            return trampolines.iter().find_map(|one| one.original(address));
        }
        self.code.has(address).then(|| address.wrapping_sub(self.bias))
    }
}

/// The trampolines of one file in one process, to attribute samples, saved contexts and signals in
/// them to the original code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trampolines {
    /// The process that was patched first; its forks have the same trampolines.
    pub process: i32,
    /// The file.
    pub path: PathBuf,
    /// Addresses in the process → original instruction (p_vaddr), in order of address.
    pieces: Vec<(Range<u64>, u64)>,
}

impl Trampolines {
    pub(super) fn new(process: i32, path: PathBuf, mut pieces: Vec<(Range<u64>, u64)>) -> Self {
        pieces.sort_by_key(|(range, _)| range.start);
        Self { process, path, pieces }
    }

    /// The (first) original instruction (p_vaddr) that is executed at an address of a trampoline;
    /// for a redirected call, its target.
    pub fn original(&self, address: u64) -> Option<u64> {
        let index = self.pieces.partition_point(|(range, _)| range.start <= address);
        let (range, original) = self.pieces.get(index.checked_sub(1)?)?;
        range.contains(&address).then_some(*original)
    }

    /// All parts of trampolines and their original instructions, in order of address.
    pub fn all(&self) -> impl Iterator<Item = (&Range<u64>, u64)> {
        self.pieces.iter().map(|(range, original)| (range, *original))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_inside_trampolines_have_an_origin() {
        let all = vec![(0x2000..0x2010, 0x40), (0x1000..0x1008, 0x50), (0x2010..0x2018, 0x48)];
        let map = Trampolines::new(1, "file".into(), all);
        let found =
            [0xfff, 0x1000, 0x1007, 0x1008, 0x200f, 0x2010, 0x2018].map(|a| map.original(a));
        assert_eq!(found, [None, Some(0x50), Some(0x50), None, Some(0x40), Some(0x48), None]);
    }
}
