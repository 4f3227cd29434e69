//! Static variables of an ELF file: data symbols; elsewhere its sections.

use super::demangle::demangle;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionFlags, SymbolKind, elf};

/// A static variable, or a section where no symbol says more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataObject {
    /// Demangled name; of a section its name (`.bss`).
    pub name: String,
    /// First address (p_vaddr).
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Whether it is a symbol.
    pub named: bool,
}

/// The data of a file, by address.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// In order of their starts, none inside another.
    symbols: Vec<DataObject>,
    sections: Vec<DataObject>,
}

impl Objects {
    /// Data objects of `file`, or of its separate debug file if it is stripped.
    pub fn new(file: &object::File<'_>, debug: Option<&object::File<'_>>) -> Self {
        let mut symbols = symbols(file.symbols());
        if let Some(debug) = debug.filter(|_| symbols.is_empty()) {
            symbols = self::symbols(debug.symbols());
        }
        if symbols.is_empty() {
            symbols = self::symbols(file.dynamic_symbols());
        }
        let sections = file.sections().filter(|section| {
            matches!(section.flags(), SectionFlags::Elf { sh_flags, .. }
                if sh_flags.contains(elf::SHF_ALLOC) && !sh_flags.contains(elf::SHF_TLS))
        });
        let sections = sections.map(|section| DataObject {
            name: section.name().unwrap_or("data").to_owned(),
            start: section.address(),
            size: section.size(),
            named: false,
        });
        Self { symbols, sections: sections.collect() }
    }

    /// The object at `address`.
    pub fn at(&self, address: u64) -> Option<&DataObject> {
        let has = |one: &&DataObject| address >= one.start && address - one.start < one.size;
        let after = self.symbols.partition_point(|one| one.start <= address);
        let symbol = self.symbols[..after].last().filter(has);
        symbol.or_else(|| self.sections.iter().find(has))
    }
}

fn symbols<'data: 'file, 'file>(
    all: impl Iterator<Item = object::read::Symbol<'data, 'file>>,
) -> Vec<DataObject> {
    let data = all.filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0);
    let mut found: Vec<DataObject> = data
        .filter_map(|symbol| {
            let name = String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned();
            let name = name.split('@').next().filter(|name| !name.is_empty())?;
            let (start, size) = (symbol.address(), symbol.size());
            Some(DataObject { name: demangle(&tma::text::name(name)), start, size, named: true })
        })
        .collect();
    // A variable with several names gets the longest, as functions do.
    found.sort_by(|a, b| (a.start, b.size, b.name.len()).cmp(&(b.start, a.size, a.name.len())));
    let mut end = 0;
    found.retain(|one| {
        let is_free = one.start >= end;
        end = if is_free { one.start.saturating_add(one.size) } else { end };
        is_free
    });
    found
}
