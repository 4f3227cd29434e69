//! Sums → variables of the document, and cache lines that several threads access.

use super::event::Site;
use super::executed::memory;
use super::fields::field;
use super::gather::{Gathered, LineFound, MemberSum, Of, levels};
use super::objects::Object;
use iced_x86::InstructionInfoFactory;
use loads::recorded::{Accesses, Actor, Line, Operation, Sum};
use profile::code::Code;
use profile::module::ModuleKind;
use report::documents::loads::{LineAccessRow, LineRow, MemberRow, VariableKind, VariableRow};
use std::collections::HashMap;
use tma::Address;

/// The lines of a recording, those found modified in another core's cache most often first.
pub(super) fn line_rows(gathered: &mut Gathered, recording: usize) -> Vec<LineRow> {
    let lines = std::mem::take(&mut gathered.lines);
    let mut bytes = Widths { known: HashMap::new(), info: InstructionInfoFactory::new() };
    let mut rows: Vec<LineRow> = lines
        .into_iter()
        .map(|(line, mut found)| {
            for ((.., site), accesses) in &mut found.shared.accesses {
                accesses.bytes = bytes.of(gathered.sites[*site], &mut gathered.code);
            }
            line_row(gathered, recording, line, &found)
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.modified, row.writes + row.loads)));
    // Every line that was found modified is among them.
    let all: u64 = rows.iter().map(|row| row.modified).sum();
    for row in &mut rows {
        row.share = (all > 0).then(|| row.modified as f64 / all as f64);
    }
    rows
}

/// Bytes that instructions access.
struct Widths {
    known: HashMap<Site, Option<u8>>,
    info: InstructionInfoFactory,
}

impl Widths {
    fn of(&mut self, site: Site, code: &mut Code) -> Option<u8> {
        if let Some(known) = self.known.get(&site) {
            return *known;
        }
        let instruction = site.place().and_then(|place| code.instruction(place));
        let found = instruction.and_then(|one| memory(&one, &mut self.info).bytes);
        self.known.insert(site, found);
        found
    }
}

fn line_row(gathered: &mut Gathered, recording: usize, line: Line, found: &LineFound) -> LineRow {
    let (loads, writes, modified) = found.shared.totals();
    let mut variables: Vec<String> =
        found.objects.iter().map(|n| name_of(&gathered.objects[*n], &gathered.code)).collect();
    variables.sort();
    let mut accesses: Vec<LineAccessRow> = found
        .shared
        .accesses
        .iter()
        .map(|(key, accesses)| {
            let member = found.members.get(&key.1).copied();
            access_row(gathered, *key, accesses, member)
        })
        .collect();
    accesses.sort_by_key(|row| {
        (row.offset, std::cmp::Reverse((row.modified, row.writes + row.loads)), row.thread)
    });
    LineRow {
        recording,
        address: Address(line.address()),
        process: line.process,
        sharing: found.shared.sharing(),
        variables,
        loads,
        writes,
        modified,
        modified_remote: found.shared.remote(),
        share: None,
        threads: found.shared.actors(),
        accesses,
    }
}

fn access_row(
    gathered: &mut Gathered,
    (actor, offset, site): (Actor, u8, usize),
    accesses: &Accesses,
    member: Option<usize>,
) -> LineAccessRow {
    let member = member.and_then(|number| gathered.members.get(number)?.clone());
    let site = gathered.sites[site];
    let thread = match actor {
        Actor::Thread(thread) => Some(thread),
        Actor::Cpu(_) => None,
    };
    let code = &mut gathered.code;
    let place = site.place();
    let operand = |place| field(place, code).ok();
    let member = member.or_else(|| place.and_then(operand)).map(|field| field.text);
    let (timed, cycles) = accesses.latencies;
    let line = place.and_then(|place| code.line(place)).unwrap_or_default();
    LineAccessRow {
        thread,
        thread_name: thread.and_then(|thread| gathered.threads.get(&thread).cloned()),
        cpus: accesses.cpus.iter().copied().collect(),
        offset,
        bytes: accesses.bytes,
        loads: accesses.loads,
        writes: accesses.writes,
        modified: accesses.modified,
        modified_remote: accesses.remote,
        latency_mean: (timed > 0).then(|| cycles as f64 / timed as f64),
        field: member,
        module: place.map(|place| code.path(place.module)).unwrap_or_default(),
        address: Address(site.address()),
        function: place.and_then(|place| code.function(place)).map(|function| function.short),
        file: line.file,
        line: line.line,
    }
}

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
