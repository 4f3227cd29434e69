//! Addresses of blocks that are given by hand.

use super::choice::Chosen;
use probe::facts::{Function, Module, functions};
use std::path::Path;
use tma::{Error, Result};

/// Whether each of these addresses is that of an instruction of a chosen function.
///
/// # Errors
/// One is not: what is near it.
pub(super) fn check(addresses: &[u64], chosen: &[Chosen]) -> Result<()> {
    addresses.iter().try_for_each(|at| {
        let around: Vec<&Chosen> =
            chosen.iter().filter(|one| one.wanted.range.contains(at)).collect();
        match around.is_empty() {
            true => Err(outside(*at, chosen)),
            // The file of one of several may have an instruction there.
            false => around
                .iter()
                .map(|one| inside(*at, one))
                .reduce(|found, other| found.or(other))
                .unwrap_or(Ok(())),
        }
    })
}

/// The error for an address in none of the functions.
fn outside(at: u64, chosen: &[Chosen]) -> Error {
    let error = Error::usage(format!("--values: no counted function has the address {at:#x}"));
    let mut files: Vec<&Path> = chosen.iter().map(|one| one.wanted.path.as_path()).collect();
    files.dedup();
    let other = files
        .into_iter()
        .find_map(|path| functions(path).ok()?.into_iter().find(|named| named.range.contains(&at)));
    if let Some(other) = other {
        let name = other.name.unwrap_or_else(|| format!("{:#x}", other.range.start));
        let why = format!("its function {name} is not counted");
        return error.because(why).hint(format!("count it, too: --functions {name}"));
    }
    let distance = |one: &&Chosen| {
        let range = &one.wanted.range;
        range.start.abs_diff(at).min(range.end.abs_diff(at))
    };
    let hint = "give an address of the file (p_vaddr), as `tdtool count` and objdump print them";
    match chosen.iter().min_by_key(distance) {
        None => error.hint(hint),
        Some(near) => {
            let range = &near.wanted.range;
            error
                .because(format!(
                    "the nearest is {}, {:#x}..{:#x}",
                    near.name, range.start, range.end
                ))
                .hint(hint)
        }
    }
}

/// Whether an instruction of the function begins at the address. What cannot be read is reported with its
/// counts.
fn inside(at: u64, of: &Chosen) -> Result<()> {
    let range = of.wanted.range.clone();
    let function = Module::read(&of.wanted.path)
        .and_then(|module| {
            let entered = module.entered(std::slice::from_ref(&range));
            Function::read(&module, range, &entered)
        })
        .ok();
    let Some(function) = function else { return Ok(()) };
    let mut all = function.blocks.iter().flat_map(|block| &block.instructions);
    if all.any(|instruction| instruction.ip() == at) {
        return Ok(());
    }
    let near =
        function.blocks.iter().min_by_key(|block| match (block.start..block.end).contains(&at) {
            true => 0,
            false => block.start.abs_diff(at),
        });
    let error = Error::usage(format!("--values: no instruction of {} begins at {at:#x}", of.name));
    Err(match near {
        Some(block) => error.hint(format!("the nearest block begins at {:#x}", block.start)),
        None => error,
    })
}
