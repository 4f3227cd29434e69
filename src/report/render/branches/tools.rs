//! Recorded branches for other tools: counts of a module for llvm-profgen, AutoFDO and BOLT; pprof's profile.proto.

use crate::documents::branches::{BranchKind, Branches, EventRow};
use crate::render::aggregated::{self, Counts};
use crate::render::formats::{Message, Strings};
use profile::files::Program;
use std::collections::BTreeMap;

fn counted(document: &Branches, module: &str) -> Counts {
    let mut all = Counts::default();
    for r in document.ranges.iter().filter(|r| r.module == module) {
        let sum = all.ranges.entry((r.first.0, r.last.0)).or_default();
        *sum = sum.saturating_add(r.count);
    }
    for i in document.instructions.iter().filter(|i| i.module == module) {
        let sum = all.instructions.entry(i.address.0).or_default();
        *sum = sum.saturating_add(i.samples);
    }
    for e in &document.edges {
        let to = e.to.map(|to| to.0);
        let ends_here = e.to_module.as_ref().unwrap_or(&e.module) == module;
        if let Some(to) = to.filter(|_| ends_here) {
            let is_return =
                e.kind == Some(BranchKind::Return) || e.module != module || e.from.is_none();
            if is_return {
                all.returned_to.insert(to)
            } else {
                all.jumped_to.insert(to)
            };
        }
        if e.module != module || e.to_module.is_some() {
            continue;
        }
        let Some(key) = e.from.map(|from| from.0).zip(to) else { continue };
        let sum = all.edges.entry(key).or_default();
        *sum = (sum.0.saturating_add(e.count), sum.1.saturating_add(e.mispredicted.unwrap_or(0)));
    }
    all
}

/// As `llvm-profgen --skip-symbolization --use-offset=0` writes them, input of `llvm-profgen
/// --unsymbolized-profile`: ranges, then branches, each after their number.
pub fn unsymbolized(document: &Branches, module: &str) -> String {
    aggregated::unsymbolized(&counted(document, module))
}

/// As `aggregated::autofdo`, input of `create_llvm_prof` and `create_gcov` with `--profiler=text`.
pub fn autofdo(document: &Branches, module: &str, program: &Program) -> String {
    aggregated::autofdo(&counted(document, module), program)
}

/// As `aggregated::bolt`, input of `perf2bolt -pa`.
pub fn bolt(document: &Branches, module: &str) -> String {
    aggregated::bolt(&counted(document, module))
}

/// Counts of an instruction.
#[derive(Default)]
struct Place<'a> {
    function: Option<&'a str>,
    taken: u64,
    mispredicted: u64,
    samples: u64,
}

/// The profile of an event, not compressed.
pub fn pprof(document: &Branches, event: &EventRow) -> Vec<u8> {
    let places = places(document, event);
    let mut out = Message::default();
    let mut strings = Strings::default();
    let mut types = vec!["branches"];
    types.extend(event.has_predictions.then_some("mispredicted"));
    types.extend(event.samples.map(|_| "samples"));
    for name in &types {
        let name = strings.number(name);
        out.message(1, &[(1, name), (2, strings.number("count"))]);
    }
    let mut modules: Vec<&str> = places.keys().map(|(module, _)| *module).collect();
    modules.dedup();
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    for (number, ((module, address), place)) in places.iter().enumerate() {
        let location = number as u64 + 1;
        let values = types.iter().map(|name| match *name {
            "branches" => place.taken,
            "mispredicted" => place.mispredicted,
            _ => place.samples,
        });
        sample(&mut out, location, values);
        let mapping = modules.iter().position(|m| m == module).unwrap_or(0) as u64 + 1;
        let mut of = Message::default();
        [(1, location), (2, mapping), (3, *address)].iter().for_each(|(f, v)| of.number(*f, *v));
        if let Some(name) = place.function {
            let next = functions.len() as u64 + 1;
            of.message(4, &[(1, *functions.entry(name).or_insert(next))]);
        }
        out.bytes(4, &of.0);
    }
    for (number, path) in modules.iter().enumerate() {
        let row = document.modules.iter().find(|row| row.path == *path);
        let id = row.and_then(|row| row.build_id.as_deref()).map_or(0, |id| strings.number(id));
        let name = strings.number(path);
        // Addresses are those of the file.
        let last = u64::MAX >> 1;
        out.message(3, &[(1, number as u64 + 1), (3, last), (5, name), (6, id), (7, 1)]);
    }
    for (name, id) in functions {
        let name = strings.number(name);
        out.message(5, &[(1, id), (2, name), (3, name)]);
    }
    let comment = strings.number(&format!("{}: {}; {}", event.source, event.name, event.bias));
    out.number(13, comment);
    strings.write(6, &mut out);
    out.0
}

fn sample(out: &mut Message, location: u64, values: impl Iterator<Item = u64>) {
    let mut of = Message::default();
    of.number(1, location);
    of.packed(2, values);
    out.bytes(2, &of.0);
}

fn places<'a>(document: &'a Branches, event: &EventRow) -> BTreeMap<(&'a str, u64), Place<'a>> {
    let mut places: BTreeMap<(&str, u64), Place> = BTreeMap::new();
    for edge in document.edges.iter().filter(|edge| edge.event == event.event) {
        let Some(from) = edge.from else { continue };
        let place = places.entry((&edge.module, from.0)).or_default();
        place.function = edge.from_function.as_deref();
        place.taken = place.taken.saturating_add(edge.count);
        let wrong = edge.mispredicted.unwrap_or(0);
        place.mispredicted = place.mispredicted.saturating_add(wrong);
    }
    for row in document.instructions.iter().filter(|row| row.event == event.event) {
        let place = places.entry((&row.module, row.address.0)).or_default();
        place.function = place.function.or(row.function.as_deref());
        place.samples = place.samples.saturating_add(row.samples);
    }
    places
}
