//! Access patterns of sampled loads, from the code around them.

use super::access::Site;
use super::code::Code;
use super::executed::Executed;
use loads::access::{Access, Function, Level, classify};
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
        if level.unknown.is_some() {
            return Regularity::Unknown;
        }
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

/// A class in words.
pub(super) fn words(level: &Level) -> String {
    match level.wraps {
        Some(bytes) => format!("{}, wraps at {bytes}", level.words()),
        None => level.words(),
    }
}
