//! Reads the functions of an ELF file (symbols, PLT stubs, unwind entries, sections) and its static variables. Mini
//! debug information (`.gnu_debugdata`) has the symbols that distributions such as Fedora leave in stripped
//! programs, in an ELF file compressed with xz.

use super::demangle::demangle;
use super::go;
use super::table::{Binding, Symbol, Table};
use crate::files::Files;
use isa::elf::{Layout, unwind_ranges};
use lzma_rust2::XzReader;
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _, SectionFlags,
    SymbolFlags, SymbolIndex, SymbolKind, elf,
};
use std::collections::HashMap;
use std::io::Read as _;
use std::ops::Range;

/// The functions of `file`; `debug` is its separate debug file, `mini` the one inside of it.
///
/// Symbols are those of `.symtab`, if stripped those of the debug file, else those of `.dynsym` and of `mini`,
/// which leaves those out, and of Go's run time.
pub(super) fn table(
    file: &object::File<'_>,
    layout: &Layout,
    debug: Option<&object::File<'_>>,
    mini: Option<&object::File<'_>>,
) -> Table {
    let mut symbols = symbols(file, file.symbols());
    if let Some(debug) = debug.filter(|_| symbols.is_empty()) {
        symbols = self::symbols(debug, debug.symbols());
    }
    if symbols.is_empty() {
        symbols = self::symbols(file, file.dynamic_symbols());
        symbols.extend(mini.into_iter().flat_map(|mini| self::symbols(mini, mini.symbols())));
        symbols.extend(go::functions(file, |address| relative(file, address)));
    }
    symbols.extend(stubs(file));
    Table::new(symbols, unwind_ranges(file), code(file, layout))
}

/// Functions and labels among `all`.
fn symbols<'data, 'file>(
    file: &'file object::File<'data>,
    all: impl Iterator<Item = object::read::Symbol<'data, 'file>>,
) -> Vec<Symbol> {
    let code: HashMap<usize, bool> =
        file.sections().map(|section| (section.index().0, is_code(&section))).collect();
    all.filter(|symbol| {
        let section = symbol.section_index().map(|index| index.0);
        section.is_some_and(|index| code.get(&index) == Some(&true))
    })
    .filter_map(|symbol| function(&symbol))
    .collect()
}

fn function(symbol: &object::read::Symbol<'_, '_>) -> Option<Symbol> {
    let SymbolFlags::Elf { st_other, .. } = symbol.flags() else { return None };
    let label = match symbol.kind() {
        SymbolKind::Text => false,
        // Hidden labels are internal to the assembler.
        SymbolKind::Unknown if st_other.visibility() == elf::STV_DEFAULT => true,
        _ => return None,
    };
    let name = String::from_utf8_lossy(symbol.name_bytes().ok()?);
    // `$x` and `$d` mark code and data on Arm; no function is called so.
    if name.is_empty() || (label && name.starts_with('$')) {
        return None;
    }
    let binding = match () {
        () if symbol.is_weak() => Binding::Weak,
        () if symbol.is_global() => Binding::Global,
        () => Binding::Local,
    };
    let (start, size) = (symbol.address(), symbol.size());
    Some(Symbol { start, size, binding, label, name: name.into() })
}

fn is_code(section: &object::Section<'_, '_>) -> bool {
    matches!(section.flags(), SectionFlags::Elf { sh_flags, .. }
        if sh_flags.contains(elf::SHF_EXECINSTR) && sh_flags.contains(elf::SHF_ALLOC))
}

/// Code sections, or executable segments if there are no sections.
fn code(file: &object::File<'_>, layout: &Layout) -> Vec<Range<u64>> {
    let range = |start: u64, size: u64| start..start.saturating_add(size);
    let sections: Vec<_> =
        file.sections().filter(is_code).map(|s| range(s.address(), s.size())).collect();
    if !sections.is_empty() {
        return sections;
    }
    let segments = layout.segments.iter().filter(|segment| segment.executable);
    segments.map(|s| range(s.address, s.file_size)).collect()
}

/// Stubs of the procedure linkage table, named after the GOT slot that each jumps through.
fn stubs(file: &object::File<'_>) -> Vec<Symbol> {
    if file.architecture() != object::Architecture::X86_64 {
        return Vec::new();
    }
    let slots = slots(file);
    if slots.is_empty() {
        return Vec::new();
    }
    let sections = file.sections().filter(|s| s.name().is_ok_and(|name| name.starts_with(".plt")));
    sections.flat_map(|section| stubs_of(&section, &slots)).collect()
}

/// A relocation with its addend, `Elf64_Rela`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rela {
    address: u64,
    kind: u32,
    symbol: u32,
    addend: u64,
}

/// The relocations in a table of `Elf64_Rela`, little endian.
fn relas(table: &[u8]) -> impl Iterator<Item = Rela> {
    table.chunks_exact(24).map(|entry| {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| entry[at + i]));
        let info = word(8);
        let (symbol, kind) = ((info >> 32) as u32, info as u32);
        Rela { address: word(0), kind, symbol, addend: word(16) }
    })
}

/// Value that the loader writes to an address of a program loaded at its own addresses.
fn relative(file: &object::File<'_>, address: u64) -> Option<u64> {
    let tables = file.sections().filter(|section| is_rela(section.flags()));
    let mut all = tables.filter_map(|section| section.data().ok()).flat_map(relas);
    let found = all.find(|rela| {
        rela.address == address && elf::RelocationType(rela.kind) == elf::R_X86_64_RELATIVE
    })?;
    Some(found.addend)
}

/// Whether a section has relocations that the loader applies.
fn is_rela(flags: SectionFlags) -> bool {
    matches!(flags, SectionFlags::Elf { sh_type, sh_flags }
        if sh_type == elf::SHT_RELA && sh_flags.contains(elf::SHF_ALLOC))
}

/// Names of the symbols that the dynamic linker stores in GOT slots, by the slot's address.
fn slots(file: &object::File<'_>) -> HashMap<u64, String> {
    let dynamic = file.dynamic_symbol_table();
    let name_of = |index: u32| {
        let symbol = dynamic.as_ref()?.symbol_by_index(SymbolIndex(index as usize)).ok()?;
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        Some(name.to_owned())
    };
    let tables = file.sections().filter(|section| is_rela(section.flags()));
    let relocations = tables.filter_map(|section| section.data().ok()).flat_map(relas);
    relocations
        .filter_map(|rela| match elf::RelocationType(rela.kind) {
            elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT => {
                Some((rela.address, name_of(rela.symbol)?))
            }
            // For an indirect function only the resolver is known; named as by objdump.
            elf::R_X86_64_IRELATIVE => Some((rela.address, format!("*ABS*+{:#x}", rela.addend))),
            _ => None,
        })
        .collect()
}

/// `jmp *displacement(%rip)`, possibly after `endbr64` and `bnd`.
const JUMP: [u8; 2] = [0xff, 0x25];
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

fn stubs_of(section: &object::Section<'_, '_>, slots: &HashMap<u64, String>) -> Vec<Symbol> {
    let Ok(data) = section.data() else { return Vec::new() };
    // Entries have 16 bytes; those of `.plt.got` without `endbr64` 8.
    let short = section.name() == Ok(".plt.got") && !data.starts_with(&ENDBR64);
    let size = if short { 8 } else { 16 };
    let entries = data.chunks_exact(size).zip((section.address()..).step_by(size));
    entries
        .filter_map(|(entry, start)| {
            let at = entry.windows(6).position(|window| window.starts_with(&JUMP))?;
            let displacement = i32::from_le_bytes(std::array::from_fn(|i| entry[at + 2 + i]));
            let next = start.wrapping_add(at as u64 + 6);
            let name = slots.get(&next.wrapping_add_signed(displacement.into()))?;
            let name = format!("{name}@plt").into();
            let (size, binding) = (size as u64, Binding::Global);
            Some(Symbol { start, size, binding, label: false, name })
        })
        .collect()
}

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
        let mut symbols = variables(file.symbols());
        if let Some(debug) = debug.filter(|_| symbols.is_empty()) {
            symbols = variables(debug.symbols());
        }
        if symbols.is_empty() {
            symbols = variables(file.dynamic_symbols());
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

fn variables<'data: 'file, 'file>(
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

/// Most bytes of the uncompressed file: that of a browser has some 20 MB.
const LARGEST: u64 = 256 << 20;
/// Most memory that decompressing may take, in KiB: xz takes 64 MiB at its highest level.
const MOST_KIB: u32 = 80 << 10;

/// The ELF file inside of `file`, if it has one.
pub(super) fn mini(file: &object::File<'_>, files: &Files) -> Option<Vec<u8>> {
    let compressed = file.section_by_name(".gnu_debugdata")?.data().ok()?;
    let mut reader = XzReader::new_mem_limit(compressed, true, MOST_KIB).take(LARGEST + 1);
    let mut found = Vec::new();
    reader.read_to_end(&mut found).ok()?;
    files.take(found.len() as u64).ok()?;
    (found.len() as u64 <= LARGEST).then_some(found)
}
