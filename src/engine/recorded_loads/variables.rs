//! Sums → variables of the document.

use super::code::Code;
use super::event_of::{Of, levels};
use super::gather::{Gathered, MemberSum};
use super::objects::Object;
use loads::recorded::{Operation, Sum};
use profile::module::ModuleKind;
use report::documents::loads::{MemberRow, VariableKind, VariableRow};
use std::collections::HashMap;
use tma::Address;

/// The name of an object.
pub(crate) fn name_of(object: &Object, code: &Code) -> String {
    match object {
        Object::Data { name, .. } => name.clone(),
        Object::Mapping(module) => match kind_of_mapping(*module, code) {
            VariableKind::Mapping => code.path(*module),
            kind => kind.to_string(),
        },
        Object::Stack => "stack".to_owned(),
        Object::Unknown => "unknown".to_owned(),
    }
}

/// The variables that were accessed.
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
    let mut members = member_rows(of, gathered, weight, events);
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
                members: members.remove(&number).unwrap_or_default(),
                ..row
            })
        })
        .collect();
    rows.sort_by(|a, b| {
        let key = |row: &VariableRow| (row.module.clone(), row.name.clone(), row.address);
        b.share.total_cmp(&a.share).then_with(|| key(a).cmp(&key(b)))
    });
    rows
}

fn variable(object: &Object, code: &Code) -> VariableRow {
    let (kind, module) = match object {
        Object::Data { module, named: true, .. } => (VariableKind::Variable, code.path(*module)),
        Object::Data { module, .. } => (VariableKind::Section, code.path(*module)),
        Object::Mapping(module) => (kind_of_mapping(*module, code), String::new()),
        Object::Stack => (VariableKind::Stack, String::new()),
        Object::Unknown => (VariableKind::Unknown, String::new()),
    };
    let (address, size) = match object {
        Object::Data { start, size, .. } => (Some(Address(*start)), Some(*size)),
        Object::Mapping(_) | Object::Stack | Object::Unknown => (None, None),
    };
    VariableRow {
        module,
        name: name_of(object, code),
        kind,
        address,
        size,
        ..VariableRow::default()
    }
}

/// Memory without a file is that of the heap; stacks of threads are among it.
fn kind_of_mapping(module: usize, code: &Code) -> VariableKind {
    match code.modules.get(module) {
        Some(module) if module.path.starts_with("[stack") => VariableKind::Stack,
        Some(module) if module.kind == ModuleKind::Anonymous => VariableKind::Heap,
        _ => VariableKind::Mapping,
    }
}

/// The members of static variables, by number of the variable.
fn member_rows(
    of: &Of,
    gathered: &Gathered,
    weight: f64,
    events: f64,
) -> HashMap<usize, Vec<MemberRow>> {
    let mut all: HashMap<(usize, usize), [MemberSum; 2]> = HashMap::new();
    for ((operation, object, member), sum) in &of.sums.members {
        let own = all.entry((*object, *member)).or_default();
        match operation {
            Operation::Load => own[0] = *sum,
            Operation::Store => own[1] = *sum,
            Operation::Prefetch => {}
        }
    }
    let mut rows: HashMap<usize, Vec<MemberRow>> = HashMap::new();
    for ((object, member), [loads, stores]) in all {
        let Some(field) = &gathered.members[member] else { continue };
        let share = match weight > 0.0 {
            true => (loads.weight + stores.weight) / weight,
            false => (loads.events + stores.events) / events.max(1.0),
        };
        let (timed, cycles) = if loads.samples > 0 { loads.latencies } else { stores.latencies };
        rows.entry(object).or_default().push(MemberRow {
            name: field.text.clone(),
            share,
            loads: loads.samples,
            stores: stores.samples,
            latency_mean: (timed > 0).then(|| cycles as f64 / timed as f64),
        });
    }
    for own in rows.values_mut() {
        own.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
    }
    rows
}
