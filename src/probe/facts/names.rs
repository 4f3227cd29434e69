//! The functions of a file, from its unwind table and its symbols.

use super::no_code::{NoCode, foreign};
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection as _};
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
    let mut ranges: BTreeMap<u64, u64> = unwind_table(file).into_iter().collect();
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

/// Start and end of functions in the unwind table, as far as it is readable.
fn unwind_table(file: &object::File<'_>) -> Vec<(u64, u64)> {
    let Some(section) = file.section_by_name(".eh_frame") else { return Vec::new() };
    let Ok(data) = section.uncompressed_data() else { return Vec::new() };
    let mut frames = EhFrame::new(&data, LittleEndian);
    frames.set_address_size(8);
    let text = file.section_by_name(".text").map_or(0, |section| section.address());
    let bases = BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
    let mut entries = frames.entries(&bases);
    let mut found = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { continue };
        let start = entry.initial_address();
        found.push((start, start.saturating_add(entry.len())));
    }
    found
}

/// Contents of a file of bounded length.
///
/// # Errors
/// It is too long, no regular file (devices have no end), or unreadable.
pub(super) fn contents(path: &Path) -> Result<Vec<u8>, NoCode> {
    Ok(tma::files::read(path, LONGEST)?)
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
}
