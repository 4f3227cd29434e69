//! Finds one caller by unwind tables (`.eh_frame`, `.debug_frame`), from the registers and a copy of the stack that
//! a sample has. `row` evaluates a row of a table.
//!
//! Rows are evaluated by gimli, with all registers; nothing is read but the tables and the copy. Where no row
//! covers code (that of a JIT, assembly), the frame pointer is followed if what it points to can be a frame.

mod row;

use gimli::{
    BaseAddresses, DebugFrame, DebugFrameOffset, EhFrame, EhFrameOffset, UnwindContext,
    UnwindSection,
};
use isa::elf::{Reader, reader, unwind_bases, unwind_entries, unwind_table};
use object::{CompressedData, Object as _, ObjectSection as _};
use row::Row;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

pub(crate) use row::{Cfa, Processor, Registers, Stack, Stop};

/// Largest entry that is read, in bytes: those of compilers have hundreds.
const LONGEST_ENTRY: usize = 1 << 20;
/// Cached rows; beyond this the cache is emptied.
const MOST_ROWS: usize = 1 << 16;
/// Largest uncompressed `.debug_frame`; kernels and browsers have a tenth.
const LARGEST: u64 = 1 << 30;

/// The unwind tables of a file.
pub(crate) struct Table {
    loaded: EhFrame<Reader>,
    separate: DebugFrame<Reader>,
    bases: BaseAddresses,
    /// Where functions begin and end, and their entries, in order; `None`: not read yet.
    entries: Option<Vec<Entry>>,
    rows: HashMap<u64, Option<Arc<Row>>>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    end: u64,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Loaded(EhFrameOffset<usize>),
    Separate(DebugFrameOffset<usize>),
}

impl Table {
    /// Unwind tables of `program`; `debug` is its separate debug file.
    pub fn new(program: &object::File<'_>, debug: Option<&object::File<'_>>) -> Self {
        let read = |file| section(file, ".debug_frame", |c| c.uncompressed_size <= LARGEST);
        let none = || reader(program, &[]);
        let separate = read(program).or_else(|| read(debug?));
        let mut separate = DebugFrame::from(separate.unwrap_or_else(none));
        separate.set_address_size(if program.is_64() { 8 } else { 4 });
        if program.architecture() == object::Architecture::Aarch64 {
            separate.set_vendor(gimli::Vendor::AArch64);
        }
        let loaded = unwind_table(program).unwrap_or_else(|_| EhFrame::from(none()));
        let bases = unwind_bases(program);
        Self { loaded, separate, bases, entries: None, rows: HashMap::new() }
    }

    /// Whether there is no entry at all.
    pub fn is_empty(&mut self) -> bool {
        self.entries().is_empty()
    }

    /// The row at `address` (p_vaddr).
    pub fn row(&mut self, address: u64) -> Option<Arc<Row>> {
        if let Some(known) = self.rows.get(&address) {
            return known.clone();
        }
        let row = self.read(address).map(Arc::new);
        if self.rows.len() >= MOST_ROWS {
            self.rows.clear();
        }
        self.rows.insert(address, row.clone());
        row
    }

    fn read(&mut self, address: u64) -> Option<Row> {
        let entries = self.entries();
        let after = entries.partition_point(|entry| entry.start <= address);
        let entry = *entries.get(after.checked_sub(1)?)?;
        if address >= entry.end {
            return None;
        }
        match entry.place {
            Place::Loaded(offset) => row(&self.loaded, &self.bases, offset, address),
            Place::Separate(offset) => row(&self.separate, &self.bases, offset, address),
        }
    }

    fn entries(&mut self) -> &[Entry] {
        let (loaded, separate, bases) = (&self.loaded, &self.separate, &self.bases);
        self.entries.get_or_insert_with(|| {
            let mut all = entries(loaded, bases, |at| Place::Loaded(EhFrameOffset(at)));
            all.extend(entries(separate, bases, |at| Place::Separate(DebugFrameOffset(at))));
            // Entries with the same start: the loaded table's, which is first, stays.
            all.sort_by_key(|entry| entry.start);
            all.dedup_by_key(|entry| entry.start);
            all
        })
    }
}

/// A section, decompressed if its size is fine; none where it is missing, empty or cannot be read.
pub(crate) fn section(
    file: &object::File<'_>,
    name: &str,
    is_fine: impl FnOnce(&CompressedData<'_>) -> bool,
) -> Option<Reader> {
    let compressed = file.section_by_name(name)?.compressed_data().ok().filter(is_fine)?;
    let data = compressed.decompress().ok().filter(|data| !data.is_empty())?;
    Some(reader(file, &data))
}

fn entries<S: UnwindSection<Reader>>(
    section: &S,
    bases: &BaseAddresses,
    place: impl Fn(usize) -> Place,
) -> Vec<Entry> {
    let all = unwind_entries(section, bases).filter_map(Result::ok).map(|entry| Entry {
        start: entry.initial_address(),
        end: entry.end_address(),
        place: place(entry.offset()),
    });
    // Linkers leave entries of discarded functions at address 0.
    all.filter(|entry| entry.start > 0 && entry.start < entry.end).collect()
}

fn row<S: UnwindSection<Reader>>(
    section: &S,
    bases: &BaseAddresses,
    offset: S::Offset,
    address: u64,
) -> Option<Row> {
    let entry = section.fde_from_offset(bases, offset, S::cie_from_offset).ok()?;
    if entry.entry_len().max(entry.cie().entry_len()) > LONGEST_ENTRY {
        return None;
    }
    let mut context = UnwindContext::new();
    let row = entry.unwind_info_for_address(section, bases, &mut context, address).ok()?;
    Row::new(row, section, entry.cie())
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}
