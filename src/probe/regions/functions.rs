//! Functions as regions: from their first instruction to each exit.

use super::request::{Edge, Label, Site};
use crate::facts::{Exit, Function, Module, NoCode};
use crate::patch::Wanted;
use iced_x86::{Code, FlowControl};
use std::fmt;

/// Why the begin or the ends of a function are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoEnds {
    /// It has no code that can be probed.
    Code(NoCode),
    /// It has an indirect jump with unknown targets.
    UnknownJump,
    /// It never returns.
    Endless,
    /// No block begins at its start.
    NoStart,
    /// A loop leads to its start, which runs more often than the function is entered.
    LoopToStart,
    /// Its first movable instruction is not at its start.
    JumpToStart,
}

impl fmt::Display for NoEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(why) => why.fmt(f),
            Self::UnknownJump => f.write_str("it has an indirect jump of unknown targets"),
            Self::Endless => f.write_str("it never returns"),
            Self::NoStart => f.write_str("its start is not known"),
            Self::LoopToStart => f.write_str("a loop of its own leads to its start"),
            Self::JumpToStart => f.write_str("a jump leads to its start"),
        }
    }
}

impl std::error::Error for NoEnds {}

impl From<NoCode> for NoEnds {
    fn from(why: NoCode) -> Self {
        Self::Code(why)
    }
}

/// Sites of the begin and ends of a function, as a region with this name.
///
/// # Errors
/// Its begin or ends are unknown.
pub fn function_sites(wanted: &Wanted, name: &str) -> Result<Vec<Site>, NoEnds> {
    let module = Module::read(&wanted.path)?;
    let entered = module.entered(std::slice::from_ref(&wanted.range));
    let function = Function::read(&module, wanted.range.clone(), &entered)?;
    let site = |at, edge| {
        let label = Label::Function(name.to_owned());
        Site { code: wanted.clone(), at, edge, label }
    };
    let mut all = vec![site(begin(&function)?, Edge::Begin)];
    for block in function.blocks.iter().filter(|block| block.is_reached) {
        let Some(last) = block.instructions.last() else { continue };
        match (block.exit, last.flow_control()) {
            (Exit::Unknown, _) => return Err(NoEnds::UnknownJump),
            // A conditional jump out leads to its cold part, which jumps back or does not return.
            (
                Exit::Leaves,
                FlowControl::Return
                | FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch,
            ) => all.push(site(last.ip(), Edge::End)),
            _ => {}
        }
    }
    match all.len() {
        1 => Err(NoEnds::Endless),
        _ => Ok(all),
    }
}

/// The first movable instruction, if executed once per entry.
fn begin(function: &Function) -> Result<u64, NoEnds> {
    let start = function.range.start;
    let entry = function.blocks.iter().position(|block| block.start == start);
    let entry = entry.ok_or(NoEnds::NoStart)?;
    if function.blocks.iter().any(|block| block.successors.contains(&entry)) {
        return Err(NoEnds::LoopToStart);
    }
    let mut own = function.blocks[entry].instructions.iter();
    let first = own.find(|instruction| instruction.code() != Code::Endbr64);
    first.map(|i| i.ip()).ok_or(NoEnds::JumpToStart)
}
