//! The functions of a module, and where control goes beyond them from the ends of their blocks.

use super::counted::Counted;
use iced_x86::FlowControl;
use probe::facts::{Block, Module, NoCode, functions};
use std::ops::Range;
use std::path::Path;
use tma::{Address, Error, Result};

/// A function.
pub(super) struct Function {
    /// Its symbol.
    pub name: String,
    pub facts: probe::facts::Function,
}

/// A module.
pub(super) struct Code {
    pub module: Module,
    /// The functions that can be analysed, in order of address.
    pub functions: Vec<Function>,
}

impl Code {
    /// Analyses the module of these counts.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(counted: &Counted) -> Result<Self> {
        let path = Path::new(&counted.module);
        let failed = |why: NoCode| {
            Error::failed(format!("cannot analyse the code of {}", counted.module))
                .because(why)
                .hint("the counts need the file that was counted, at its path")
        };
        let module = Module::read(path).map_err(failed)?;
        let named = functions(path).map_err(failed)?;
        let ranges: Vec<Range<u64>> = named.iter().map(|one| one.range.clone()).collect();
        let entered = module.entered(&ranges);
        let function = |one: probe::facts::Named| {
            let facts = probe::facts::Function::read(&module, one.range, &entered).ok()?;
            let name = one.name.unwrap_or_else(|| Address(facts.range.start).to_string());
            Some(Function { name, facts })
        };
        let functions = named.into_iter().filter_map(function).collect();
        Ok(Self { module, functions })
    }
}

impl Code {
    /// Whether an address is in one of the functions: others are stubs of the linker.
    pub fn has(&self, address: u64) -> bool {
        let after = self.functions.partition_point(|one| one.facts.range.start <= address);
        let before = after.checked_sub(1).map(|number| &self.functions[number].facts.range);
        before.is_some_and(|range| range.contains(&address))
    }
}

/// Where a block leads outside of its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beyond {
    /// It calls this address, and goes on.
    Calls(u64),
    /// It jumps there.
    Jumps(u64),
}

/// The direct call or jump at the end of a block to another function, or to its own by a call.
pub(super) fn beyond(block: &Block, own: &Range<u64>) -> Option<Beyond> {
    let last = block.instructions.last()?;
    match last.flow_control() {
        FlowControl::Call => Some(Beyond::Calls(last.near_branch_target())),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            let to = last.near_branch_target();
            (!own.contains(&to)).then_some(Beyond::Jumps(to))
        }
        _ => None,
    }
}
