//! The functions of an ELF file: by name, around an address, or by its unwind table; names of those without a
//! symbol.

use crate::elf::unwind_ranges;
use object::{Object as _, ObjectSymbol as _, SectionIndex, SymbolKind};
use std::cmp::Reverse;
use std::ops::Range;
use tma::error::nearest;
use tma::{Error, Result};

/// A function as its symbol describes it.
pub struct Function {
    pub name: String,
    pub start: u64,
    pub size: u64,
    pub section: Option<SectionIndex>,
}

/// A function that the file itself does not name: by a separate debug file, or a table of its run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its name in a symbol table.
    pub name: String,
    /// Its addresses (p_vaddr).
    pub range: Range<u64>,
}

/// Names of functions that a file itself lacks, and the form in which names are shown.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// Functions that it does not name.
    pub known: &'a [Known],
    /// The name of a function as people read it, from the one in the symbol table.
    pub shown: &'a dyn Fn(&str) -> String,
}

impl Default for Names<'_> {
    fn default() -> Self {
        Self { known: &[], shown: &str::to_owned }
    }
}

impl Known {
    fn function(&self) -> Function {
        let Range { start, end } = self.range;
        Function { name: self.name.clone(), start, size: end.saturating_sub(start), section: None }
    }
}

impl Function {
    fn of(symbol: &object::Symbol<'_, '_>) -> Option<Self> {
        Some(Self {
            name: symbol.name().ok()?.to_owned(),
            start: symbol.address(),
            size: symbol.size(),
            section: symbol.section_index(),
        })
    }
}

/// The function that contains an address, by its symbol, or else as it is `known` otherwise or by the unwind table.
pub fn around(file: &object::File<'_>, known: &[Known], address: u64) -> Result<Function> {
    let holds = |s: &object::Symbol<'_, '_>| {
        s.kind() == SymbolKind::Text && s.address() <= address && address - s.address() < s.size()
    };
    let found = file.symbols().chain(file.dynamic_symbols()).find(holds);
    let known = known.iter().find(|known| known.range.contains(&address)).map(Known::function);
    let unnamed = || {
        let range = unwind_ranges(file).into_iter().find(|range| range.contains(&address))?;
        let (name, size) = (format!("{:#x}", range.start), range.end - range.start);
        Some(Function { name, start: range.start, size, section: None })
    };
    found.and_then(|s| Function::of(&s)).or(known).or_else(unnamed).ok_or_else(|| {
        Error::failed(format!("no function covers {address:#x}"))
            .hint("give FILE:START..END, as objdump prints the addresses")
    })
}

/// The function without a symbol at `start`, called `name`.
fn at(file: &object::File<'_>, known: &[Known], name: &str, start: u64) -> Result<Function> {
    let found = around(file, known, start)?;
    match found.start == start {
        true => Ok(Function { name: name.to_owned(), ..found }),
        false => Err(Error::failed(format!("no function begins at {start:#x}"))
            .because(format!("it is inside the function at {:#x}", found.start))
            .hint(format!("FILE:{start:#x} is the block with that address"))),
    }
}

/// The function `name`.
pub fn named(file: &object::File<'_>, known: &[Known], name: &str) -> Result<Function> {
    if let Some(known) = known.iter().find(|known| known.name == name) {
        return Ok(known.function());
    }
    let symbols: Vec<_> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0)
        .collect();
    let found = symbols.iter().find(|s| s.name() == Ok(name));
    let clones: Vec<_> = symbols.iter().filter(|s| is_clone(s.name(), name)).collect();
    let only = clones
        .first()
        .filter(|first| clones.iter().all(|other| other.address() == first.address()));
    if let (None, None, Some(start)) = (found, only, nameless_start(name)) {
        let of = |s: &&object::Symbol<'_, '_>| s.name().ok() == name.rsplit_once('+').map(|n| n.0);
        return match symbols.iter().find(of) {
            Some(of) => Err(Error::failed(format!("`{name}` is a distance, not a block"))
                .because("+N is the N-th block of a function")
                .hint(format!("FILE:{:#x} is the block there", of.address() + start))),
            None => at(file, known, name, start),
        };
    }
    found.or(only.copied()).and_then(Function::of).ok_or_else(|| {
        let error = Error::failed(format!("the file has no sized function symbol `{name}`"));
        let others: Vec<_> = clones.iter().filter_map(|s| s.name().ok()).collect();
        match nearest(name, symbols.iter().filter_map(|s| s.name().ok())) {
            _ if !others.is_empty() => error
                .because("the compiler has made several functions of it")
                .hint(format!("choose one: {}", others.join(", "))),
            Some(other) => error.hint(format!("did you mean `{other}`?")),
            None if file.symbols().next().is_none() => {
                error.because("the file is stripped").hint(
                    "name a place by its address: FILE:0xADDRESS, its loop by FILE:@0xADDRESS, and \
                     list the function around it by --list FILE:0xADDRESS; `tdtool report` finds hot ones",
                )
            }
            None => error.hint("give FILE:START..END, as objdump prints the addresses"),
        }
    })
}

/// Whether a symbol is a compiler-made copy of function `name`, such as `name.constprop.0`; its cold part is no
/// such copy.
fn is_clone(symbol: object::Result<&str>, name: &str) -> bool {
    let suffix = symbol.ok().and_then(|symbol| symbol.strip_prefix(name)?.strip_prefix('.'));
    suffix.is_some_and(|suffix| !suffix.starts_with("cold"))
}

/// The name of the function at `start` (p_vaddr) of a file, given by path or name.
pub fn nameless(file: &str, start: u64) -> String {
    let file = file.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("code");
    format!("{file}+{start:#x}")
}

/// The address in such a name.
pub fn nameless_start(name: &str) -> Option<u64> {
    let (file, digits) = name.rsplit_once("+0x")?;
    if file.is_empty() { None } else { u64::from_str_radix(digits, 16).ok() }
}

/// The smallest is the symbol of those at one address that `perf report` prefers (`choose_best_symbol` of
/// util/symbol.c), so that names agree: with a size; not weak; global; fewer leading underscores; longer
/// name.
pub fn preference(name: &str, size: u64, is_weak: bool, is_global: bool) -> impl Ord + use<> {
    let underscores = name.bytes().take_while(|&byte| byte == b'_').count();
    (size == 0, is_weak, !is_global, underscores, Reverse(name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_its_address_back() {
        assert_eq!(nameless("/usr/bin/sort", 0x4327), "sort+0x4327");
        assert_eq!(nameless_start("sort+0x4327"), Some(0x4327));
        // A library whose name has a plus.
        assert_eq!(nameless_start(&nameless("/lib/libstdc++.so.6", 0x10)), Some(0x10));
        for other in ["main", "main+3", "+0x10", "main+0x", "0x4327"] {
            assert_eq!(nameless_start(other), None, "{other}");
        }
    }

    #[test]
    fn names_with_fewer_underscores_are_preferred() {
        let of = |name| preference(name, 8, false, true);
        assert!(of("random") < of("__random"));
        assert!(preference("__random", 8, false, true) < preference("random", 8, true, false));
    }
}
