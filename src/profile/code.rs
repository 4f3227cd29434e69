//! The code around addresses of a recording: function, line, instruction, control flow; read on demand.

use crate::files::Gap;
use crate::module::{Module, ModuleAddress};
use crate::symbols::{Function, Line, Symbols};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use isa::flow::{Flow, flow};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

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
    targets: Targets,
    flows: Flows,
}

/// Observed targets of branches by module.
pub(crate) type Targets = HashMap<usize, BTreeSet<u64>>;

impl Code {
    /// Without observed targets.
    pub fn new(symbols: Symbols, modules: Vec<Module>) -> Self {
        Self { symbols, modules, targets: Targets::new(), flows: Flows::default() }
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
    pub fn flow(&mut self, place: ModuleAddress) -> Option<Arc<Flow>> {
        let Function { start, end, .. } = self.function(place)?;
        let (number, range) = (place.module, start..end);
        let extent = Extent { module: self.modules.get(number)?, number, range };
        self.flows.of(extent, &mut self.symbols, &self.targets).ok()
    }

    /// The code of the innermost loop around an address.
    pub fn innermost(&mut self, place: ModuleAddress) -> Option<Vec<Range<u64>>> {
        let flow = self.flow(place)?;
        let block = flow.blocks.get(flow.block_at(place.address)?)?;
        let own = flow.loops.get(block.innermost?)?;
        let blocks = own.blocks.iter().filter_map(|number| flow.blocks.get(*number));
        Some(blocks.map(|block| block.start..block.end).collect())
    }
}

/// The code of a function.
pub(crate) struct Extent<'a> {
    pub module: &'a Module,
    /// The module's number.
    pub number: usize,
    pub range: Range<u64>,
}

/// Instructions of all functions whose control flow is kept: about 50 MB.
const KEPT: usize = 1 << 18;

/// Control flow by module and first address, built once for all who ask.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    known: HashMap<(usize, u64), Result<Arc<Flow>, Unavailable>>,
    instructions: usize,
}

impl Flows {
    /// The control flow of a function.
    pub fn of(
        &mut self,
        of: Extent,
        symbols: &mut Symbols,
        targets: &Targets,
    ) -> Result<Arc<Flow>, Unavailable> {
        let key = (of.number, of.range.start);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let found = read(of, symbols, targets).map(Arc::new);
        let own = found.as_ref().map_or(0, |flow| flow.instructions.len());
        self.instructions += own;
        if self.instructions > KEPT {
            self.known.clear();
            self.instructions = own;
        }
        self.known.insert(key, found.clone());
        found
    }
}

fn read(of: Extent, symbols: &mut Symbols, targets: &Targets) -> Result<Flow, Unavailable> {
    let Range { start, end } = of.range;
    if end <= start || end - start > LONGEST_FUNCTION {
        return Err(Unavailable::Length(end.saturating_sub(start)));
    }
    let code = symbols.code(of.module, start, end)?;
    let image = symbols.image(of.module)?;
    let targets = targets.get(&of.number);
    let targets: Vec<u64> =
        targets.map(|all| all.range(start..end).copied().collect()).unwrap_or_default();
    Ok(flow(&code, start, &targets, &*image))
}

/// Why the code of a block or function is unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// Its module is unavailable.
    Gap(Gap),
    /// No module is mapped there.
    NoMapping,
    /// The bytes of its symbol: none, or more than any function has.
    Length(u64),
    /// It is in the kernel, or in memory without a file.
    NoFile,
    /// Its file of this path cannot be read.
    Unread(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap(gap) => gap.fmt(f),
            Self::NoMapping => f.write_str("no mapping is known at its address"),
            Self::Length(bytes) => write!(f, "its symbol is {bytes} bytes long"),
            Self::NoFile => f.write_str("its code is in the kernel or in anonymous memory"),
            Self::Unread(path) => write!(f, "{path} cannot be read"),
        }
    }
}

impl From<Gap> for Unavailable {
    fn from(gap: Gap) -> Self {
        Self::Gap(gap)
    }
}
