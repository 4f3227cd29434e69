//! Each measured fact beside what the table states, or the system of its caches.

use super::table::FactSource;
use report::documents::facts::{Agreement, Row};
use tma::Core;
use tma::measured::{Fact, Facts, Kind};

/// All facts of `core`; `caches` are its level and bytes as the system states them.
pub fn rows(core: &Core, facts: &Facts, caches: &[(u8, u64)]) -> Vec<Row> {
    let row = |kind: Kind| {
        let (name, unit) = kind.words();
        let (fact, stated) = (facts.get(kind), stated(core, kind, caches));
        let agreement = match &stated {
            Some(stated) if stated.is_measured => Agreement::SameOrigin,
            _ => agreement(kind, &fact, stated.as_ref().map(|stated| stated.value)),
        };
        let stated = stated.map(|stated| (stated.value, stated.by));
        let wins_for = if agreement == Agreement::Measured { users(kind) } else { Vec::new() };
        Row { kind, name, unit, fact, stated, agreement, wins_for }
    };
    Kind::ALL.map(row).to_vec()
}

/// A stated fact, and by what.
struct Stated {
    value: f64,
    by: String,
    /// Whether a measurement of such a core wrote it.
    is_measured: bool,
}

fn stated(core: &Core, kind: Kind, caches: &[(u8, u64)]) -> Option<Stated> {
    let table = |value: f64, source: Option<&str>| Stated {
        value,
        by: format!("table {}", core.name()),
        is_measured: source.is_some_and(|source| FactSource::parse(source).is_measured()),
    };
    let cache = |level: u8| {
        let found = caches.iter().find(|cache| cache.0 == level);
        found.map(|cache| Stated {
            value: cache.1 as f64,
            by: "the system (sysfs)".to_owned(),
            is_measured: false,
        })
    };
    let pipeline = core.table.as_ref().map(|table| &table.pipeline);
    let source = pipeline.and_then(|pipeline| pipeline.source.as_deref());
    match kind {
        Kind::Width => core.stated_width().map(|width| table(f64::from(width), source)),
        Kind::L1Size => cache(1),
        Kind::L2Size => cache(2),
        Kind::L3Size => cache(3),
        Kind::OpCache => {
            let cache = core.facts().op_cache.as_ref();
            cache.map(|cache| table(f64::from(cache.ops), Some(&cache.source)))
        }
        Kind::ReorderBuffer => {
            let entries = pipeline.map_or(0, |pipeline| pipeline.reorder_buffer);
            (entries > 0).then(|| table(f64::from(entries), source))
        }
        _ => None,
    }
}

fn agreement(kind: Kind, fact: &Fact, stated: Option<f64>) -> Agreement {
    let Fact::Known(known) = fact else { return Agreement::Open };
    let Some(stated) = stated else { return Agreement::OnlyMeasured };
    if (known.value - stated).abs() <= known.error {
        return Agreement::Agrees;
    }
    match kind {
        Kind::OpCache | Kind::ReorderBuffer if known.value < stated => Agreement::Less,
        Kind::Width if known.value < stated => Agreement::Differs,
        Kind::OpCache | Kind::ReorderBuffer | Kind::Width => Agreement::Measured,
        _ => Agreement::Differs,
    }
}

/// Commands that use a measured fact.
fn users(kind: Kind) -> Vec<&'static str> {
    match kind {
        Kind::Width => vec!["blocks", "estimates"],
        Kind::OpCache => vec!["blocks"],
        Kind::ReorderBuffer => vec!["deps"],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tma::measured::{Known, Open};

    /// Zen 3's table: 6 slots, 256 entries, an op cache of 4,096.
    #[test]
    fn more_than_a_table_states_wins_and_less_of_a_capacity_says_nothing() {
        let core = Core::modelled(&events::library(), "zen3").unwrap();
        let known =
            |value: f64| Fact::Known(Known { value, error: 0.04 * value, how: String::new() });
        let of = |kind, fact: Fact| {
            let rows = rows(&core, &Facts(BTreeMap::from([(kind, fact)])), &[(2, 512 << 10)]);
            let row = rows.into_iter().find(|row| row.kind == kind).unwrap();
            (row.agreement, row.wins_for.len())
        };
        assert_eq!(of(Kind::ReorderBuffer, known(250.0)), (Agreement::Agrees, 0));
        assert_eq!(of(Kind::ReorderBuffer, known(180.0)), (Agreement::Less, 0));
        assert_eq!(of(Kind::ReorderBuffer, known(512.0)), (Agreement::Measured, 1));
        assert_eq!(of(Kind::Width, known(7.9)), (Agreement::Measured, 2));
        assert_eq!(of(Kind::L2Size, known(2e6)), (Agreement::Differs, 0));
        assert_eq!(of(Kind::Loads, known(3.0)), (Agreement::OnlyMeasured, 0));
        assert_eq!(of(Kind::Loads, Fact::open(Open::NoCode)), (Agreement::Open, 0));
    }

    #[test]
    fn a_table_written_from_measurements_is_not_compared_with_them() {
        let known = Fact::Known(Known { value: 6.0, error: 0.2, how: String::new() });
        let facts = Facts(BTreeMap::from([(Kind::Width, known)]));
        let cpu = tma::Cpu { vendor: "AuthenticAMD".into(), family: 25, ..tma::Cpu::default() };
        let text = super::super::table(&Core { cpu, ..Core::default() }, &facts, "mine").unwrap();
        let table = tma::tables::Table::parse(&text, "mine.toml").unwrap();
        let core = Core { table: Some(std::sync::Arc::new(table)), ..Core::default() };
        let all = rows(&core, &facts, &[]);
        let width = all.iter().find(|row| row.kind == Kind::Width).unwrap();
        assert_eq!(width.agreement, Agreement::SameOrigin);
        assert!(width.stated.is_some() && width.wins_for.is_empty());
    }
}
