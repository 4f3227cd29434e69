//! A function with its share of the samples.

use crate::address_space::{AddressSpaces, ModuleAddress};
use crate::files::Gap;
use crate::symbols::Symbols;
use serde::{Deserialize, Serialize};

/// A function with samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HotFunction {
    /// Demangled name.
    pub name: String,
    /// The name without parameters and return type.
    pub short: String,
    /// Name of its module.
    pub module: String,
    /// Path of its module.
    pub path: String,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Number of samples.
    pub samples: u64,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line of its first instruction.
    pub line: Option<u32>,
    /// Its line with most samples, where that was looked up.
    pub hottest: Option<HotLine>,
    /// First address (p_vaddr).
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The reason why its code cannot be shown.
    pub gap: Option<Gap>,
}

/// A source line, and the function it was inlined from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotLine {
    /// Source file.
    pub file: String,
    /// Line in `file`.
    pub line: u32,
    /// Inlined function that it belongs to; `None` if not inlined.
    pub inlined: Option<String>,
}

/// Identity of a function: its module and start address; [`u64::MAX`] for addresses of a module outside any function.
pub type FunctionKey = (usize, u64);

/// The key of samples outside of all mappings.
pub(super) const UNMAPPED: FunctionKey = (usize::MAX, 0);
/// In place of a start address: no function is known.
pub(super) const NO_FUNCTION: u64 = u64::MAX;

/// The key of the function at a place.
pub(super) fn key_at(
    place: Option<ModuleAddress>,
    spaces: &AddressSpaces,
    symbols: &mut Symbols,
) -> FunctionKey {
    let Some(place) = place else { return UNMAPPED };
    let module = &spaces.modules.all[place.module];
    let function = symbols.function_at(module, place.address);
    (place.module, function.map_or(NO_FUNCTION, |function| function.start))
}
