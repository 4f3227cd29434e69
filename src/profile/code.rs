//! The code around addresses of a recording: function, line, instruction, control flow; read on demand.

use crate::module::{Module, ModuleAddress};
use crate::symbols::{Function, Line, Symbols};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use isa::flow::{Flow, flow};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;

/// Bytes of the longest instruction.
const LONGEST_INSTRUCTION: u64 = 15;
/// Functions longer than this are not looked at: only damaged symbol tables contain them.
const LONGEST_FUNCTION: u64 = 4 << 20;

/// The code of a recording's modules.
#[derive(Debug)]
pub struct Code {
    /// Their symbols.
    pub symbols: Symbols,
    /// The modules, by number.
    pub modules: Vec<Module>,
    /// Observed targets of branches by module, where blocks begin.
    targets: HashMap<usize, BTreeSet<u64>>,
    flows: HashMap<(usize, u64), Option<Rc<Flow>>>,
}

impl Code {
    /// Without observed targets.
    pub fn new(symbols: Symbols, modules: Vec<Module>) -> Self {
        Self { symbols, modules, targets: HashMap::new(), flows: HashMap::new() }
    }

    /// Observed targets of branches.
    pub fn observe(&mut self, targets: HashMap<usize, BTreeSet<u64>>) {
        self.targets = targets;
    }

    /// The path of a module.
    pub fn path(&self, number: usize) -> String {
        self.modules.get(number).map(|module| module.path.clone()).unwrap_or_default()
    }

    /// The function at an address.
    pub fn function(&mut self, place: ModuleAddress) -> Option<Function> {
        self.symbols.function(self.modules.get(place.module)?, place)
    }

    /// The innermost source line.
    pub fn line(&mut self, place: ModuleAddress) -> Option<Line> {
        let module = self.modules.get(place.module)?;
        self.symbols.lines(module, place).into_iter().next()
    }

    /// The instruction at an address.
    pub fn instruction(&mut self, place: ModuleAddress) -> Option<Instruction> {
        let bytes = self.bytes(place, place.address)?;
        let mut decoder = Decoder::with_ip(64, &bytes, place.address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// The code from `place` to the end of the instruction at `last`.
    pub fn bytes(&mut self, place: ModuleAddress, last: u64) -> Option<Vec<u8>> {
        let module = self.modules.get(place.module)?;
        // Code may end with that instruction.
        (1..=LONGEST_INSTRUCTION).rev().find_map(|length| {
            self.symbols.code(module, place.address, last.checked_add(length)?).ok()
        })
    }

    /// The control flow of the function at an address.
    pub fn flow(&mut self, place: ModuleAddress) -> Option<Rc<Flow>> {
        let function = self.function(place)?;
        let key = (place.module, function.start);
        if let Some(known) = self.flows.get(&key) {
            return known.clone();
        }
        let found = self.read(place.module, &function).map(Rc::new);
        self.flows.insert(key, found.clone());
        found
    }

    /// The code of the innermost loop around an address.
    pub fn innermost(&mut self, place: ModuleAddress) -> Option<Vec<Range<u64>>> {
        let flow = self.flow(place)?;
        let block = flow.blocks.get(flow.block_at(place.address)?)?;
        let own = flow.loops.get(block.innermost?)?;
        let blocks = own.blocks.iter().filter_map(|number| flow.blocks.get(*number));
        Some(blocks.map(|block| block.start..block.end).collect())
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
            targets.map(|all| all.range(start..end).copied().collect()).unwrap_or_default();
        Some(flow(&code, start, &targets, &*image))
    }
}
