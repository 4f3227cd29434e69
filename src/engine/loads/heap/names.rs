//! The callers of an allocator → the site in the program: the first caller that is neither in a library that
//! allocates itself nor in the standard library of C++ or Rust.

use super::allocators::Allocators;
use probe::bursts::{Caller, Heap};
use profile::address_space::ModuleAddress;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use report::documents::count::AllocationSite;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Beginnings of the names of standard libraries' files.
const LIBRARIES: [&str; 6] = ["libc.so", "libc-", "libstdc++", "libc++", "libgcc_s", "libpthread"];
/// Beginnings of the names of functions that allocate for their callers.
const WRAPPERS: [&str; 12] = [
    "operator new",
    "std::",
    "__gnu_cxx::",
    "alloc::",
    "core::",
    "hashbrown::",
    "<std::",
    "<alloc::",
    "<core::",
    "<hashbrown::",
    "__rust",
    "__rdl_",
];
/// Symbols of glibc's functions that map memory for malloc, or a stack, in a program that is linked statically.
const MAPPERS: [&str; 6] =
    ["sysmalloc", "new_heap", "alloc_new_heap", "_int_", "allocate_stack", "pthread_create"];

/// The sites of a run.
pub(super) struct Names<'a> {
    symbols: Symbols,
    /// Libraries that define functions that give memory.
    libraries: BTreeSet<&'a PathBuf>,
    numbers: HashMap<Option<(PathBuf, u64)>, usize>,
    /// By number; not yet with their sums.
    pub all: Vec<AllocationSite>,
}

impl<'a> Names<'a> {
    /// None yet.
    pub fn new(allocators: &'a Allocators) -> Self {
        let is_library = |path: &&PathBuf| name(path).contains(".so");
        let libraries = allocators.files().into_iter().filter(is_library).collect();
        let symbols = Symbols::default();
        Self { symbols, libraries, numbers: HashMap::new(), all: Vec::new() }
    }

    /// The number of the site of a call of `function`.
    pub fn number(&mut self, heap: &Heap, callers: &[Caller], function: &str) -> usize {
        let path = |caller: &Caller| &heap.files[caller.file as usize];
        let own = callers.iter().position(|caller| !self.is_wrapper(path(caller), caller.address));
        // The stack is known of the innermost ones.
        let index = own.or_else(|| callers.len().checked_sub(1));
        let place = index.map(|index| (path(&callers[index]).clone(), callers[index].address));
        if let Some(number) = self.numbers.get(&place) {
            return *number;
        }
        let before = index.and_then(|index| index.checked_sub(1)).map(|before| callers[before]);
        let by = match before {
            Some(before) => self.function(path(&before), before.address).map(|(name, _)| name),
            None => Some(function.to_owned()),
        };
        let by = by.map_or_else(|| "?".to_owned(), |name| plain(&name));
        let site = match &place {
            Some((path, at)) => {
                AllocationSite { by, is_library: own.is_none(), ..self.site(path, *at) }
            }
            // Code without a file.
            None => {
                AllocationSite { by, function: "unknown code".to_owned(), ..Default::default() }
            }
        };
        self.numbers.insert(place, self.all.len());
        self.all.push(site);
        self.all.len() - 1
    }

    /// Whether an allocator maps memory for itself, or the library that it is in a stack: the call with this caller.
    pub fn is_own(&mut self, heap: &Heap, callers: &[Caller]) -> bool {
        let Some(caller) = callers.first() else { return false };
        let path = &heap.files[caller.file as usize];
        let maps = |name: &str| {
            MAPPERS.iter().any(|start| name.trim_start_matches("__").starts_with(start))
        };
        self.libraries.contains(path)
            || self.function(path, caller.address).is_some_and(|(name, _)| maps(&name))
    }

    fn site(&mut self, path: &Path, address: u64) -> AllocationSite {
        let found = self.function(path, address);
        let place = ModuleAddress { module: 0, address: address - 1 };
        let lines = self.symbols.lines(&module(path), place);
        let own = lines.iter().find(|line| line.inlined.as_deref().is_none_or(|n| !wraps(n)));
        let (function, start) = found.unwrap_or_else(|| (name(path), 0));
        AllocationSite {
            module: path.display().to_string(),
            function,
            address: Some(address.into()),
            offset: address - start,
            file: own.and_then(|line| line.file.clone()),
            line: own.and_then(|line| line.line),
            inlined: own.and_then(|line| line.inlined.as_deref().map(plain)),
            ..AllocationSite::default()
        }
    }

    /// Whether the call is one of a function that allocates for others.
    fn is_wrapper(&mut self, path: &PathBuf, address: u64) -> bool {
        let file = name(path);
        self.libraries.contains(path)
            || LIBRARIES.iter().any(|library| file.starts_with(library))
            || self.function(path, address).is_some_and(|(name, _)| wraps(&name))
    }

    /// The function with a call, and its first address.
    fn function(&mut self, path: &Path, address: u64) -> Option<(String, u64)> {
        let found = self.symbols.function_at(&module(path), address - 1)?;
        Some((found.short.clone(), found.start))
    }
}

/// Whether a function allocates for its callers.
fn wraps(function: &str) -> bool {
    let name = bare(function);
    WRAPPERS.iter().any(|start| name.starts_with(start) || function.starts_with(start))
}

/// A name without arguments and what it returns: `void std::f<int>(int)` is `std::f`.
fn plain(function: &str) -> String {
    if function.starts_with("operator") {
        return function.split('(').next().unwrap_or_default().to_owned();
    }
    let mut depth = 0;
    let mut outside = |letter: &char| {
        depth += i32::from(*letter == '<');
        let is_outside = depth == 0;
        depth -= i32::from(*letter == '>');
        is_outside
    };
    let name: String = bare(function).chars().take_while(|c| *c != '(').collect();
    // Rust's implementations begin so.
    if name.starts_with('<') { name } else { name.chars().filter(|c| outside(c)).collect() }
}

/// A name without what templates return: `void std::f<int>(int)` is `std::f<int>(int)`.
fn bare(function: &str) -> &str {
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in function.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            '(' if depth == 0 => break,
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &function[start..]
}

fn module(path: &Path) -> Module {
    let path = path.display().to_string();
    Module { path, kind: ModuleKind::File, ..Module::default() }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_allocate_for_others() {
        let names = [
            ("operator new", true),
            ("std::vector<int, std::allocator<int> >::_M_default_append", true),
            ("void std::vector<a::b>::_M_realloc_insert<a::b>(a::b&&)", true),
            ("<alloc::vec::Vec<T> as core::clone::Clone>::clone", true),
            ("__rust_alloc", true),
            ("build", false),
            ("std_like", false),
            ("table<std::string>::grow(std::string const&)", false),
            ("operator<<", false),
        ];
        names.iter().for_each(|(name, expected)| assert_eq!(wraps(name), *expected, "{name}"));
        let short = [
            (
                "std::vector<int, std::allocator<int> >::_M_default_append",
                "std::vector::_M_default_append",
            ),
            ("void table<a<b> >::grow<int>(int)", "table::grow"),
            ("operator new", "operator new"),
            ("main", "main"),
        ];
        short.iter().for_each(|(name, expected)| assert_eq!(plain(name), *expected));
    }
}
