//! The code around branches: what a branch is, and the control flow of its function.

use super::walk::Calls;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use isa::flow::{Flow, flow};
use profile::address_space::ModuleAddress;
use profile::module::Module;
use profile::symbols::{Function, Symbols};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Bytes of the longest instruction.
const LONGEST_INSTRUCTION: u64 = 15;
/// Functions longer than this are not looked at: only damaged symbol tables contain them.
const LONGEST_FUNCTION: u64 = 4 << 20;

/// The code of a recording's modules, read on demand.
#[derive(Debug)]
pub struct Code {
    symbols: Symbols,
    modules: Vec<Module>,
    /// Observed targets by module, where blocks begin.
    targets: HashMap<usize, BTreeSet<u64>>,
    branches: FxHashMap<ModuleAddress, Option<(FlowControl, u64)>>,
    flows: HashMap<(usize, u64), Option<Rc<Flow>>>,
}

impl Code {
    pub fn new(
        symbols: Symbols,
        modules: Vec<Module>,
        targets: HashMap<usize, BTreeSet<u64>>,
    ) -> Self {
        Self { symbols, modules, targets, branches: FxHashMap::default(), flows: HashMap::new() }
    }

    /// The module of this number.
    pub fn module(&self, number: usize) -> Option<&Module> {
        self.modules.get(number)
    }

    /// All modules.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The function at an address.
    pub fn function(&mut self, place: ModuleAddress) -> Option<Function> {
        self.symbols.function(self.modules.get(place.module)?, place)
    }

    /// What a branch does, and the address after it; `None` where its code is not known.
    pub fn branch(&mut self, place: ModuleAddress) -> Option<(FlowControl, u64)> {
        if let Some(known) = self.branches.get(&place) {
            return *known;
        }
        let found = self.decode(place);
        self.branches.insert(place, found);
        found
    }

    fn decode(&mut self, place: ModuleAddress) -> Option<(FlowControl, u64)> {
        let module = self.modules.get(place.module)?;
        // Code may end with the branch.
        let bytes = (1..=LONGEST_INSTRUCTION).rev().find_map(|length| {
            let end = place.address.checked_add(length)?;
            self.symbols.code(module, place.address, end).ok()
        })?;
        let mut decoder = Decoder::with_ip(64, &bytes, place.address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then(|| (instruction.flow_control(), instruction.next_ip()))
    }

    /// The control flow of a function.
    pub fn flow(&mut self, module: usize, function: &Function) -> Option<Rc<Flow>> {
        let key = (module, function.start);
        if let Some(known) = self.flows.get(&key) {
            return known.clone();
        }
        let found = self.read(module, function).map(Rc::new);
        self.flows.insert(key, found.clone());
        found
    }

    fn read(&mut self, number: usize, function: &Function) -> Option<Flow> {
        let (start, end) = (function.start, function.end);
        if end <= start || end - start > LONGEST_FUNCTION {
            return None;
        }
        let module = self.modules.get(number)?;
        let code = self.symbols.code(module, start, end).ok()?;
        let image = self.symbols.image(module).ok()?;
        let targets = self.targets.get(&number);
        let targets: Vec<u64> =
            targets.map(|t| t.range(start..end).copied().collect()).unwrap_or_default();
        Some(flow(&code, start, &targets, &*image))
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
