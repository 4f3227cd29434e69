//! The initial values that `--registers` and `--init` give.

use crate::cli::files;
use crate::cli::options::Invalid;
use bench::Init;
use engine::captured::{self, Snapshot};
use engine::initial_values::{self, LONGEST};
use isa::deps::memory::InitialValues;
use std::ops::Range;
use std::path::Path;
use tma::text::several;
use tma::{Error, Result};

/// Where a region lies.
pub struct Place<'a> {
    /// The file, if it is from one.
    pub file: Option<&'a Path>,
    /// Its addresses there.
    pub range: Range<u64>,
}

/// Initial values of a block: where, and which.
pub type SandboxValues = Vec<(Init, u64)>;

/// A value of `--init`.
pub fn parse(text: &str) -> std::result::Result<(Init, u64), Invalid> {
    Init::parse(text).map_err(Invalid::Init)
}

/// The values of `--registers`, one set per sample of a snapshot, and their sources.
pub fn registers(named: Option<&str>, place: &Place) -> Result<(Vec<InitialValues>, Vec<String>)> {
    let Some(named) = named else { return Ok((Vec::new(), Vec::new())) };
    if let Some(recording) = named.strip_prefix("snapshot:") {
        let all = initial_values::snapshot(Path::new(recording), place.file, &place.range)?;
        let samples = several(all.len(), "sample");
        let source = format!("{samples} of {recording} at {:#x}", place.range.start);
        return Ok((all, vec![source]));
    }
    let text = text(named)?;
    if is_captured(&text) {
        return Ok((
            vec![captured::initial_values(&captured::read(&text)?)],
            vec![named.to_owned()],
        ));
    }
    let one = initial_values::parse(&text).map_err(|e| {
        let hint = e.remedy().unwrap_or_default().to_owned();
        Error::usage(format!("cannot read {named}")).because(e).hint(hint)
    })?;
    Ok((vec![one], vec![named.to_owned()]))
}

/// The values captured in a program that `--registers` names.
pub fn saved(named: Option<&str>) -> Result<Option<Snapshot>> {
    let Some(named) = named.filter(|named| !named.starts_with("snapshot:")) else {
        return Ok(None);
    };
    let text = text(named)?;
    if is_captured(&text) { captured::read(&text).map(Some) } else { Ok(None) }
}

fn text(named: &str) -> Result<String> {
    files::read_text(Path::new(named), captured::LONGEST.max(LONGEST))
}

/// Whether it is a JSON document, not lines of values.
fn is_captured(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Initial values of a block in the sandbox, whose memory holds one value, and a note on their source: the middle
/// sample of several.
pub fn for_sandbox(named: Option<&str>, place: &Place) -> Result<(SandboxValues, Option<String>)> {
    let (mut all, sources) = registers(named, place)?;
    let count = all.len();
    if count == 0 {
        return Ok((Vec::new(), None));
    }
    let chosen = all.swap_remove(count / 2);
    if !chosen.memory.is_empty() {
        return Err(Error::usage("[ADDRESS]=VALUE is not possible in the sandbox")
            .because("its memory is filled with one value")
            .hint("leave these lines out and give mem=VALUE; `tdtool deps` takes them"));
    }
    let registers = chosen
        .registers
        .iter()
        .zip(0u8..)
        .filter_map(|(value, number)| value.map(|value| (Init::Register(number), value)));
    let values = registers.chain(chosen.fill.map(|fill| (Init::Memory, fill))).collect();
    let which = if count > 1 { ", the middle one" } else { "" };
    let memory = if chosen.fill.is_some() { "" } else { "; memory contents are not recorded" };
    Ok((values, Some(format!("initial registers: {}{which}{memory}", sources.join(", ")))))
}
