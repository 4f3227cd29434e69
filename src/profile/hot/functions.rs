//! Counts per address → functions with their shares.

use super::function::HotFunction;
use super::gather::{Gathered, Tally};
use crate::address_space::{AddressSpaces, ModuleAddress};
use crate::symbols::Symbols;
use std::collections::{BTreeMap, HashMap};

/// What identifies a function: its module and its start address; [`u64::MAX`] for the addresses of a
/// module without a function.
pub type FunctionKey = (usize, u64);

/// The key of samples outside of all mappings.
const UNMAPPED: FunctionKey = (usize::MAX, 0);

/// Functions with samples, hottest first; the lists have one entry per function.
#[derive(Debug, Default)]
pub struct Functions {
    /// The functions.
    pub functions: Vec<HotFunction>,
    /// Their keys.
    pub keys: Vec<FunctionKey>,
    /// Their samples per address, sorted by address.
    pub addresses: Vec<Vec<(u64, Tally)>>,
    /// For recordings of several events: the event with the function's largest share, and that
    /// share.
    pub dominant: Vec<Option<(usize, f64)>>,
}

/// The samples of one function.
#[derive(Default)]
struct Sum {
    tally: Tally,
    function: HotFunction,
    addresses: BTreeMap<u64, Tally>,
}

/// Attributes what was gathered to functions; empties its lists of addresses.
pub fn attribute(
    gathered: &mut Gathered,
    spaces: &AddressSpaces,
    symbols: &mut Symbols,
) -> Functions {
    let mut sums: HashMap<Option<FunctionKey>, Sum> = HashMap::new();
    for (place, tally) in std::mem::take(&mut gathered.places) {
        let (key, function) = match place {
            Some(place) => {
                let (key, function) = function_at(place, spaces, symbols);
                (Some(key), function)
            }
            None => (None, unmapped()),
        };
        let sum = sums.entry(key).or_insert_with(|| Sum { function, ..Sum::default() });
        sum.tally.add(tally);
        if let Some(place) = place {
            sum.addresses.entry(place.address).or_default().add(tally);
        }
    }
    let mut sums: Vec<(Option<FunctionKey>, Sum)> = sums.into_iter().collect();
    // Equal shares are sorted by key, so that reports are reproducible.
    sums.sort_by(|(a, x), (b, y)| y.tally.weight.total_cmp(&x.tally.weight).then(a.cmp(b)));
    let mut found = Functions::default();
    for (key, sum) in sums {
        let mut function = sum.function;
        (function.share, function.samples) = (gathered.share(sum.tally), sum.tally.samples);
        found.functions.push(function);
        found.keys.push(key.unwrap_or(UNMAPPED));
        found.addresses.push(sum.addresses.into_iter().collect());
    }
    found.dominant = dominant(gathered, &found.keys, spaces, symbols);
    found
}

/// The event with each function's largest share of that event's samples: samples of different
/// events cannot be added up. Empty for recordings of one event.
fn dominant(
    gathered: &mut Gathered,
    keys: &[FunctionKey],
    spaces: &AddressSpaces,
    symbols: &mut Symbols,
) -> Vec<Option<(usize, f64)>> {
    let by_event = std::mem::take(&mut gathered.by_event);
    if by_event.len() < 2 {
        return Vec::new();
    }
    let index: HashMap<FunctionKey, usize> =
        keys.iter().enumerate().map(|(i, key)| (*key, i)).collect();
    let mut best: Vec<Option<(usize, f64)>> = vec![None; keys.len()];
    for (event, places) in by_event.into_iter().enumerate() {
        let all: f64 = places.values().map(|t| t.weight).sum();
        let mut shares = vec![0.0; keys.len()];
        for (place, tally) in places {
            let key = place.map_or(UNMAPPED, |p| function_at(p, spaces, symbols).0);
            if let (Some(&i), true) = (index.get(&key), all > 0.0) {
                shares[i] += tally.weight / all;
            }
        }
        for (best, share) in best.iter_mut().zip(shares) {
            if share > 0.0 && best.is_none_or(|(_, b)| share > b) {
                *best = Some((event, share));
            }
        }
    }
    best
}

/// The function at an address, without samples.
fn function_at(
    place: ModuleAddress,
    spaces: &AddressSpaces,
    symbols: &mut Symbols,
) -> (FunctionKey, HotFunction) {
    let module = &spaces.modules.all[place.module];
    let (name, path) = (module.name().to_owned(), module.path.clone());
    let Some(found) = symbols.function(module, place) else {
        let gap = symbols.gap(module).map(|gap| gap.to_string());
        let bracketed = bracketed(&name);
        let function = HotFunction {
            name: bracketed.clone(),
            short: bracketed,
            module: name,
            path,
            gap: gap.or_else(|| Some("no function is known at this address".to_owned())),
            ..HotFunction::default()
        };
        return ((place.module, u64::MAX), function);
    };
    let function = HotFunction {
        name: found.name,
        short: found.short,
        module: name,
        path,
        start: found.start,
        end: found.end,
        ..HotFunction::default()
    };
    ((place.module, found.start), function)
}

/// The name of the function at an address, and the name without parameters; the module's name in
/// brackets where no function is known.
pub fn names_at(
    place: ModuleAddress,
    spaces: &AddressSpaces,
    symbols: &mut Symbols,
) -> (String, String) {
    let module = &spaces.modules.all[place.module];
    match symbols.function_at(module, place.address) {
        Some(function) => (function.name.clone(), function.short.clone()),
        None => {
            let name = bracketed(module.name());
            (name.clone(), name)
        }
    }
}

/// A module's name in brackets; some have them already.
fn bracketed(module: &str) -> String {
    if module.starts_with('[') { module.to_owned() } else { format!("[{module}]") }
}

/// Samples outside of all known mappings.
fn unmapped() -> HotFunction {
    HotFunction {
        name: "[unknown]".to_owned(),
        short: "[unknown]".to_owned(),
        module: "[unknown]".to_owned(),
        gap: Some("no mapping is known at this address".to_owned()),
        ..HotFunction::default()
    }
}
