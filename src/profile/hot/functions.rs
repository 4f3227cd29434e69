//! Counts per address → functions with their shares.

use super::gather::Gathered;
use super::reads::Reads;
use super::tally::{FunctionKey, HotFunction, NO_FUNCTION, Tally, UNMAPPED};
use crate::address_space::{AddressSpaces, ModuleAddress};
use crate::files::Gap;
use crate::symbols::Symbols;
use std::collections::{BTreeMap, HashMap};

/// The name of a place that belongs to nothing known.
pub(super) const UNKNOWN: &str = "[unknown]";

/// Functions with samples, hottest first; the lists have one entry per function.
#[derive(Debug, Default)]
pub struct Functions {
    /// The functions.
    pub functions: Vec<HotFunction>,
    /// Their keys.
    pub keys: Vec<FunctionKey>,
    /// Their samples per address, sorted by address.
    pub addresses: Vec<Vec<(u64, Tally)>>,
    /// For recordings of several events: their samples.
    pub events: ByEvent,
    /// Counts that samples read.
    pub reads: Reads,
}

/// The samples of the events of a recording of several events; else empty.
#[derive(Debug, Default)]
pub struct ByEvent {
    /// All samples of each event.
    pub totals: Vec<Tally>,
    /// Samples per address by function and event, sorted by address.
    pub functions: Vec<Vec<Vec<(u64, Tally)>>>,
    /// Functions with samples of other events only: by event.
    pub others: Vec<(HotFunction, Vec<Tally>)>,
}

/// The samples of one function.
#[derive(Default)]
struct Sum {
    tally: Tally,
    function: HotFunction,
    addresses: BTreeMap<u64, Tally>,
    events: Vec<BTreeMap<u64, Tally>>,
}

/// Attributes what was gathered to functions; empties its lists of addresses.
pub fn attribute(
    gathered: &mut Gathered,
    spaces: &AddressSpaces,
    symbols: &mut Symbols,
) -> Functions {
    let mut sums: HashMap<Option<FunctionKey>, Sum> = HashMap::new();
    let by_event = std::mem::take(&mut gathered.by_event);
    let mut of = |place: Option<ModuleAddress>, take: &mut dyn FnMut(&mut Sum)| {
        let (key, function) = match place {
            Some(place) => {
                let (key, function) = function_at(place, spaces, symbols);
                (Some(key), function)
            }
            None => (None, unmapped()),
        };
        let empty = || vec![BTreeMap::new(); by_event.len()];
        let sum =
            sums.entry(key).or_insert_with(|| Sum { function, events: empty(), ..Sum::default() });
        take(sum);
    };
    for (place, tally) in std::mem::take(&mut gathered.places).into_sums() {
        of(place, &mut |sum| {
            sum.tally.add(tally);
            if let Some(place) = place {
                sum.addresses.entry(place.address).or_default().add(tally);
            }
        });
    }
    for (event, places) in by_event.iter().enumerate() {
        for (place, tally) in places {
            let address = place.map_or(0, |place| place.address);
            of(*place, &mut |sum| sum.events[event].entry(address).or_default().add(*tally));
        }
    }
    let mut found = Functions::default();
    found.events.totals = by_event.iter().map(|places| added(places.values())).collect();
    let mut sums: Vec<(Option<FunctionKey>, Sum)> = sums.into_iter().collect();
    // Equal shares are sorted by key, so that reports are reproducible.
    sums.sort_by(|(a, x), (b, y)| y.tally.weight.total_cmp(&x.tally.weight).then(a.cmp(b)));
    for (key, sum) in sums {
        let mut function = sum.function;
        if sum.tally.samples == 0 {
            let tallies = sum.events.iter().map(|places| added(places.values())).collect();
            found.events.others.push((function, tallies));
            continue;
        }
        (function.share, function.samples) = (gathered.share(sum.tally), sum.tally.samples);
        found.functions.push(function);
        found.keys.push(key.unwrap_or(UNMAPPED));
        found.addresses.push(sum.addresses.into_iter().collect());
        found.events.functions.push(sum.events.into_iter().map(Vec::from_iter).collect());
    }
    let reads = std::mem::take(&mut gathered.reads);
    found.reads = reads.of(&found.keys);
    found
}

/// The sum of tallies.
pub fn added<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Tally {
    tallies.fold(Tally::default(), |mut sum, tally| {
        sum.add(*tally);
        sum
    })
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
        let bracketed = bracketed(&name);
        let function = HotFunction {
            name: bracketed.clone(),
            short: bracketed,
            module: name,
            path,
            gap: Some(symbols.gap(module).unwrap_or(Gap::NoFunction)),
            ..HotFunction::default()
        };
        return ((place.module, NO_FUNCTION), function);
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
        name: UNKNOWN.to_owned(),
        short: UNKNOWN.to_owned(),
        module: UNKNOWN.to_owned(),
        gap: Some(Gap::NoMapping),
        ..HotFunction::default()
    }
}
