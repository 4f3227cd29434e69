//! The code around branches: what a branch is, and the control flow of its function.

use super::walk::Calls;
use iced_x86::FlowControl;
use profile::address_space::ModuleAddress;
use profile::module::Module;
use profile::symbols::Symbols;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashMap};

/// The code of a recording's modules, read on demand.
#[derive(Debug)]
pub struct Code {
    /// Functions and control flow.
    pub of: profile::code::Code,
    branches: FxHashMap<ModuleAddress, Option<(FlowControl, u64)>>,
}

impl Code {
    /// With the observed targets by module, where blocks begin.
    pub fn new(
        symbols: Symbols,
        modules: Vec<Module>,
        targets: HashMap<usize, BTreeSet<u64>>,
    ) -> Self {
        let mut of = profile::code::Code::new(symbols, modules);
        of.observe(targets);
        Self { of, branches: FxHashMap::default() }
    }

    /// Kind of a branch, and the address after it; `None` where its code is not known.
    pub fn branch(&mut self, place: ModuleAddress) -> Option<(FlowControl, u64)> {
        *self.branches.entry(place).or_insert_with(|| {
            let instruction = self.of.instruction(place)?;
            Some((instruction.flow_control(), instruction.next_ip()))
        })
    }
}

impl Calls for Code {
    fn returns_to(&mut self, branch: ModuleAddress) -> Option<u64> {
        match self.branch(branch)? {
            (FlowControl::Call | FlowControl::IndirectCall, next) => Some(next),
            // No branch at all: an interrupt or fault, after which it is executed again.
            (FlowControl::Next, _) => Some(branch.address),
            _ => None,
        }
    }
}
