//! The allocators of a file.

use super::names::{contents, named};
use object::{Object as _, ObjectSymbol as _};
use std::ops::Range;
use std::path::Path;

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
