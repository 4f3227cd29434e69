//! Functions as regions: from their first instruction to each way out.

use super::request::{Edge, Label, Site};
use crate::facts::{Exit, Function, Module};
use crate::patch::Wanted;
use iced_x86::{Code, FlowControl};

/// Where the function at `wanted` begins and ends, as a region with this name.
///
/// # Errors
/// The reason why its ends are not known.
pub fn function_sites(wanted: &Wanted, name: &str) -> Result<Vec<Site>, String> {
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
            (Exit::Unknown, _) => {
                return Err("it has an indirect jump of unknown targets".to_owned());
            }
            // A conditional jump out leads to its cold part, which comes back or does not return.
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
        1 => Err("it never returns".to_owned()),
        _ => Ok(all),
    }
}

/// The first instruction that may be moved, executed once for each entry.
fn begin(function: &Function) -> Result<u64, String> {
    let start = function.range.start;
    let entry = function.blocks.iter().position(|block| block.start == start);
    let entry = entry.ok_or("its start is not known")?;
    if function.blocks.iter().any(|block| block.successors.contains(&entry)) {
        return Err("a loop of its own leads to its start".to_owned());
    }
    let mut own = function.blocks[entry].instructions.iter();
    let first = own.find(|instruction| instruction.code() != Code::Endbr64);
    first.map(|i| i.ip()).ok_or_else(|| "a jump leads to its start".to_owned())
}
