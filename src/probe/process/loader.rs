//! The hook by which the dynamic loader announces a mapped file: `_dl_debug_state`, the function
//! that `r_debug.r_brk` (<link.h>) gives debuggers; glibc and musl both have it.

use super::maps::Mapping;
use object::{Object as _, ObjectSymbol as _};
use std::fs;

/// Most bytes of a loader that is read.
const LONGEST: u64 = 64 << 20;
/// Address of the loader in the auxiliary vector (<elf.h>).
const AT_BASE: u64 = 7;

/// The address of the hook in process `pid`; `None` if it has no loader, or one without it.
pub fn hook(pid: i32, mappings: &[Mapping]) -> Option<u64> {
    let base = base(&fs::read(format!("/proc/{pid}/auxv")).ok()?)?;
    let path = &mappings.iter().find(|m| m.start == base)?.path;
    if fs::metadata(path).ok()?.len() > LONGEST {
        return None;
    }
    let data = fs::read(path).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let mut all = file.dynamic_symbols().chain(file.symbols());
    let symbol = all.find(|s| s.name() == Ok("_dl_debug_state") && s.address() != 0)?;
    base.checked_add(symbol.address())
}

/// The loader's address in an auxiliary vector: pairs of words.
fn base(vector: &[u8]) -> Option<u64> {
    let words: Vec<u64> = vector
        .chunks_exact(8)
        .filter_map(|w| Some(u64::from_le_bytes(w.try_into().ok()?)))
        .collect();
    let pair = words.chunks_exact(2).find(|pair| pair[0] == AT_BASE)?;
    (pair[1] != 0).then_some(pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_loader_with_the_function() {
        let pid = std::process::id().cast_signed();
        let all = super::super::maps::mappings(pid);
        let Some(_) = base(&fs::read("/proc/self/auxv").unwrap()) else { return };
        let hook = hook(pid, &all).unwrap();
        assert!(all.iter().any(|m| m.is_executable() && (m.start..m.end).contains(&hook)));
    }
}
