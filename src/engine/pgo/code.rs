//! The functions of a module, and where control goes beyond them from the ends of their blocks.

use super::counted::Targets;
use crate::count::functions;
use iced_x86::{FlowControl, Instruction};
use probe::facts::{Module, NoCode};
use probe::flow::{Flow, Flowing, How};
use report::documents::pgo::EdgeKind;
use std::ops::Range;
use std::path::Path;
use tma::{Address, Error, Result};

/// A function.
pub(super) struct Function {
    /// Its symbol; its address if it has none.
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
    /// Analyses a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |why: NoCode| {
            Error::failed(format!("cannot analyse the code of {}", path.display())).because(why)
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

    /// Whether an address is in one of the functions: others are stubs of the linker.
    pub fn has(&self, address: u64) -> bool {
        let after = self.functions.partition_point(|one| one.facts.range.start <= address);
        let before = after.checked_sub(1).map(|number| &self.functions[number].facts.range);
        before.is_some_and(|range| range.contains(&address))
    }

    /// Whether a block of a function begins there.
    pub fn is_block(&self, start: u64) -> bool {
        let after = self.functions.partition_point(|one| one.facts.range.start <= start);
        let own = after.checked_sub(1).map(|number| &self.functions[number].facts.blocks);
        own.is_some_and(|own| own.binary_search_by_key(&start, |block| block.start).is_ok())
    }

    /// The instruction at the end of a block of a function.
    pub fn instruction(&self, function: usize, at: u64) -> Option<Instruction> {
        let blocks = &self.functions.get(function)?.facts.blocks;
        let block = blocks.get(blocks.partition_point(|block| block.end <= at))?;
        block.instructions.last().copied().filter(|last| last.ip() == at)
    }
}

/// An edge from the end of a block to another function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Beyond {
    /// Where it leads.
    pub to: u64,
    /// A call or a jump.
    pub kind: EdgeKind,
    pub flow: Flowing,
}

/// The edges from the end of a block to other functions, and to its own by calls.
pub(super) fn beyond(
    function: &probe::facts::Function,
    number: usize,
    flow: &Flow,
    targets: &Targets,
) -> Vec<Beyond> {
    let Some(last) = function.blocks[number].instructions.last() else { return Vec::new() };
    let is_own = |to: &u64| function.range.contains(to);
    let leaves = flow.leaves[number].unwrap_or_default();
    let recorded = |kind: EdgeKind, of: Flowing| -> Vec<Beyond> {
        let Some(seen) = targets.get(&last.ip()) else { return Vec::new() };
        let is_beyond = |to: &u64| kind == EdgeKind::Call || !is_own(to);
        let all = seen.iter().filter(|(to, _)| is_beyond(to)).map(|(_, times)| *times);
        let all = all.fold(0, u64::saturating_add);
        let share = |times: u64| times as f64 / (all as f64).max(1.0);
        let edge = |(to, times): (&u64, &u64)| {
            let flow = Flowing { count: of.count * share(*times), how: of.how.max(How::Sampled) };
            Beyond { to: *to, kind, flow }
        };
        seen.iter().filter(|(to, _)| is_beyond(to)).map(edge).collect()
    };
    match last.flow_control() {
        FlowControl::Call => {
            let (to, flow) = (last.near_branch_target(), flow.blocks[number]);
            vec![Beyond { to, kind: EdgeKind::Call, flow }]
        }
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            let to = last.near_branch_target();
            let edge = Beyond { to, kind: EdgeKind::Tail, flow: leaves };
            if is_own(&to) { Vec::new() } else { vec![edge] }
        }
        FlowControl::IndirectCall => recorded(EdgeKind::Call, flow.blocks[number]),
        FlowControl::IndirectBranch => recorded(EdgeKind::Tail, leaves),
        _ => Vec::new(),
    }
}
