//! The functions of a program as a list to choose from (`tdtool block FILE --list`).

use isa::program::Known;
use probe::facts::{Named, functions};
use profile::symbols::demangle::demangle;
use report::documents::function_list::{FunctionLine, FunctionList};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use tma::{Error, Result};

/// Most functions that are listed.
const MOST: usize = 50;

/// The largest functions of the program or library at `path`, named by `known` where it does not name them.
///
/// # Errors
/// It is no ELF file, or has neither symbols nor an unwind table.
pub fn list(path: &Path, known: &[Known]) -> Result<FunctionList> {
    let of_known = |one: &Known| Named {
        name: Some(one.name.clone()),
        aliases: Vec::new(),
        range: one.range.clone(),
    };
    let mut all = match functions(path) {
        Ok(all) => all,
        Err(_) if !known.is_empty() => known.iter().map(of_known).collect(),
        Err(why) => {
            let what = format!("the functions of {} are not known", path.display());
            return Err(Error::failed(what)
                .because(why)
                .hint("give a compiled program or library"));
        }
    };
    let by_start: HashMap<u64, &Known> = known.iter().map(|one| (one.range.start, one)).collect();
    for one in all.iter_mut().filter(|one| one.name.is_none()) {
        one.name = by_start.get(&one.range.start).map(|known| known.name.clone());
    }
    all.sort_by_key(|one| (Reverse(one.range.end - one.range.start), one.range.start));
    let line = |one: &Named| FunctionLine {
        name: one.name.as_deref().map(demangle),
        symbol: one.name.clone(),
        start: one.range.start.into(),
        bytes: one.range.end - one.range.start,
    };
    Ok(FunctionList {
        schema: "tdtool.functions/1",
        file: path.display().to_string(),
        count: all.len(),
        functions: all.iter().take(MOST).map(line).collect(),
    })
}
