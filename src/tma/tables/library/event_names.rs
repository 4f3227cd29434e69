//! Which tables have events of given names.

use super::{Known, Library, Source};
use crate::tables::Table;
use crate::tables::embedded::plain_name;

impl Library {
    /// How many of these event names, written as tables write them, each table has.
    pub fn knowing<'l>(&'l self, names: &[&str]) -> Vec<(usize, &'l str)> {
        self.counted(self.bundle.event_names, names, |table, name| table.event(name).is_some())
    }

    /// How many of these plain event names ([`plain_name`]) each table has.
    pub fn knowing_plain<'l>(&'l self, names: &[&str]) -> Vec<(usize, &'l str)> {
        self.counted(self.bundle.plain_names, names, |table, name| {
            table.events.iter().any(|e| plain_name(&e.name).as_deref() == Some(name))
        })
    }

    fn counted<'l>(
        &'l self,
        index: &[(&str, u64)],
        names: &[&str],
        has: impl Fn(&Table, &str) -> bool,
    ) -> Vec<(usize, &'l str)> {
        let masks: Vec<u64> = names
            .iter()
            .filter_map(|name| Some(index[index.binary_search_by_key(name, |e| e.0).ok()?].1))
            .collect();
        let bit = |name: &str| self.bundle.tables.iter().position(|t| t.name == name);
        let count = |(name, known): (&'l String, &Known)| {
            let known = match &known.source {
                Source::Embedded(_) => {
                    bit(name).map_or(0, |n| masks.iter().filter(|m| **m >> n & 1 == 1).count())
                }
                Source::File(_) => self
                    .load(name)
                    .map_or(0, |table| names.iter().filter(|name| has(&table, name)).count()),
            };
            (known, name.as_str())
        };
        self.tables.iter().map(count).collect()
    }
}
