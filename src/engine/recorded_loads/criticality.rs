//! Sampled loads → critical ones, with their access patterns from the code around them.

use super::event::{Sampled, Site};
use super::executed::Executed;
use super::gather::{Gathered, Of};
use loads::access::{Access, Function, Level, classify};
use loads::class::Class;
use loads::recorded::{Critical, Judgement, Operation, Regularity, Sum, judge};
use profile::address_space::ModuleAddress;
use profile::code::Code;
use profile::module::Module;
use report::documents::loads::{CriticalRow, ParallelOf, ShareOf};
use std::collections::{BTreeMap, HashMap};
use tma::Address;

/// The critical loads of an event, those with most misses first.
pub(super) fn critical_rows(
    of: &Of,
    gathered: &mut Gathered,
    executed: &Executed,
) -> Vec<CriticalRow> {
    let Some(total) = of.sums.totals.get(&Operation::Load) else { return Vec::new() };
    let own = of.sums.sites.iter().filter(|((operation, _), _)| *operation == Operation::Load);
    let own: Vec<(Site, &Sum)> = own.map(|((_, site), sum)| (*site, sum)).collect();
    let often = own.iter().filter(|(_, sum)| sum.misses() > 0.0).map(|(site, _)| *site);
    let patterns = patterns(often, &mut gathered.code);
    let rows = Rows { of, total, patterns: &patterns, executed };
    let mut all: Vec<(f64, CriticalRow)> = own
        .into_iter()
        .filter_map(|(site, sum)| Some((sum.misses(), rows.row(site, sum, gathered)?)))
        .collect();
    all.sort_by(|(x, a), (y, b)| y.total_cmp(x).then_with(|| a.address.cmp(&b.address)));
    all.into_iter().map(|(_, row)| row).collect()
}

/// Inputs of all rows.
struct Rows<'a> {
    of: &'a Of<'a>,
    /// All loads of the event.
    total: &'a Sum,
    patterns: &'a Patterns,
    executed: &'a Executed,
}

impl Rows<'_> {
    fn row(&self, site: Site, sum: &Sum, gathered: &mut Gathered) -> Option<CriticalRow> {
        let Self { of, total, patterns, executed } = *self;
        let place = site.place()?;
        let access = patterns.get(&place);
        let module = gathered.code.modules.get(place.module)?.clone();
        let counted = executed.executions_of(&module, place.address);
        let counted = counted.filter(|(own, _)| *own > 0.0);
        let (share, of_what) = match counted {
            Some((own, all)) => (own / all, ShareOf::Executions),
            None => (sum.events / total.events.max(1.0), ShareOf::Samples),
        };
        // Misses of the run are known if each sample stands for a known number of events.
        let missed = counted.filter(|_| of.sums.has_periods && of.event_counts_loads());
        let (misses, misses_of) = match missed {
            Some((own, _)) => (Some((sum.misses() / own).min(1.0)), ShareOf::Executions),
            None => (sum.miss_share(), ShareOf::Samples),
        };
        let addresses =
            access.map_or(Regularity::Unknown, |access| regularity(access, &module, executed));
        let mut judgement = Judgement { executed: share, misses, addresses, parallel: None };
        if judge(&judgement) == Critical::No {
            return None;
        }
        let level = access.and_then(decisive);
        let (known, open) = sum.open;
        let recorded = (known > 0).then(|| open as f64 / known as f64);
        let parallel = recorded
            .or_else(|| missed.and_then(|_| parallel(of, place, &mut gathered.code, executed)));
        judgement.parallel = parallel;
        let verdict = judge(&judgement);
        (verdict != Critical::No).then(|| CriticalRow {
            event: of.number,
            module: module.path,
            address: Address(place.address),
            function: gathered.code.function(place).map(|function| function.short),
            executed: share,
            executed_of: of_what,
            misses: misses.unwrap_or(0.0),
            misses_of,
            misses_at_least: missed.is_some()
                && misses.is_some_and(|share| share < 1.0)
                && Sampled::of(of.event).counts_some(),
            class: level.map(|level| level.class.kind()),
            loop_head: level.map(|level| Address(level.head)),
            slice: level.map(|level| level.slice.iter().copied().map(Address).collect()),
            parallel,
            parallel_of: parallel.map(|_| {
                if recorded.is_some() { ParallelOf::Recorded } else { ParallelOf::Cycles }
            }),
            certain: verdict == Critical::Yes,
            ..CriticalRow::default()
        })
    }
}

/// The innermost loop in which the addresses are irregular; else the innermost one.
fn decisive(access: &Access) -> Option<&Level> {
    let regular = |level: &&Level| {
        matches!(level.class, Class::Constant | Class::Stride(_) | Class::UnknownStride)
    };
    access.levels.iter().find(|level| !regular(level)).or(access.innermost())
}

/// Misses of the last cache under way in the innermost loop around a load, on average over its cycles:
/// Σ latency of its misses / cycles (Little's law). While misses are under way there are at least as many.
fn parallel(of: &Of, place: ModuleAddress, code: &mut Code, executed: &Executed) -> Option<f64> {
    let body = code.innermost(place)?;
    let module = code.modules.get(place.module)?;
    let cycles = executed.cycles_in(module, &body)?;
    let inside = |site: &Site| {
        let own = site.place().filter(|own| own.module == place.module);
        own.is_some_and(|own| body.iter().any(|part| part.contains(&own.address)))
    };
    let own = of
        .sums
        .sites
        .iter()
        .filter(|((operation, site), _)| *operation == Operation::Load && inside(site));
    Some(own.map(|(_, sum)| sum.miss_weight).sum::<f64>() / cycles)
}

impl Of<'_> {
    /// Whether a sample stands for as many accesses of its kind as its period.
    fn event_counts_loads(&self) -> bool {
        Sampled::of(self.event).counts_accesses()
    }
}

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
fn regularity(access: &Access, module: &Module, executed: &Executed) -> Regularity {
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
