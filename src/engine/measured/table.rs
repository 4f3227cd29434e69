//! The start of a table of this processor: what was measured, and one event that every core of its vendor counts.

use std::fmt::{self, Write as _};
use tma::measured::{Facts, Kind};
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tma::Cpu;
    use tma::measured::{Fact, Known};
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
}
