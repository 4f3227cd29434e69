//! Symbolic execution of one path through an iteration.

use super::function::{Code, Function, Operation, Place, Value};
use iced_x86::{FlowControl, Mnemonic, OpKind, Register};
use isa::effects::{Access, ArchReg, Role, Write};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const RSP: usize = 4;
/// Words that lead to another word, at most.
const MOST_NESTED: usize = 6;
/// Registers that a callee preserves (System V ABI, AMD64, 3.2.1): rbx, rsp, rbp, r12 to r15.
const KEPT: u32 = 1 << 3 | 1 << 4 | 1 << 5 | 0xf << 12;

/// Addresses of instructions.
pub(super) type Sites = BTreeSet<u64>;

/// A value and the instructions that computed it.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub value: Value,
    pub sites: Sites,
}

impl Made {
    /// A value that no instruction has computed.
    pub fn of(value: Value) -> Self {
        Self { value, sites: Sites::new() }
    }

    /// `value`, computed from this one and by `more` instructions.
    pub fn with(mut self, value: Value, more: &Sites) -> Self {
        self.value = value;
        self.sites.extend(more);
        self
    }
}

/// State of an iteration on a path so far.
pub(super) struct Run<'a> {
    function: &'a Function<'a>,
    /// Places that an iteration changes.
    varying: &'a BTreeSet<Place>,
    places: BTreeMap<Place, Made>,
    /// Stores in order: address, bytes, value.
    stores: Vec<(Value, u32, Made)>,
    /// Words that were read before they were written.
    words: BTreeSet<Place>,
}

/// Effect of an iteration on a path.
pub(super) struct Iteration {
    /// The address of the load.
    pub address: Made,
    /// Places that it changes, at its end.
    pub after: BTreeMap<Place, Made>,
}

/// Executes a path; `varying` are places that are known to change. None if the load is not on it.
pub(super) fn run(
    function: &Function,
    path: &[usize],
    load: u64,
    varying: &BTreeSet<Place>,
) -> Option<Iteration> {
    let mut run = Run {
        function,
        varying,
        places: BTreeMap::new(),
        stores: Vec::new(),
        words: BTreeSet::new(),
    };
    let mut address = None;
    for (block, next) in path.iter().zip(path.iter().skip(1).map(Some).chain([None])) {
        for code in function.block(*block) {
            if code.instruction.ip() == load {
                let access = code.effects.memory.iter().find(|m| m.load)?;
                address = Some(run.address(access));
            }
            run.step(code);
        }
        if let Some(next) = next {
            for left in function.left(*block, *next) {
                run.leave(left);
            }
        }
    }
    Some(Iteration { address: address?, after: run.end() })
}

impl Run<'_> {
    fn end(mut self) -> BTreeMap<Place, Made> {
        for place in std::mem::take(&mut self.words) {
            let Place::Word(address) = &place else { continue };
            if let Some((_, _, made)) = self.stores.iter().rev().find(|s| s.0 == **address) {
                self.places.insert(place.clone(), made.clone());
            }
        }
        let changed =
            |(place, made): &(Place, Made)| made.value != Value::Start(Place::clone(place));
        self.places.into_iter().filter(changed).collect()
    }

    pub(super) fn read(&self, register: ArchReg) -> Made {
        let place = Place::Register(register.index());
        match self.places.get(&place) {
            Some(made) => made.clone(),
            None => Made::of(Value::Start(place)),
        }
    }

    fn set(&mut self, register: ArchReg, made: Made) {
        self.places.insert(Place::Register(register.index()), made);
    }

    /// The address of an access.
    pub(super) fn address(&self, access: &Access) -> Made {
        let mut made = Made::of(Value::constant(access.displacement));
        for (part, scale) in [(access.base, 1), (access.index, access.scale)] {
            if let Some(register) = ArchReg::of(part) {
                let one = self.read(register);
                let value = made.value.plus(&one.value.times(i64::from(scale)));
                made = made.with(value, &one.sites);
            }
        }
        if access.segment != Register::None {
            made.value = made.value.plus(&Value::Fixed(access.segment as u64));
        }
        made
    }

    /// The value that an access loads.
    pub(super) fn load(&mut self, access: &Access, site: u64) -> Made {
        let mut at = self.address(access);
        at.sites.insert(site);
        for (address, bytes, stored) in self.stores.iter().rev() {
            if *address == at.value && *bytes >= access.bytes {
                return stored.clone().with(stored.value.clone(), &at.sites);
            }
        }
        let place = Place::Word(Rc::new(at.value.clone()));
        if self.is_fixed(&at.value) && at.value.nesting() < MOST_NESTED {
            // A spilled value, or one that is loaded again in each iteration.
            self.words.insert(place.clone());
            return Made { value: Value::Start(place), ..at };
        }
        let value = Value::load(site, at.value.clone());
        Made { value, ..at }
    }

    /// Whether a value is the same in each iteration.
    fn is_fixed(&self, value: &Value) -> bool {
        let mut fixed = true;
        value.each(false, &mut |part, _| match part {
            Value::Start(place) => fixed &= !self.varying.contains(place),
            Value::Load(..) | Value::Unknown => fixed = false,
            _ => {}
        });
        fixed
    }

    fn step(&mut self, code: &Code) {
        if matches!(code.instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        {
            return self.call();
        }
        let simple = self.simple(code);
        self.rest(code, simple);
    }

    /// Registers after a call. What it stores is taken not to matter.
    fn call(&mut self) {
        for number in (0..ArchReg::COUNT).filter(|n| *n >= 16 || KEPT >> n & 1 == 0) {
            let made = Made::of(Value::Unknown);
            self.places.insert(Place::Register(number), made);
        }
    }

    /// Writes the result `simple` to the first operand, and to everything else what it is computed from.
    fn rest(&mut self, code: &Code, simple: Option<Made>) {
        let (instruction, effects) = (&code.instruction, &code.effects);
        let site = instruction.ip();
        let loads: Vec<Access> = effects.memory.iter().filter(|m| m.load).copied().collect();
        let loaded: Vec<Made> = loads.iter().take(1).map(|one| self.load(one, site)).collect();
        let first = match instruction.op0_kind() {
            _ if instruction.mnemonic() == Mnemonic::Cdqe => Some(ArchReg::gpr(0)),
            OpKind::Register => ArchReg::of(instruction.op0_register()),
            _ => None,
        };
        let own = |mut made: Made| {
            made.sites.insert(site);
            made
        };
        let mut written = Vec::new();
        for write in &effects.writes {
            let made = match &simple {
                Some(simple) if Some(write.reg) == first => simple.clone(),
                _ if write.reg.index() == RSP && instruction.is_stack_instruction() => {
                    let made = self.read(write.reg);
                    let step = i64::from(instruction.stack_pointer_increment());
                    Made { value: made.value.plus(&Value::constant(step)), ..made }
                }
                _ => self.mixed(code, write, &loaded),
            };
            written.push((write.reg, own(made)));
        }
        if let Some(access) = effects.memory.iter().find(|m| m.store) {
            let address = self.address(access);
            let made = match (simple, instruction.mnemonic()) {
                (Some(simple), _) if first.is_none() => simple,
                (_, Mnemonic::Push) => {
                    self.operand(code, 0).unwrap_or_else(|| Made::of(Value::Unknown))
                }
                _ => self.stored(code, &loaded),
            };
            let mut made = own(made);
            made.sites.extend(&address.sites);
            self.stores.push((address.value, access.bytes, made));
        }
        for (register, made) in written {
            self.set(register, made);
        }
    }

    /// A result that is computed from all that flows into it.
    fn mixed(&mut self, code: &Code, write: &Write, loaded: &[Made]) -> Made {
        let effects = &code.effects;
        let mut all: Vec<Made> = Vec::new();
        for read in &effects.reads {
            let is_value = matches!(read.role, Role::Data | Role::Merged | Role::Stack);
            if is_value && effects.flows(read, write) {
                all.push(self.read(read.reg));
            }
        }
        if effects.loaded_flows(write) {
            all.extend_from_slice(loaded);
        }
        together(all)
    }

    fn stored(&mut self, code: &Code, loaded: &[Made]) -> Made {
        let effects = &code.effects;
        let data = effects.reads.iter().filter(|read| effects.flows_to_store(read));
        let data = data.filter(|read| matches!(read.role, Role::Data | Role::Merged));
        let mut all: Vec<Made> = data.map(|read| self.read(read.reg)).collect();
        all.extend_from_slice(loaded);
        together(all)
    }

    /// Effect of the further iterations of a loop within this one, which ran once, on the registers and words that it
    /// writes.
    fn leave(&mut self, left: usize) {
        let within = self.function.writes(left);
        for (register, (steps, sites)) in within {
            let place = Place::Register(*register);
            let Some(made) = self.places.get_mut(&place) else { continue };
            made.value = match steps {
                true => made.value.plus(&Value::Fixed(1 << 32 | left as u64)),
                false => Value::computed(Operation::Other, vec![made.value.clone()]),
            };
            made.sites.extend(sites);
        }
        let sites = self.function.stores(left);
        for (_, _, made) in &mut self.stores {
            if made.sites.iter().any(|site| sites.contains(site)) {
                made.value = Value::computed(Operation::Other, vec![made.value.clone()]);
            }
        }
    }
}

/// One value as it is, several as something computed from them.
fn together(all: Vec<Made>) -> Made {
    let sites = all.iter().flat_map(|made| made.sites.iter().copied()).collect();
    let values: Vec<Value> = all.into_iter().map(|made| made.value).collect();
    let value = match &values[..] {
        [one @ Value::Load(..)] => one.clone(),
        _ => Value::computed(Operation::Other, values),
    };
    Made { value, sites }
}
