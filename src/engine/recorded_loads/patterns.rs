//! Access patterns of sampled loads, from the code around them.

use super::access::Site;
use super::code::Code;
use super::executed::Executed;
use loads::access::{Access, Function, classify};
use loads::class::Class;
use loads::recorded::Regularity;
use profile::address_space::ModuleAddress;
use profile::module::Module;
use std::collections::{BTreeMap, HashMap};

/// A loop with fewer trips is too short for a stride prefetcher, which first needs about four equal strides: the
/// loop around it decides.
const FEW_TRIPS: f64 = 16.0;

/// Patterns by load.
pub(super) type Patterns = HashMap<ModuleAddress, Access>;

/// The patterns of these loads.
pub(super) fn patterns(sites: impl Iterator<Item = Site>, code: &mut Code) -> Patterns {
    let mut functions: BTreeMap<(usize, u64), Vec<ModuleAddress>> = BTreeMap::new();
    for place in sites.filter_map(Site::place) {
        let Some(function) = code.function(place) else { continue };
        functions.entry((place.module, function.start)).or_default().push(place);
    }
    let mut all = HashMap::new();
    for places in functions.into_values() {
        let Some(flow) = places.first().and_then(|place| code.flow(*place)) else { continue };
        let function = Function::of(&flow);
        all.extend(
            places.iter().filter_map(|place| Some((*place, classify(&function, place.address)?))),
        );
    }
    all
}

/// Whether a hardware prefetcher follows the addresses: they are constant or have a stride in the innermost loop
/// that is no short one.
pub(super) fn regularity(access: &Access, module: &Module, executed: &Executed) -> Regularity {
    for level in &access.levels {
        if !matches!(level.class, Class::Constant | Class::Stride(_) | Class::UnknownStride) {
            return Regularity::Irregular;
        }
        let trips = executed.trips_of(module, level.head).and_then(|trips| trips.mean);
        if trips.is_none_or(|trips| trips >= FEW_TRIPS) {
            return Regularity::Regular;
        }
    }
    match access.levels.is_empty() {
        true => Regularity::Unknown,
        false => Regularity::Regular,
    }
}

/// A class in words, as `count --loads` has them.
pub(super) fn words(class: &Class<u64>, wraps: Option<u64>) -> String {
    let text = match class {
        Class::Constant => "constant".to_owned(),
        Class::Stride(bytes) => format!("stride {bytes}"),
        Class::UnknownStride => "stride of unknown size".to_owned(),
        Class::Chase { scale: 1, offset: 0 } => "pointer chase".to_owned(),
        Class::Chase { scale: 1, offset } => format!("pointer chase, offset {offset}"),
        Class::Chase { scale, .. } => format!("chase of indices × {scale}"),
        Class::OffsetOfChase { of, offset } => format!("offset {offset} of the chase at {of:#x}"),
        Class::IndirectDelta { of } => format!("strides that {of:#x} loads"),
        Class::Indirect { of, scale: 1, inner } => {
            format!("indirect by pointer {of:#x} ({})", words(inner, None))
        }
        Class::Indirect { of, scale, inner } => {
            format!("indirect × {scale} by {of:#x} ({})", words(inner, None))
        }
        Class::Complex { ahead: true } => "complex, computable ahead".to_owned(),
        Class::Complex { ahead: false } => "complex".to_owned(),
        Class::Irregular => "irregular".to_owned(),
    };
    match wraps {
        Some(bytes) => format!("{text}, wraps at {bytes}"),
        None => text,
    }
}
