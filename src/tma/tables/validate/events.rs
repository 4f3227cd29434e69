//! Events: encodings, duplicates, users.

use super::finding::Findings;
use super::finding::Severity::{Error, Note};
use super::nodes::Formulas;
use crate::tables::schema::{EventSpec, TableFile};
use crate::tables::{PmuKind, Ring};
use std::collections::{HashMap, HashSet};

/// Checks all events.
pub(super) fn check(file: &TableFile, formulas: &[Formulas], found: &mut Findings) {
    for (name, spec) in &file.events {
        for what in wrong(file, spec) {
            found.event(Error, name, what);
        }
    }
    unused(file, formulas, found);
    duplicates(file, found);
}

/// Contradictions in the encoding of one event.
fn wrong(file: &TableFile, e: &EventSpec) -> Vec<String> {
    let mut list = Vec::new();
    let mut must = |holds: bool, what: String| {
        if !holds {
            list.push(what);
        }
    };
    if e.pmu == PmuKind::Core {
        let coded = e.code != 0 || e.umask != 0 || e.metric.is_some();
        must(coded, "a core event without a code".into());
        must(e.code <= 0xfff, format!("code {:#x} has more than 12 bits", e.code));
        must(e.umask <= 0xffff, format!("unit mask {:#x} has more than 16 bits", e.umask));
        must(e.cmask <= 0xff, format!("counter mask {} has more than 8 bits", e.cmask));
    }
    let fixed = file.counters.fixed;
    if let Some(n) = e.fixed {
        let what = format!("fixed counter {n} of {fixed}");
        must(u32::from(n) < fixed, what);
    }
    must(e.fixed.is_some() || !e.fixed_only, "fixed_only without fixed".into());
    must(e.metric.is_none_or(|m| m < 8), "metric is 0 to 7".into());
    must(e.extra.is_some() || e.value.is_none(), "value without extra".into());
    must(e.cmask != 0 || !e.inv, "inv without cmask counts nothing useful".into());
    if let Some(counters) = &e.counters {
        must(!counters.is_empty(), "counters is empty: no counter can count it".into());
        let general = file.counters.general;
        let outside = counters.iter().find(|c| u32::from(**c) >= general);
        let outside = outside.filter(|_| e.pmu == PmuKind::Core);
        let what = outside.map(|counter| format!("counter {counter} of {general}"));
        must(outside.is_none(), what.unwrap_or_default());
    }
    list
}

fn unused(file: &TableFile, formulas: &[Formulas], found: &mut Findings) {
    let mut used: HashSet<&str> = HashSet::from([file.clocks.as_str()]);
    for node in formulas {
        // A formula that did not parse might use anything.
        let Some(value) = &node.value else { return };
        value.names(&mut |name| {
            used.insert(name);
        });
        used.extend(node.node.locate.iter().map(String::as_str));
    }
    for name in file.events.keys().filter(|n| !used.contains(n.as_str())) {
        found.event(Note, name, "no formula and no locate uses it".into());
    }
}

/// One encoding under several names is counted several times.
fn duplicates(file: &TableFile, found: &mut Findings) {
    let mut by_encoding: HashMap<_, Vec<&str>> = HashMap::new();
    for (name, e) in file.events.iter().filter(|(_, e)| e.pmu == PmuKind::Core) {
        // Everything that determines a count; sampling and placement do not.
        let bits = [e.inv, e.edge, e.any, e.eq, e.percore];
        let ring = e.ring.map(|r| r == Ring::User);
        let key = (e.code, e.umask, e.cmask, bits, ring, e.extra, e.value, e.metric);
        by_encoding.entry(key).or_default().push(name);
    }
    for names in by_encoding.values().filter(|n| n.len() > 1) {
        found.event(Note, names[0], format!("has the encoding of {}", names[1..].join(", ")));
    }
}
