//! Initial values that `--registers` and `--init` name, for the commands that take them.

use super::block::input;
use bench::Init;
use engine::initial_values as given;
use isa::deps::memory::Given;
use std::ops::Range;
use std::path::Path;
use tma::{Error, Result};

/// Where a region lies: in which file, if in one, and at which addresses.
pub struct Place<'a> {
    /// The file.
    pub file: Option<&'a Path>,
    /// Its addresses there.
    pub range: Range<u64>,
}

/// Initial values of a block: where, and which.
pub type Chosen = Vec<(Init, u64)>;

/// The values of `--registers`, a set for each sample of a snapshot, and where they come from.
pub fn registers(named: Option<&str>, place: &Place) -> Result<(Vec<Given>, Vec<String>)> {
    let Some(named) = named else { return Ok((Vec::new(), Vec::new())) };
    if let Some(recording) = named.strip_prefix("snapshot:") {
        let all = given::snapshot(Path::new(recording), place.file, &place.range)?;
        let plural = if all.len() == 1 { "" } else { "s" };
        let from =
            format!("{} sample{plural} of {recording} at {:#x}", all.len(), place.range.start);
        return Ok((all, vec![from]));
    }
    let text = input::text(Path::new(named), given::LONGEST)?;
    let one = given::parse(&text).map_err(|e| {
        let hint = e.remedy().unwrap_or_default().to_owned();
        Error::usage(format!("cannot read {named}")).because(e).hint(hint)
    })?;
    Ok((vec![one], vec![named.to_owned()]))
}

/// The same as initial values of a block: all its memory holds one value, and it starts once, with
/// the middle one of the samples.
pub fn of_block(named: Option<&str>, place: &Place) -> Result<(Chosen, Option<String>)> {
    let (mut all, from) = registers(named, place)?;
    let count = all.len();
    if count == 0 {
        return Ok((Vec::new(), None));
    }
    let chosen = all.swap_remove(count / 2);
    if !chosen.memory.is_empty() {
        return Err(Error::usage("[ADDRESS]=VALUE has no place in the sandbox")
            .because("all memory holds one value there")
            .hint("leave these lines out, and give mem=VALUE; `tdtool deps` takes them"));
    }
    let registers = chosen
        .registers
        .iter()
        .zip(0u8..)
        .filter_map(|(value, number)| value.map(|value| (Init::Register(number), value)));
    let init: Chosen = registers.chain(chosen.fill.map(|fill| (Init::Memory, fill))).collect();
    let which = if count > 1 { ", the middle one" } else { "" };
    let memory = if chosen.fill.is_some() { "" } else { "; memory is not the program's" };
    Ok((init, Some(format!("initial registers: {}{which}{memory}", from.join(", ")))))
}
