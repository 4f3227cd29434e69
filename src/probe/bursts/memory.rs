//! Mappings of a process, polled so that temporary ones are seen, too.

use super::request::Region;
use crate::plan::PAGE;
use crate::process::{Mapping, mappings};
use object::elf::{PF_W, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Endianness, ReadCache};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// First poll interval; it doubles with each poll.
const FIRST: Duration = Duration::from_millis(2);

/// Mappings seen in a process.
pub(super) struct Memory {
    process: i32,
    /// States since the last burst, oldest first.
    seen: Vec<Arc<Vec<Region>>>,
    /// Bytes of zeros after the data of a file (.bss).
    zeros: BTreeMap<String, u64>,
    next: Instant,
    pause: Duration,
}

impl Memory {
    pub fn new(process: i32) -> Self {
        let (seen, zeros) = (Vec::new(), BTreeMap::new());
        Self { process, seen, zeros, next: Instant::now(), pause: FIRST }
    }

    /// Polls when the poll interval is over.
    pub fn tick(&mut self, now: Instant) {
        if now >= self.next {
            self.poll();
            (self.next, self.pause) = (now + self.pause, self.pause * 2);
        }
    }

    /// Polls the mappings, if the process still runs.
    pub fn poll(&mut self) {
        let mut all: Vec<Region> = Vec::new();
        let mut data: Option<Mapping> = None;
        for mapping in mappings(self.process) {
            let (mut start, end) = (mapping.start, mapping.end);
            let file = data.take().filter(|d| mapping.path.is_empty() && d.end == start);
            if let Some(file) = file {
                let zeros =
                    *self.zeros.entry(file.path.clone()).or_insert_with(|| zeros(&file.path));
                let split = start.saturating_add(zeros).min(end);
                all.push(Region { range: start..split, of: file.path });
                start = split;
            }
            all.push(Region { range: start..end, of: mapping.path.clone() });
            let is_data = mapping.rights.contains('w') && mapping.path.starts_with('/');
            data = is_data.then_some(mapping);
        }
        all.retain(|region| !region.range.is_empty());
        if !all.is_empty() && self.seen.last().is_none_or(|last| **last != all) {
            self.seen.push(Arc::new(all));
        }
    }

    /// States until the end of a burst, latest first.
    pub fn take(&mut self) -> Vec<Arc<Vec<Region>>> {
        let latest = self.seen.last().cloned();
        let mut all = std::mem::take(&mut self.seen);
        all.reverse();
        self.seen.extend(latest);
        (self.next, self.pause) = (Instant::now(), FIRST);
        all
    }
}

/// Bytes of whole pages by which a file's last segment is longer in memory than in the file.
fn zeros(path: &str) -> u64 {
    let Ok(file) = File::open(path) else { return 0 };
    let cache = ReadCache::new(file);
    let Ok(elf) = ElfFile64::<Endianness, _>::parse(&cache) else { return 0 };
    let endian = elf.endian();
    let pages = |bytes: u64| bytes.div_ceil(PAGE);
    let mut loaded = elf.elf_program_headers().iter().filter(|h| h.p_type(endian) == PT_LOAD);
    loaded.rfind(|h| h.p_flags(endian).contains(PF_W)).map_or(0, |h| {
        let start = h.p_vaddr(endian);
        let (file, memory) = (h.p_filesz(endian), h.p_memsz(endian));
        let end = |bytes: u64| pages(start.saturating_add(bytes));
        end(memory).saturating_sub(end(file)).saturating_mul(PAGE)
    })
}
