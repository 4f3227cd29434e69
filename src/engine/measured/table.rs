//! Writes the start of a table of this processor: the measured facts, and one event that every core of its vendor
//! counts. Compares each measured fact with the table's, or with the system's description of its caches.

use report::documents::doctor::{Agreement, FactRow};
use std::fmt::{self, Write as _};
use tma::measured::{Fact, Facts, Kind};
use tma::{Core, Error, Result};

/// The cycles of a thread: AMD's processor programming references, event 0x076 of all families since 10h.
const AMD_CYCLES: &str = "code = 0x76";
/// Intel SDM 3B, table "architectural performance events".
const INTEL_CYCLES: &str = "code = 0x3c";

/// Where a table has a fact from, as its text says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FactSource {
    /// [`table`] wrote it: the processor that it was measured on.
    Measured(String),
    /// Any other source.
    Stated(String),
}

/// How the source of a measured fact begins.
const MEASURED_ON: &str = "measured on ";

impl FactSource {
    /// The source that a table has as `text`.
    pub(super) fn parse(text: &str) -> Self {
        match text.strip_prefix(MEASURED_ON) {
            Some(processor) => Self::Measured(processor.to_owned()),
            None => Self::Stated(text.to_owned()),
        }
    }

    /// Whether it was measured on such a core.
    pub(super) fn is_measured(&self) -> bool {
        matches!(self, Self::Measured(_))
    }
}

impl fmt::Display for FactSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured(processor) => write!(f, "{MEASURED_ON}{processor}"),
            Self::Stated(text) => f.write_str(text),
        }
    }
}

/// Whether the table of `core` was written from measurements of such a core.
pub fn is_of_measurements(core: &Core) -> bool {
    let source = core.table.as_ref().and_then(|table| table.pipeline.source.as_deref());
    source.is_some_and(|source| FactSource::parse(source).is_measured())
}

/// Refuses what is no name of a table.
///
/// # Errors
/// It has other characters than a table's name may have.
pub fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(Error::usage(format!("`{name}` is no name of a table"))
            .hint("a name has small letters, digits and dashes: `tdtool doctor --toml mine`"));
    }
    Ok(())
}

/// A table called `name`, as TOML.
///
/// # Errors
/// The processor or its width is not known; `name` is none of a table.
pub fn table(core: &Core, facts: &Facts, name: &str) -> Result<String> {
    check_name(name)?;
    let cpu = &core.cpu;
    let cycles = match &*cpu.vendor {
        "AuthenticAMD" | "HygonGenuine" => AMD_CYCLES,
        "" => return Err(Error::not_possible("no table").because("the processor is not known")),
        _ => INTEL_CYCLES,
    };
    let Some(width) = facts.known(Kind::Width) else {
        return Err(Error::failed("no table")
            .because("the issue width is open")
            .hint("try again on a quieter machine: `tdtool doctor --measure`"));
    };
    let on = FactSource::Measured(plain(&cpu.name));
    let mut out = format!(
        "# Measured facts of {}: the start of a table, docs/reference/tables.md.\n",
        cpu.signature()
    );
    let _ = writeln!(
        out,
        "# Save it as DIR/{name}.toml; `tdtool tables check {name} --tables DIR` checks it.\n"
    );
    let _ = writeln!(out, "schema = 1\nname = \"{name}\"\ntitle = \"{}\"", plain(&cpu.name));
    let _ = writeln!(
        out,
        "vendor = \"{}\"\npmu = \"cpu\"\nsource = [\"{on}\"]\nclocks = \"CYCLES\"",
        plain(&cpu.vendor)
    );
    let _ = writeln!(
        out,
        "match = [{{ family = {}, models = [{:#x}], steppings = [{}] }}]",
        cpu.family, cpu.model, cpu.stepping
    );
    // More than the width by the clock's error is no slot more.
    let slots = (width.value - width.error).ceil().max(1.0);
    let buffer = facts.known(Kind::ReorderBuffer).map_or(0.0, |known| known.value.round());
    let _ = writeln!(
        out,
        "pipeline = {{ width = {slots}, reorder_buffer = {buffer}, source = \"{on}\" }}"
    );
    let _ = writeln!(out, "# Not measured: as few as any core of the last ten years has.");
    let _ = writeln!(out, "counters = {{ general = 4, general_smt = 4, fixed = 0 }}\n\n[facts]");
    if let Some(known) = facts.known(Kind::OpCache) {
        let _ = writeln!(out, "op_cache = {{ ops = {}, source = \"{on}\" }}", known.value as u64);
    }
    for kind in Kind::ALL {
        let (name, unit) = kind.words();
        let _ = match facts.get(kind) {
            tma::measured::Fact::Known(known) => {
                writeln!(
                    out,
                    "# {name}: {:.2} ± {:.2} {unit} ({})",
                    known.value,
                    known.error,
                    plain(&known.how)
                )
            }
            tma::measured::Fact::Open { open } => writeln!(out, "# {name}: open, {open}"),
        };
    }
    let _ = writeln!(
        out,
        "\n[[info]]\nid = \"Cycles\"\nlabel = \"Cycles\"\nformula = \"CYCLES\"\nunit = \"\""
    );
    let _ = writeln!(out, "\n[events]\n\"CYCLES\" = {{ {cycles} }}");
    Ok(out)
}

/// Text inside quotation marks and in a comment.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect()
}

/// All facts of `core`; `caches` are its level and bytes as the system states them.
pub fn rows(core: &Core, facts: &Facts, caches: &[(u8, u64)]) -> Vec<FactRow> {
    let row = |kind: Kind| {
        let (name, unit) = kind.words();
        let (fact, stated) = (facts.get(kind), stated(core, kind, caches));
        let agreement = match &stated {
            Some(stated) if stated.is_measured => Agreement::SameOrigin,
            _ => agreement(kind, &fact, stated.as_ref().map(|stated| stated.value)),
        };
        let stated = stated.map(|stated| (stated.value, stated.by));
        let wins_for = if agreement == Agreement::Measured { users(kind) } else { Vec::new() };
        FactRow { kind, name, unit, fact, stated, agreement, wins_for }
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
    use tma::Cpu;
    use tma::measured::{Fact, Known, Open};
    use tma::tables::Table;

    #[test]
    fn the_table_is_read_back_with_what_was_measured() {
        let known = |value: f64| {
            Fact::Known(Known { value, error: 0.03 * value, how: "a \"mix\"\n".into() })
        };
        let facts = Facts(BTreeMap::from([
            (Kind::Width, known(5.93)),
            (Kind::ReorderBuffer, known(510.0)),
            (Kind::OpCache, known(4096.0)),
        ]));
        let cpu = Cpu {
            vendor: "GenuineIntel".into(),
            family: 6,
            model: 167,
            stepping: 1,
            name: "A \"core\"".into(),
            ..Cpu::default()
        };
        let core = Core { cpu, ..Core::default() };
        let text = table(&core, &facts, "mine").unwrap();
        let read = Table::parse(&text, "mine.toml").unwrap();
        assert_eq!((read.pipeline.width, read.pipeline.reorder_buffer), (6, 510));
        assert_eq!(read.facts.op_cache.as_ref().map(|cache| cache.ops), Some(4096));
        let source = read.pipeline.source.as_deref().map(FactSource::parse);
        assert_eq!(source, Some(FactSource::Measured("A core".to_owned())));
        assert!(!FactSource::parse("AMD, Software Optimization Guide").is_measured());
        assert!(
            table(&core, &facts, "../mine").is_err()
                && table(&Core::default(), &facts, "mine").is_err()
        );
        assert!(table(&core, &Facts::default(), "mine").is_err());
    }

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
