//! Parses places in a program as a user writes them, and finds the functions of an ELF file: by name, around an
//! address, or by its unwind table, with names for those without a symbol.

use crate::elf::unwind_ranges;
use object::{Object as _, ObjectSymbol as _, SectionIndex, SymbolKind};
use std::cmp::Reverse;
use std::ops::Range;
use tma::error::nearest;
use tma::{Error, Result};

/// A location in an ELF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// Start and end (exclusive) addresses.
    Range(u64, u64),
    /// The basic block that contains the address.
    At(u64),
    /// The N-th basic block of a function.
    Function(String, usize),
    /// The first block of a loop.
    Loop(LoopName),
}

/// A loop of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopName {
    /// The N-th loop of a function, outer ones first.
    Number(String, usize),
    /// The innermost loop that contains the address.
    At(u64),
}

impl Location {
    /// Splits `FILE:LOCATION`; `None` if the text has another form.
    pub fn parse(text: &str) -> Option<(&str, Self)> {
        let (file, place) = split(text)?;
        let is_name = place.contains(['(', '<']);
        if let Some((start, end)) = place.split_once("..").filter(|_| !is_name) {
            return Some((file, Self::Range(address(start)?, address(end)?)));
        }
        if file.is_empty() || place.is_empty() {
            return None;
        }
        if let Some(at) = place.strip_prefix("0x") {
            return Some((file, Self::At(address(at)?)));
        }
        if let Some(one) = loop_name(place) {
            return Some((file, Self::Loop(one)));
        }
        let (name, number) = match place.rsplit_once('+') {
            Some((name, address)) if !name.is_empty() && address.starts_with("0x") => (place, 0),
            Some((name, number)) if !name.ends_with("operator") && !name.ends_with("operator+") => {
                (name, number.parse().ok()?)
            }
            _ => (place, 0),
        };
        (!name.is_empty()).then(|| (file, Self::Function(name.to_owned(), number)))
    }

    /// The function that it names.
    pub fn function(&self) -> Option<&str> {
        match self {
            Self::Function(name, _) | Self::Loop(LoopName::Number(name, _)) => Some(name),
            _ => None,
        }
    }

    /// The same offset or block in the function `name`.
    #[must_use]
    pub fn of_function(&self, name: &str) -> Self {
        match self {
            Self::Function(_, number) => Self::Function(name.to_owned(), *number),
            Self::Loop(LoopName::Number(_, number)) => {
                Self::Loop(LoopName::Number(name.to_owned(), *number))
            }
            other => other.clone(),
        }
    }
}

/// The file and the place of `FILE:PLACE`: names of C++ and Rust have colons of their own, two each.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let is_alone = |at: &usize| {
        let same = |other: Option<usize>| other.and_then(|n| bytes.get(n)) == Some(&b':');
        bytes[*at] == b':' && !same(at.checked_sub(1)) && !same(Some(at + 1))
    };
    // The first of three colons of a global name (`::name`).
    let colon = (0..bytes.len()).rev().find(is_alone).or_else(|| text.find(":::"))?;
    Some((&text[..colon], &text[colon + 1..]))
}

/// `FUNCTION@N`, `FUNCTION@0xADDRESS`, `@0xADDRESS`; other names may contain an `@`, too.
fn loop_name(place: &str) -> Option<LoopName> {
    let (name, which) = place.rsplit_once('@')?;
    match which.strip_prefix("0x") {
        Some(at) => address(at).map(LoopName::At),
        None if name.is_empty() => None,
        None => which.parse().ok().map(|number| LoopName::Number(name.to_owned(), number)),
    }
}

/// A hexadecimal address, with or without `0x`.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

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
    fn locations_parse_as_documented() {
        let range = Location::Range(0x401000, 0x401010);
        assert_eq!(Location::parse("a.out:0x401000..0x401010"), Some(("a.out", range.clone())));
        assert_eq!(Location::parse("a.out:401000..401010"), Some(("a.out", range)));
        let named = Location::Function("main".into(), 3);
        assert_eq!(Location::parse("./a.out:main+3"), Some(("./a.out", named)));
        assert_eq!(Location::parse("4801d8"), None);
        assert_eq!(Location::parse("a.out:0x401004"), Some(("a.out", Location::At(0x40_1004))));
        let number = Location::Loop(LoopName::Number("main".into(), 2));
        assert_eq!(Location::parse("a.out:main@2"), Some(("a.out", number)));
        let at = Location::Loop(LoopName::At(0x40_1004));
        assert_eq!(Location::parse("a.out:main@0x401004"), Some(("a.out", at.clone())));
        assert_eq!(Location::parse("a.out:@0x401004"), Some(("a.out", at)));
        for (name, number) in [
            ("ns::Class::method(int)", "+3"),
            ("core::fmt::Formatter<'_>::pad", "+3"),
            ("<a::B as c::D>::call(std::span<int>, ...)", "+3"),
            ("ns::operator+", ""),
            ("ns::operator++(int)", "+3"),
        ] {
            let of = Location::Function(name.into(), if number.is_empty() { 0 } else { 3 });
            assert_eq!(Location::parse(&format!("./a:{name}{number}")), Some(("./a", of)));
        }
        let one = Location::Loop(LoopName::Number("a::b".into(), 1));
        assert_eq!(Location::parse("x::y:a::b@1"), Some(("x::y", one)));
        assert_eq!(split("a.out:::f"), Some(("a.out", "::f")));
        let nameless = Location::Function("sort+0x4327".into(), 3);
        assert_eq!(Location::parse("/bin/sort:sort+0x4327+3"), Some(("/bin/sort", nameless)));
        let nameless = Location::Function("sort+0x4327".into(), 0);
        assert_eq!(Location::parse("sort:sort+0x4327"), Some(("sort", nameless)));
        let odd = Location::Function("puts@plt".into(), 0);
        assert_eq!(Location::parse("a.out:puts@plt"), Some(("a.out", odd)));
    }

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
