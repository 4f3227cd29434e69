//! Names in a file: its functions, allocators and static probes (USDT; notes in the format of SystemTap's
//! sys/sdt.h, as `tdtool`'s markers have).

use super::no_code::{NoCode, foreign};
use isa::elf::unwind_ranges;
use isa::program::preference;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Longest file that is read.
const LONGEST: u64 = 1 << 30;

/// A function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its name in the symbol table: the one that profiles show.
    pub name: Option<String>,
    /// Its other names.
    pub aliases: Vec<String>,
    /// Its addresses (p_vaddr).
    pub range: Range<u64>,
}

/// The functions of a file in order of address, without overlaps and without stubs to other files.
///
/// # Errors
/// It has no functions.
pub fn functions(path: &Path) -> Result<Vec<Named>, NoCode> {
    let data = contents(path)?;
    if let Some(why) = foreign(&data) {
        return Err(why);
    }
    let file = object::File::parse(&*data).map_err(NoCode::Damaged)?;
    let found = named(&file);
    match found.is_empty() {
        true => Err(NoCode::NoFunctions),
        false => Ok(found),
    }
}

/// As [`functions`]; empty instead of an error.
pub(super) fn named(file: &object::File<'_>) -> Vec<Named> {
    let mut names: BTreeMap<u64, (Vec<String>, u64)> = BTreeMap::new();
    let is_function =
        |s: &object::Symbol<'_, '_>| s.kind() == SymbolKind::Text && s.is_definition();
    let mut symbols: Vec<_> =
        file.symbols().chain(file.dynamic_symbols()).filter(is_function).collect();
    symbols.sort_by_cached_key(|s| {
        let name = s.name().unwrap_or_default();
        (preference(name, s.size(), s.is_weak(), s.is_global() && !s.is_weak()), name)
    });
    for symbol in symbols {
        let name = symbol.name().unwrap_or_default().to_owned();
        let known = names.entry(symbol.address()).or_default();
        known.1 = known.1.max(symbol.size());
        if !known.0.contains(&name) {
            known.0.push(name);
        }
    }
    let stubs = stubs(file);
    let ranges = unwind_ranges(file).into_iter();
    let mut ranges: BTreeMap<u64, u64> = ranges.map(|range| (range.start, range.end)).collect();
    for (start, (_, size)) in &names {
        ranges.entry(*start).or_insert(start.saturating_add(*size));
    }
    let mut found: Vec<Named> = Vec::new();
    for (start, end) in ranges {
        let is_stub = stubs.iter().any(|stub| stub.contains(&start));
        let overlaps = found.last().is_some_and(|last| start < last.range.end);
        if start < end && !is_stub && !overlaps {
            let mut own = names.get(&start).map_or(&[][..], |(own, _)| own).iter().cloned();
            let (name, aliases) = (own.next(), own.collect());
            found.push(Named { name, aliases, range: start..end });
        }
    }
    found
}

/// Sections of stubs to other files.
pub(super) fn stubs(file: &object::File<'_>) -> Vec<Range<u64>> {
    let sections = file.sections().filter(|s| s.name().is_ok_and(|name| name.starts_with(".plt")));
    sections.map(|s| s.address()..s.address().saturating_add(s.size())).collect()
}

/// Contents of a file of bounded length.
///
/// # Errors
/// It is too long, no regular file (devices have no end), or unreadable.
pub(super) fn contents(path: &Path) -> Result<Vec<u8>, NoCode> {
    Ok(tma::files::read(path, LONGEST)?)
}

/// Signature of an allocator: which arguments hold the size, and where the address is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// `malloc(size)`, `valloc`, `pvalloc`.
    Malloc,
    /// `calloc(number, size)`.
    Calloc,
    /// `realloc(old, size)`.
    Realloc,
    /// `aligned_alloc(alignment, size)`, `memalign`.
    Aligned,
    /// `posix_memalign(where, alignment, size)`.
    Posix,
    /// `mmap(hint, size, …)`.
    Map,
    /// `mremap(old, old size, size, …)`.
    Remap,
    /// `munmap(address, size)`, which frees memory.
    Unmap,
}

impl Call {
    /// The function with this name in a symbol table.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "malloc" | "valloc" | "pvalloc" => Self::Malloc,
            "calloc" => Self::Calloc,
            "realloc" => Self::Realloc,
            "aligned_alloc" | "memalign" => Self::Aligned,
            "posix_memalign" => Self::Posix,
            "mmap" | "mmap64" => Self::Map,
            "mremap" => Self::Remap,
            "munmap" => Self::Unmap,
            _ => return None,
        })
    }
}

/// An allocator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocator {
    /// Its name, `malloc`.
    pub name: String,
    /// Its signature.
    pub call: Call,
    /// Its addresses (p_vaddr).
    pub range: Range<u64>,
}

/// The allocators that a file defines, in order of address; none if it cannot be read.
pub fn allocators(path: &Path) -> Vec<Allocator> {
    let Ok(data) = contents(path) else { return Vec::new() };
    let Ok(file) = object::File::parse(&*data) else { return Vec::new() };
    // Most files have none: skips reading their unwind tables.
    let mut symbols = file.dynamic_symbols().chain(file.symbols());
    if !symbols.any(|s| s.is_definition() && s.name().is_ok_and(|n| Call::of(n).is_some())) {
        return Vec::new();
    }
    let all = named(&file).into_iter();
    all.filter_map(|one| {
        let names = one.name.iter().chain(&one.aliases);
        let own = names.filter_map(|name| Some((name, Call::of(name)?)));
        // `mmap`, not `mmap64`.
        let (name, call) = own.min_by_key(|(name, _)| name.len())?;
        let name = name.clone();
        Some(Allocator { name, call, range: one.range })
    })
    .collect()
}

/// Owner and type of the notes (sys/sdt.h, `_SDT_NOTE_NAME` and `_SDT_NOTE_TYPE`).
const OWNER: &[u8] = b"stapsdt\0";
const TYPE: u32 = 3;

/// A static probe: a `nop` in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticProbe {
    /// Its address (p_vaddr).
    pub at: u64,
    /// Its provider, such as `tdtool`.
    pub provider: String,
    /// Its name, such as `begin`.
    pub name: String,
    /// Locations of its arguments, such as `8@%rdi`.
    pub arguments: String,
}

impl StaticProbe {
    /// The number (in encodings) of the register that holds its first argument.
    pub fn register(&self) -> Option<u8> {
        const NAMES: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15",
        ];
        let register = self.arguments.split(' ').next()?.strip_prefix("8@%")?;
        let number = NAMES.iter().position(|name| *name == register)?;
        u8::try_from(number).ok()
    }
}

/// The static probes of a file in order of address; empty if it has none.
///
/// # Errors
/// It cannot be read, or is not an ELF file of x86-64.
pub fn static_probes(path: &Path) -> Result<Vec<StaticProbe>, NoCode> {
    let data = contents(path)?;
    if let Some(why) = foreign(&data) {
        return Err(why);
    }
    let file = object::File::parse(&*data).map_err(NoCode::Damaged)?;
    let Some(section) = file.section_by_name(".note.stapsdt") else { return Ok(Vec::new()) };
    let base = file.section_by_name(".stapsdt.base").map(|section| section.address());
    let notes = section.uncompressed_data().map_err(NoCode::Notes)?;
    let mut all: Vec<StaticProbe> = Notes(&notes).filter_map(|note| probe(note, base)).collect();
    all.sort_by_key(|probe| probe.at);
    // Code that is dropped by the compiler or linker leaves notes without an address.
    let is_code = |probe: &StaticProbe| {
        file.sections().any(|section| {
            section.kind() == object::SectionKind::Text
                && (section.address()..section.address().saturating_add(section.size()))
                    .contains(&probe.at)
        })
    };
    all.retain(is_code);
    all.dedup_by_key(|probe| probe.at);
    Ok(all)
}

/// Iterates over descriptions of notes with our owner and type, up to a damaged note.
struct Notes<'a>(&'a [u8]);

impl<'a> Iterator for Notes<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let (owner, rest) = (word(self.0, 0)? as usize, self.0.get(12..)?);
            let (length, kind) = (word(self.0, 4)? as usize, word(self.0, 8)?);
            let name = rest.get(..owner)?;
            let rest = rest.get(owner.checked_next_multiple_of(4)?..)?;
            let description = rest.get(..length)?;
            self.0 = rest.get(length.checked_next_multiple_of(4)?..).unwrap_or_default();
            if name == OWNER && kind == TYPE {
                return Some(description);
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Decodes a description: three addresses, three texts. `base` is the current address of the
/// section that the second address refers to; if it has moved since the note was written, so has
/// the probe.
fn probe(description: &[u8], base: Option<u64>) -> Option<StaticProbe> {
    let (addresses, texts) = description.split_at_checked(24)?;
    let address = |number: usize| {
        addresses.get(8 * number..8 * number + 8)?.try_into().ok().map(u64::from_le_bytes)
    };
    let moved = base.zip(address(1)).map_or(0, |(now, then)| now.wrapping_sub(then));
    let mut texts = texts.split(|byte| *byte == 0);
    let mut text = || texts.next().map(|text| String::from_utf8_lossy(text).into_owned());
    let (provider, name, arguments) = (text()?, text()?, text()?);
    Some(StaticProbe { at: address(0)?.wrapping_add(moved), provider, name, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_this_program_do_not_overlap() {
        let all = functions(&std::env::current_exe().unwrap()).unwrap();
        assert!(all.len() > 100);
        assert!(all.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
        assert!(all.iter().any(|f| f.name.as_deref() == Some("main")));
    }

    /// By hand, from the layout in sys/sdt.h.
    fn note(owner: &[u8], description: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        for word in [owner.len() as u32, description.len() as u32, 3] {
            all.extend(word.to_le_bytes());
        }
        for part in [owner, description] {
            all.extend(part);
            all.resize(all.len().next_multiple_of(4), 0);
        }
        all
    }

    #[test]
    fn notes_of_others_are_skipped_and_prelinked_ones_are_moved() {
        let mut description: Vec<u8> =
            [0x1000_u64, 0x2000, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
        description.extend(b"tdtool\0begin\08@%r12\0");
        let bytes = [note(b"GNU\0", b"abcde"), note(OWNER, &description)].concat();
        let found: Vec<StaticProbe> =
            Notes(&bytes).filter_map(|n| probe(n, Some(0x2100))).collect();
        let text = str::to_owned;
        let (provider, name) = (text("tdtool"), text("begin"));
        let expected = StaticProbe { at: 0x1100, provider, name, arguments: text("8@%r12") };
        assert_eq!(found[0].register(), Some(12));
        assert_eq!(found, [expected]);
        // Cut off anywhere: nothing, and no panic.
        assert!((0..bytes.len()).all(|n| Notes(&bytes[..n]).all(|d| probe(d, None).is_some())));
    }
}
