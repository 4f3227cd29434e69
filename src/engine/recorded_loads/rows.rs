//! Sums → rows of the document.

use super::criticality::{Patterns, patterns, words};
use super::event::{Sampled, Site};
use super::executed::Executed;
use super::fields::{Field, field};
use super::gather::{Gathered, Of, levels};
use super::lines::name_of;
use isa::code::text;
use loads::access::Access;
use loads::recorded::{Operation, Sum};
use profile::address_space::ModuleAddress;
use profile::code::Code;
use profile::symbols::Untyped;
use report::documents::loads::{BlockOf, EventRow, LoadRow, LoopOf, Shares, VariableOf};
use std::collections::HashMap;
use tma::Address;

/// Variables listed of a load.
const MOST_VARIABLES: usize = 4;

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
        shares: if main.weight > 0.0 { Shares::Latency } else { Shares::Samples },
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
    gathered: &mut Gathered,
    executed: &Executed,
) -> Vec<LoadRow> {
    let Some(total) = of.sums.totals.get(&operation) else { return Vec::new() };
    let mut variables = accessed(of, operation, gathered);
    let code = &mut gathered.code;
    let own = of.sums.sites.iter().filter(|((own, _), _)| *own == operation);
    let mut all: Vec<(Site, &Sum)> = own.map(|((_, site), sum)| (*site, sum)).collect();
    all.sort_by(|(a, x), (b, y)| share(y, total).total_cmp(&share(x, total)).then(a.cmp(b)));
    let patterns = match operation {
        Operation::Load => patterns(all.iter().map(|(site, _)| *site), code),
        _ => Patterns::new(),
    };
    let rows = all.into_iter().map(|(site, sum)| {
        let own = variables.remove(&site).unwrap_or_default();
        let member = own.member.clone();
        let quantile = |part| sum.latencies.quantile(part);
        let mut row = LoadRow {
            event: of.number,
            address: Address(site.address()),
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
            variables: own.variables,
            ..LoadRow::default()
        };
        if let Some(place) = site.place() {
            add_code(&mut row, place, code, executed);
            add_field(&mut row, field(place, code), member);
            if let Some(access) = patterns.get(&place) {
                add_pattern(&mut row, access);
            }
        }
        row
    });
    rows.collect()
}

/// The accesses of an instruction.
#[derive(Default)]
struct Accessed {
    /// The most sampled first.
    variables: Vec<VariableOf>,
    /// The member of a static variable, if it is always the same.
    member: Option<Field>,
}

/// The accesses of an event's instructions.
fn accessed(of: &Of, operation: Operation, gathered: &Gathered) -> HashMap<Site, Accessed> {
    let mut all: HashMap<Site, HashMap<String, (u64, Option<&Field>)>> = HashMap::new();
    for ((own, site, object, member), samples) in &of.sums.accessed {
        if *own == operation {
            let member = gathered.members[*member].as_ref();
            let name = member.map(|member| member.text.clone());
            let name = name.unwrap_or_else(|| name_of(&gathered.objects[*object], &gathered.code));
            all.entry(*site).or_default().entry(name).or_insert((0, member)).0 += samples;
        }
    }
    let accessed = |(site, names): (Site, HashMap<String, (u64, Option<&Field>)>)| {
        let member = match names.len() {
            1 => names.values().next().and_then(|(_, member)| member.cloned()),
            _ => None,
        };
        let mut variables: Vec<VariableOf> =
            names.into_iter().map(|(name, (samples, _))| VariableOf { name, samples }).collect();
        variables.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.name.cmp(&b.name)));
        variables.truncate(MOST_VARIABLES);
        (site, Accessed { variables, member })
    };
    all.into_iter().map(accessed).collect()
}

/// Adds its operand in the source; `member` is that of the static variable that it accesses.
fn add_field(row: &mut LoadRow, found: Result<Field, Untyped>, member: Option<Field>) {
    match found.or_else(|why| member.ok_or(why)) {
        Ok(field) => {
            let is_member = !field.of.is_empty();
            row.field = Some(field.text);
            row.of = is_member.then_some(field.of);
            row.member = is_member.then_some(field.name);
            row.offset = is_member.then_some(field.offset);
        }
        Err(_) if row.instruction.is_none() => {
            row.field_unknown = Some("its code was not found".into())
        }
        Err(why) => {
            row.without_dwarf = why == Untyped::NoDwarf;
            row.field_unknown = Some(why.to_string());
        }
    }
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
    row.block = Some(BlockOf { start: Address(block.start), end: Address(block.end) });
    let mut next = block.innermost;
    while let Some(own) = next.and_then(|number| flow.loops.get(number)) {
        if let Some(head) = flow.blocks.get(own.head) {
            let trips = executed.trips_of(&module, head.start);
            row.loops.push(LoopOf {
                head: Address(head.start),
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
        let head = Address(level.head);
        if let Some(own) = row.loops.iter_mut().find(|own| own.head == head) {
            own.class = Some(level.class.kind());
            own.pattern = Some(words(level));
        }
    }
    let Some(level) = access.innermost() else { return };
    row.class = Some(level.class.kind());
    row.pattern = Some(words(level));
    row.slice = Some(level.slice.iter().copied().map(Address).collect());
}
