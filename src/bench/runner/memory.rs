//! State before and after a run: values, lines, pages, registers.

use super::Runner;
use crate::sandbox::layout::{self as at, PAGE, context, mail};
use crate::values::Values;
use std::collections::BTreeMap;
use tma::Result;

/// Maximum number of vector registers.
const VECTOR_REGISTERS: usize = 32;

impl Runner {
    /// Has the next run begin without the last block's pages, and sets initial values.
    pub fn prepare(&mut self, values: &Values, physical: usize, pages: usize) -> Result<()> {
        // Not only if the worker says that there are pages: a block may have made it say so.
        self.fresh |= std::mem::replace(&mut self.ran, false);
        let fresh = self.fresh;
        let worker = self.worker()?;
        if !fresh {
            worker.put32(at::MAIL + mail::PAGE_COUNT, 0);
        }
        worker.put32(at::MAIL + mail::KNOWN_COUNT, 0);
        self.prepare_on_same_pages(values, physical, pages)
    }

    /// Sets initial values for a run on the pages that there are, and those that it finds.
    pub fn prepare_on_same_pages(
        &mut self,
        values: &Values,
        physical: usize,
        pages: usize,
    ) -> Result<()> {
        let worker = self.worker()?;
        let count = physical.clamp(1, at::PHYSICAL_MAX) as u32;
        worker.put32(at::MAIL + mail::PAGE_LIMIT, pages.min(at::PAGES_MAX) as u32);
        worker.put32(at::MAIL + mail::PHYSICAL_COUNT, count);
        worker.put64(at::MAIL + mail::LOWEST, lowest());
        self.values(values)
    }

    /// Maps these pages before the next run, which has been prepared, without an exception for each.
    pub fn map_known(&mut self, pages: &[u64]) -> Result<()> {
        self.fresh = true;
        let worker = self.worker()?;
        let pages = &pages[..pages.len().min(at::PAGES_MAX)];
        worker.put32(at::MAIL + mail::KNOWN_COUNT, pages.len() as u32);
        for (i, page) in pages.iter().enumerate() {
            worker.put64(at::KNOWN_PAGES + 8 * i, *page);
        }
        Ok(())
    }

    /// Writes initial values and the context of a run, all of it.
    pub fn values(&mut self, values: &Values) -> Result<()> {
        let mxcsr = self.mxcsr;
        let worker = self.worker()?;
        worker.write(at::CONTEXT, &[0; 0x180]);
        worker.put64(at::MAIL + mail::PATTERN, values.memory);
        worker.put64(at::CONTEXT + context::PATTERN, values.memory);
        worker.put32(at::CONTEXT + context::MXCSR, mxcsr);
        for (i, value) in values.registers.iter().enumerate() {
            worker.put64(at::CONTEXT + context::REGISTERS + 8 * i, *value);
        }
        for word in 0..8 {
            worker.put64(at::CONTEXT + context::VECTOR + 8 * word, values.vector);
            worker.put64(at::PATTERN_LINE + 8 * word, values.memory);
        }
        worker.write(at::VECTORS, &values.vector.to_le_bytes().repeat(8 * VECTOR_REGISTERS));
        Ok(())
    }

    /// Sets each vector register's initial value, until values are set again.
    pub fn vectors(&mut self, values: &[[u8; 64]]) -> Result<()> {
        let bytes = values[..values.len().min(VECTOR_REGISTERS)].concat();
        self.worker()?.write(at::VECTORS, &bytes);
        Ok(())
    }

    /// Writes the addresses of the lines that are restored between runs.
    pub fn lines(&mut self, lines: &[u64]) -> Result<()> {
        self.worker()?;
        let images = self.images.clone();
        let worker = self.worker()?;
        let lines = &lines[..lines.len().min(at::LINES_MAX)];
        worker.put32(at::CONTEXT + context::LINE_COUNT, lines.len() as u32);
        let base = worker.base();
        for (i, line) in lines.iter().enumerate() {
            let page = line & !(PAGE as u64 - 1);
            let content = match images.iter().position(|image| *image == page) {
                Some(number) => at::IMAGE + PAGE * number + (line - page) as usize,
                None => at::PATTERN_LINE,
            };
            worker.put64(at::LINES + 16 * i, *line);
            worker.put64(at::LINES + 16 * i + 8, base + content as u64);
        }
        Ok(())
    }

    /// Sets the initial content of these pages from now on, instead of the pattern. Pages that do not fit are left
    /// out.
    pub fn images(&mut self, images: &BTreeMap<u64, Vec<u8>>) -> Result<()> {
        let worker = self.worker()?;
        let count = images.len().min(at::PHYSICAL_MAX);
        worker.put32(at::IMAGE_COUNT, count as u32);
        for (i, (page, content)) in images.iter().take(count).enumerate() {
            worker.put64(at::IMAGE_PAGES + 8 * i, *page);
            worker.write(at::IMAGE + PAGE * i, &content[..content.len().min(PAGE)]);
        }
        self.images = images.keys().take(count).copied().collect();
        Ok(())
    }

    /// The initial content of a page: its image, or the pattern.
    fn initial(&self, page: u64, pattern: u64) -> Vec<u8> {
        match (self.images.iter().position(|image| *image == page), &self.worker) {
            (Some(number), Some(worker)) => worker.read(at::IMAGE + PAGE * number, PAGE),
            _ => pattern.to_le_bytes().repeat(PAGE / 8),
        }
    }

    /// Sets the MXCSR that the next runs start with: treatment of subnormals.
    pub fn float_mode(&mut self, mxcsr: u32) -> Result<()> {
        self.worker()?.put32(at::CONTEXT + context::MXCSR, mxcsr);
        Ok(())
    }

    /// MXCSR and the x87 status word as the last run left them.
    pub fn float_flags(&self) -> (u32, u32) {
        let read = |field| self.worker.as_ref().map_or(0, |w| w.get32(at::CONTEXT + field));
        (read(context::MXCSR_END), read(context::X87_END) & 0xffff)
    }

    /// Prepares a block that ran before to run again with these pages, also in a worker started since then.
    pub fn again(
        &mut self,
        values: &Values,
        lines: &[u64],
        known: &[u64],
        physical: usize,
        pages: usize,
    ) -> Result<()> {
        if self.worker()?.get32(at::MAIL + mail::PHYSICAL_COUNT) == 0 {
            self.prepare(values, physical, pages)?;
            self.map_known(known)?;
        } else {
            self.values(values)?;
        }
        self.lines(lines)
    }

    /// Addresses of the pages mapped for the block, by the worker; `None` if they are impossible.
    pub fn pages(&self) -> Option<Vec<u64>> {
        let worker = self.worker.as_ref()?;
        let count = worker.get32(at::MAIL + mail::PAGE_COUNT) as usize;
        let bytes = worker.read(at::PAGES, 8 * count.min(at::PAGES_MAX));
        let pages: Vec<u64> = bytes.chunks_exact(8).map(word).collect();
        let sound = |page: &u64| may_map(*page, worker.base());
        (count <= at::PAGES_MAX && pages.iter().all(sound)).then_some(pages)
    }

    /// General-purpose registers at the end of the last run, by the worker.
    pub fn end_registers(&self) -> Vec<u64> {
        let Some(worker) = &self.worker else { return Vec::new() };
        worker.read(at::CONTEXT + context::END_REGISTERS, 128).chunks_exact(8).map(word).collect()
    }

    /// The content of the physical pages.
    pub fn memory(&self) -> Vec<u8> {
        let Some(worker) = &self.worker else { return Vec::new() };
        let pages = worker.get32(at::MAIL + mail::PAGE_COUNT) as usize;
        worker.read(at::PHYSICAL, PAGE * pages.min(at::PHYSICAL_MAX))
    }

    /// Whether the physical pages hold this.
    pub fn holds(&self, memory: &[u8]) -> bool {
        let Some(worker) = &self.worker else { return memory.is_empty() };
        let pages = worker.get32(at::MAIL + mail::PAGE_COUNT) as usize;
        let mut own = [0; PAGE];
        memory.len() == PAGE * pages.min(at::PHYSICAL_MAX)
            && memory.chunks_exact(PAGE).enumerate().all(|(i, page)| {
                worker.copy(at::PHYSICAL + PAGE * i, &mut own);
                own == *page
            })
    }

    /// Lines (64 bytes) of the physical pages that differ from their initial content, by the address of the
    /// first page mapped to each.
    pub fn changed_lines(&self, pages: &[u64], pattern: u64, physical: usize) -> Vec<u64> {
        self.changed(64, pages, pattern, physical).into_iter().map(|(line, _)| line).collect()
    }

    /// Words (8 bytes) that differ from their initial content, and this content; addresses as in
    /// [`Self::changed_lines`].
    pub fn changed_words(&self, pages: &[u64], pattern: u64, physical: usize) -> Vec<(u64, u64)> {
        let all = self.changed(8, pages, pattern, physical);
        all.into_iter().map(|(address, before)| (address, word(&before))).collect()
    }

    /// Parts of `size` bytes that differ from their initial content, and this content.
    fn changed(
        &self,
        size: usize,
        pages: &[u64],
        pattern: u64,
        physical: usize,
    ) -> Vec<(u64, Vec<u8>)> {
        let Some(worker) = &self.worker else { return Vec::new() };
        let mut parts = Vec::new();
        let mut bytes = [0; PAGE];
        for (i, page) in pages.iter().take(physical.min(at::PHYSICAL_MAX)).enumerate() {
            worker.copy(at::PHYSICAL + PAGE * i, &mut bytes);
            let initial = self.initial(*page, pattern);
            for (part, (content, before)) in
                bytes.chunks_exact(size).zip(initial.chunks_exact(size)).enumerate()
            {
                if content != before {
                    parts.push((page + (size * part) as u64, before.to_vec()));
                }
            }
        }
        parts
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all.copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// Whether a page of this address may be mapped for a block whose worker has its region at `base`.
pub fn may_map(page: u64, base: u64) -> bool {
    page.is_multiple_of(PAGE as u64)
        && (lowest()..at::USER_TOP).contains(&page)
        && !(base..base + at::SIZE as u64).contains(&page)
}

/// The lowest address that an unprivileged program may map.
fn lowest() -> u64 {
    static LOWEST: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *LOWEST.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/vm/mmap_min_addr").unwrap_or_default();
        text.trim().parse().unwrap_or(65536).max(PAGE as u64)
    })
}
