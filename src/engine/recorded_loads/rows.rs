//! Sums → rows of the document.

use super::access::Site;
use super::code::Code;
use super::event::Sampled;
use super::executed::Executed;
use super::gather::{EventSums, Gathered, Object};
use super::patterns::{Patterns, patterns, words};
use crate::documents::loads::{
    BlockOf, EventRow, LevelsRow, LoadRow, LoopOf, VariableOf, VariableRow,
};
use isa::code::text;
use loads::access::Access;
use loads::recorded::{Level, Operation, Sum};
use profile::address_space::ModuleAddress;
use profile::event::Event;
use std::collections::HashMap;

/// Variables listed of a load.
const MOST_VARIABLES: usize = 4;

/// An event of a recording.
pub(crate) struct Of<'a> {
    pub event: &'a Event,
    /// Its number over all recordings.
    pub number: usize,
    pub source: &'a str,
    pub sums: &'a EventSums,
}

pub(crate) fn hex(address: u64) -> String {
    format!("{address:#x}")
}

pub(crate) fn levels(sum: &Sum) -> LevelsRow {
    LevelsRow {
        lfb: sum.level(Level::Lfb),
        l1: sum.level(Level::L1),
        l2: sum.level(Level::L2),
        l3: sum.level(Level::L3),
        ram: sum.level(Level::Ram),
        remote_ram: sum.level(Level::RemoteRam),
        remote_cache: sum.level(Level::RemoteCache),
        other: sum.level(Level::Other),
    }
}

/// The event itself.
pub(crate) fn event_row(of: &Of) -> EventRow {
    let sampled = Sampled::of(of.event);
    let total = |operation| of.sums.totals.get(&operation).cloned().unwrap_or_default();
    let (loads, stores) = (total(Operation::Load), total(Operation::Store));
    let prefetches = total(Operation::Prefetch).samples;
    let main = if loads.samples > 0 { &loads } else { &stores };
    EventRow {
        event: of.number,
        source: of.source.to_owned(),
        name: of.event.name.clone(),
        loads: loads.samples,
        stores: stores.samples,
        others: of.sums.others + prefetches,
        least_latency: sampled.least_latency(),
        bias: sampled.bias(),
        shares: if main.weight > 0.0 { "latency" } else { "samples" }.to_owned(),
        inexact: loads.inexact + stores.inexact,
        levels: levels(main),
        latency_mean: main.latencies.mean(),
    }
}

/// The share of a sum: of latencies where there are any.
fn share(own: &Sum, total: &Sum) -> f64 {
    match total.weight > 0.0 {
        true => own.weight / total.weight,
        false => own.events / total.events.max(1.0),
    }
}

/// The loads or stores of an event, those with the largest share first.
pub(crate) fn access_rows(
    of: &Of,
    operation: Operation,
    gathered: (&[Object], &mut Code),
    executed: &Executed,
) -> Vec<LoadRow> {
    let Some(total) = of.sums.totals.get(&operation) else { return Vec::new() };
    let (objects, code) = gathered;
    let mut variables: HashMap<Site, Vec<(u64, usize)>> = HashMap::new();
    for ((own, site, object), samples) in &of.sums.accessed {
        if *own == operation {
            variables.entry(*site).or_default().push((*samples, *object));
        }
    }
    let own = of.sums.sites.iter().filter(|((own, _), _)| *own == operation);
    let mut all: Vec<(Site, &Sum)> = own.map(|((_, site), sum)| (*site, sum)).collect();
    all.sort_by(|(a, x), (b, y)| share(y, total).total_cmp(&share(x, total)).then(a.cmp(b)));
    let patterns = match operation {
        Operation::Load => patterns(all.iter().map(|(site, _)| *site), code),
        _ => Patterns::new(),
    };
    let rows = all.into_iter().map(|(site, sum)| {
        let mut own = variables.remove(&site).unwrap_or_default();
        own.sort_by(|(a, x), (b, y)| b.cmp(a).then(objects[*x].cmp(&objects[*y])));
        let named = own.iter().take(MOST_VARIABLES).map(|(samples, object)| VariableOf {
            name: name(&objects[*object], code),
            samples: *samples,
        });
        let quantile = |part| sum.latencies.quantile(part);
        let mut row = LoadRow {
            event: of.number,
            address: hex(site.address()),
            share: share(sum, total),
            samples: sum.samples,
            levels: levels(sum),
            latency_mean: sum.latencies.mean(),
            latency_p50: quantile(0.5),
            latency_p90: quantile(0.9),
            latency_p99: quantile(0.99),
            tlb_walks: (sum.translated > 0).then_some(sum.walks),
            tlb_second: (sum.second_tlb > 0).then_some(sum.second_tlb),
            locked: sum.locked,
            snoop_hits: sum.snoop_hits,
            snoop_modified: sum.snoop_modified,
            variables: named.collect(),
            ..LoadRow::default()
        };
        if let Some(place) = site.place() {
            add_code(&mut row, place, code, executed);
            if let Some(access) = patterns.get(&place) {
                add_pattern(&mut row, access);
            }
        }
        row
    });
    rows.collect()
}

/// Adds what the code around it is.
fn add_code(row: &mut LoadRow, place: ModuleAddress, code: &mut Code, executed: &Executed) {
    row.module = code.path(place.module);
    row.function = code.function(place).map(|function| function.short);
    row.instruction = code.instruction(place).map(|instruction| text(&instruction));
    let line = code.line(place).unwrap_or_default();
    (row.file, row.line) = (line.file, line.line);
    let Some(module) = code.modules.get(place.module).cloned() else { return };
    row.executions = executed.executions_of(&module, place.address).map(|(own, _)| own);
    let Some(flow) = code.flow(place) else { return };
    let block = flow.block_at(place.address).and_then(|number| flow.blocks.get(number));
    let Some(block) = block else { return };
    row.block = Some(BlockOf { start: hex(block.start), end: hex(block.end) });
    let mut next = block.innermost;
    while let Some(own) = next.and_then(|number| flow.loops.get(number)) {
        if let Some(head) = flow.blocks.get(own.head) {
            let trips = executed.trips_of(&module, head.start);
            row.loops.push(LoopOf {
                head: hex(head.start),
                trips: trips.and_then(|trips| trips.mean),
                trips_at_least: trips.and_then(|trips| trips.at_least),
                ..LoopOf::default()
            });
        }
        next = own.parent;
    }
}

/// Adds how its addresses are made.
fn add_pattern(row: &mut LoadRow, access: &Access) {
    for level in &access.levels {
        let head = hex(level.head);
        if let Some(own) = row.loops.iter_mut().find(|own| own.head == head) {
            own.class = Some(level.class.name().to_owned());
            own.pattern = Some(words(level));
        }
    }
    let Some(level) = access.innermost() else { return };
    row.class = Some(level.class.name().to_owned());
    row.pattern = Some(words(level));
    row.slice = Some(level.slice.iter().map(|address| hex(*address)).collect());
}

/// The name of an object.
pub(crate) fn name(object: &Object, code: &Code) -> String {
    match object {
        Object::Data { name, .. } => name.clone(),
        Object::Mapping(module) => code.path(*module),
        Object::Unknown => "unknown".to_owned(),
    }
}

/// What was accessed.
pub(crate) fn variable_rows(of: &Of, gathered: &Gathered) -> Vec<VariableRow> {
    let mut all: HashMap<usize, (Option<&Sum>, Option<&Sum>)> = HashMap::new();
    for ((operation, object), sum) in &of.sums.objects {
        let own = all.entry(*object).or_default();
        match operation {
            Operation::Load => own.0 = Some(sum),
            Operation::Store => own.1 = Some(sum),
            Operation::Prefetch => {}
        }
    }
    let totals = of.sums.totals.iter().filter(|(operation, _)| **operation != Operation::Prefetch);
    let totals: Vec<&Sum> = totals.map(|(_, sum)| sum).collect();
    let weight: f64 = totals.iter().map(|sum| sum.weight).sum();
    let events: f64 = totals.iter().map(|sum| sum.events).sum();
    let mut rows: Vec<VariableRow> = all
        .into_iter()
        .filter_map(|(number, (loads, stores))| {
            let main = loads.or(stores)?;
            let both = || loads.into_iter().chain(stores);
            let share = match weight > 0.0 {
                true => both().map(|sum| sum.weight).sum::<f64>() / weight,
                false => both().map(|sum| sum.events).sum::<f64>() / events.max(1.0),
            };
            let row = variable(&gathered.objects[number], &gathered.code);
            Some(VariableRow {
                event: of.number,
                share,
                loads: loads.map_or(0, |sum| sum.samples),
                stores: stores.map_or(0, |sum| sum.samples),
                levels: levels(main),
                latency_mean: main.latencies.mean(),
                ..row
            })
        })
        .collect();
    rows.sort_by(|a, b| {
        let key = |row: &VariableRow| (row.module.clone(), row.name.clone(), row.address.clone());
        b.share.total_cmp(&a.share).then_with(|| key(a).cmp(&key(b)))
    });
    rows
}

fn variable(object: &Object, code: &Code) -> VariableRow {
    let (kind, module) = match object {
        Object::Data { module, named: true, .. } => ("variable", code.path(*module)),
        Object::Data { module, .. } => ("section", code.path(*module)),
        Object::Mapping(_) => ("mapping", String::new()),
        Object::Unknown => ("unknown", String::new()),
    };
    let (address, size) = match object {
        Object::Data { start, size, .. } => (Some(hex(*start)), Some(*size)),
        Object::Mapping(_) | Object::Unknown => (None, None),
    };
    VariableRow {
        module,
        name: name(object, code),
        kind: kind.to_owned(),
        address,
        size,
        ..VariableRow::default()
    }
}
