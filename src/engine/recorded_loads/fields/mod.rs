//! Names the operand of a load or store as the source does (`node->next`), from DWARF and the code before it, as
//! `perf annotate --data-type`. The object that a register points to is a variable by DWARF, else a value that the
//! code before loaded or computed. `object` has the object's member.

mod object;

use iced_x86::{FlowControl, Instruction, Mnemonic, OpAccess, OpKind, Register};
use isa::code::Inst;
use isa::flow::{Edge, Flow};
use object::{By, Object};
pub(crate) use object::{Field, Operand};
use profile::address_space::ModuleAddress;
use profile::code::Code;
use profile::files::SearchPaths;
use profile::module::{Module, ModuleKind};
use profile::symbols::{Place, Symbols, Untyped};
use std::path::Path;

/// The operands of a program.
pub(crate) struct Fields {
    code: Code,
}

impl Fields {
    /// The fields of a file's accesses.
    pub fn of(program: &Path) -> Self {
        let path = program.display().to_string();
        let module = Module { path, kind: ModuleKind::File, ..Module::default() };
        Self { code: Code::new(Symbols::new(SearchPaths::default()), vec![module]) }
    }

    /// The field that the instruction at `address` accesses, if it is known.
    pub fn at(&mut self, address: u64) -> Option<Field> {
        field(ModuleAddress { module: 0, address }, &mut self.code).ok()
    }
}

/// The member that the instruction at `place` accesses.
///
/// # Errors
/// The reason why it is not known.
pub(crate) fn field(place: ModuleAddress, code: &mut Code) -> Result<Field, Untyped> {
    let instruction = code.instruction(place).ok_or(Untyped::NoVariable)?;
    let operand = Operand::of(&instruction).ok_or(Untyped::NoVariable)?;
    let object = object(place, &operand, code, 0)?;
    object.field(place.module, code).map(|(field, _)| field)
}

/// Definitions followed from one register to the next.
const DEEPEST: usize = 12;

/// The object that an operand of the instruction at `place` is in.
fn object(
    place: ModuleAddress,
    operand: &Operand,
    code: &mut Code,
    depth: usize,
) -> Result<Object, Untyped> {
    let displacement = operand.displacement;
    let Some(base) = operand.base else {
        let address = displacement as u64;
        let mut found = match operand.is_relative {
            true => at_address(place.module, address, code)?,
            false => absolute(place.module, address, code)?,
        };
        found.index = found.index.or(operand.step());
        return Ok(found);
    };
    let by_base = register(place, base, displacement, code, depth);
    let by_index = |code: &mut Code| {
        let index = operand.index.filter(|_| operand.scale == 1).ok_or(Untyped::NoVariable)?;
        register(place, index, displacement, code, depth)
    };
    // A register that is no pointer may be an index into static data.
    let by_address = |code: &mut Code| {
        let found = absolute(place.module, displacement as u64, code)?;
        let index = Some(operand.step().unwrap_or(1));
        Ok(Object { index, offset: found.offset.wrapping_sub(displacement), ..found })
    };
    let found = by_base
        .or_else(|why| by_index(code).or_else(|_| by_address(code)).map_err(|_: Untyped| why));
    let mut found = found?;
    found.offset = found.offset.checked_add(displacement).ok_or(Untyped::NoMember)?;
    found.index = found.index.or(operand.step());
    Ok(found)
}

/// The static variable at an address that the code has as a number.
fn absolute(module: usize, address: u64, code: &mut Code) -> Result<Object, Untyped> {
    let of = code.modules.get(module).cloned().ok_or(Untyped::NoVariable)?;
    match code.symbols.is_fixed(&of) {
        true => at_address(module, address, code),
        false => Err(Untyped::NoVariable),
    }
}

/// The static variable at an address of the module.
fn at_address(module: usize, address: u64, code: &mut Code) -> Result<Object, Untyped> {
    let of = code.modules.get(module).cloned().ok_or(Untyped::NoVariable)?;
    let known = code.symbols.object(&of, ModuleAddress { module, address });
    let known = known.filter(|known| known.named).ok_or(Untyped::NoVariable)?;
    let (text, start) = (known.name.clone(), known.start);
    let ty = code.symbols.static_type(&of, start)?;
    let offset = address.wrapping_sub(start) as i64;
    Ok(Object { text, by: By::Name, ty, offset, index: None })
}

/// The object that `register` points to before the instruction at `place`; of a frame the variable at the displacement.
fn register(
    place: ModuleAddress,
    register: Register,
    displacement: i64,
    code: &mut Code,
    depth: usize,
) -> Result<Object, Untyped> {
    if depth > DEEPEST {
        return Err(Untyped::NoVariable);
    }
    let why = match variable(place, register, displacement, code) {
        Ok(found) => return Ok(found),
        Err(Untyped::NoDwarf) => return Err(Untyped::NoDwarf),
        Err(why) => why,
    };
    let (at, found) = definition(place, register, code).ok_or(why)?;
    defined(at, found, displacement, code, depth + 1).map_err(|_| why)
}

/// The object that a register points to which got its value from the instruction at `at`.
fn defined(
    at: ModuleAddress,
    definition: Definition,
    displacement: i64,
    code: &mut Code,
    depth: usize,
) -> Result<Object, Untyped> {
    match definition {
        Definition::Copy(from) => register(at, from, displacement, code, depth),
        Definition::Load(operand) => {
            let (field, ty) = object(at, &operand, code, depth)?.field(at.module, code)?;
            let module = code.modules.get(at.module).cloned().ok_or(Untyped::NoType)?;
            let to = code.symbols.pointee(&module, ty.ok_or(Untyped::NoType)?)?;
            Ok(Object { text: field.text, by: By::of(to), ty: to.ty, offset: 0, index: None })
        }
        Definition::Address(mut operand) => {
            // The variable of a frame that the sum is in.
            let own = operand.displacement;
            if operand.base.is_none() && operand.index.is_none() {
                return object(at, &operand, code, depth);
            }
            operand.displacement = own.checked_add(displacement).ok_or(Untyped::NoMember)?;
            let mut found = object(at, &operand, code, depth)?;
            found.offset = found.offset.checked_sub(displacement).ok_or(Untyped::NoMember)?;
            Ok(found)
        }
    }
}

fn variable(
    place: ModuleAddress,
    register: Register,
    displacement: i64,
    code: &mut Code,
) -> Result<Object, Untyped> {
    let number = number(register).ok_or(Untyped::NoVariable)?;
    let module = code.modules.get(place.module).cloned().ok_or(Untyped::NoVariable)?;
    let variables = code.symbols.variables(&module, place)?;
    let mut why = Untyped::NoVariable;
    for one in variables.iter() {
        let text = one.name.clone();
        match one.place {
            Place::Value { register, offset } if register == number => {
                match code.symbols.pointee(&module, one.ty) {
                    Ok(to) => {
                        let (by, ty) = (By::of(to), to.ty);
                        return Ok(Object { text, by, ty, offset, index: None });
                    }
                    Err(found) => why = found,
                }
            }
            Place::Memory { register, offset } if register == number => {
                let size = code.symbols.size_of(&module, one.ty).unwrap_or(0);
                let inside = displacement.checked_sub(offset).and_then(|n| u64::try_from(n).ok());
                if inside.is_some_and(|inside| inside < size) {
                    let (ty, offset) = (one.ty, offset.saturating_neg());
                    return Ok(Object { text, by: By::Name, ty, offset, index: None });
                }
            }
            _ => {}
        }
    }
    Err(why)
}

/// DWARF's number of a register (System V ABI, AMD64 supplement, figure 3.36).
fn number(register: Register) -> Option<u16> {
    use Register::{R8, R9, R10, R11, R12, R13, R14, R15, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP};
    const NUMBERS: [Register; 16] =
        [RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15];
    NUMBERS.iter().position(|one| *one == register).and_then(|n| u16::try_from(n).ok())
}

/// How a register got its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Definition {
    /// A copy of another register.
    Copy(Register),
    /// Loaded.
    Load(Operand),
    /// Computed as the address of an operand.
    Address(Operand),
}

/// Most blocks followed backwards.
const MOST_BLOCKS: usize = 16;

/// The definition of `register` before the instruction at `place`, and where it is; `None` if there are several, or
/// none that is followed.
fn definition(
    place: ModuleAddress,
    register: Register,
    code: &mut Code,
) -> Option<(ModuleAddress, Definition)> {
    let flow = code.flow(place)?;
    let mut block = flow.block_at(place.address)?;
    let mut before = place.address;
    for _ in 0..MOST_BLOCKS {
        let own = flow.blocks.get(block)?;
        for (address, inst) in within(&flow, own.start, before).iter().rev() {
            if writes(inst, register) {
                let found = of(&inst.decoded, register)?;
                return Some((ModuleAddress { address: *address, ..place }, found));
            }
        }
        block = before_block(&flow, block, register)?;
        before = flow.blocks.get(block)?.end;
    }
    None
}

/// Instructions from `start` to `end`.
fn within(flow: &Flow, start: u64, end: u64) -> &[(u64, Inst)] {
    let at = |address: u64| flow.instructions.partition_point(|(own, _)| *own < address);
    flow.instructions.get(at(start)..at(end)).unwrap_or_default()
}

/// Whether an instruction changes a register; calls change those that the ABI does not preserve.
fn writes(inst: &Inst, register: Register) -> bool {
    use Register::{R12, R13, R14, R15, RBP, RBX, RSP};
    let is_call =
        matches!(inst.decoded.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
    if is_call && ![RBX, RBP, RSP, R12, R13, R14, R15].contains(&register) {
        return true;
    }
    inst.registers.iter().any(|used| {
        used.register().full_register() == register
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
    })
}

/// The one block that comes before: of the head of a loop that does not change the register, the one outside.
fn before_block(flow: &Flow, block: usize, register: Register) -> Option<usize> {
    let mut all: Vec<usize> = (0..flow.blocks.len())
        .filter(|from| flow.blocks[*from].edges.contains(&Edge::Block(block)))
        .collect();
    let around = flow.blocks.get(block)?.innermost.and_then(|number| flow.loops.get(number));
    if let Some(around) = around.filter(|around| around.head == block) {
        let changes =
            around.blocks.iter().filter_map(|number| flow.blocks.get(*number)).any(|own| {
                within(flow, own.start, own.end).iter().any(|(_, inst)| writes(inst, register))
            });
        if !changes {
            all.retain(|from| !around.blocks.contains(from));
        }
    }
    match all.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

fn of(instruction: &Instruction, register: Register) -> Option<Definition> {
    if instruction.op_count() != 2 || instruction.op0_register().full_register() != register {
        return None;
    }
    let is_whole = instruction.op0_register() == register;
    let operand = || Operand::of(instruction);
    let constant = |displacement| Operand {
        base: None,
        index: None,
        scale: 1,
        is_relative: false,
        displacement,
    };
    let plus = |displacement| Operand { base: Some(register), ..constant(displacement) };
    match (instruction.mnemonic(), instruction.op1_kind()) {
        (Mnemonic::Mov, OpKind::Register) if is_whole => {
            Some(Definition::Copy(instruction.op1_register().full_register()))
        }
        (Mnemonic::Mov, OpKind::Memory) if is_whole => operand().map(Definition::Load),
        // Addresses of static data below 4 GiB are loaded into the lower half.
        (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64) => {
            Some(Definition::Address(constant(instruction.immediate(1) as i64)))
        }
        (Mnemonic::Lea, OpKind::Memory) if is_whole => operand().map(Definition::Address),
        (Mnemonic::Add, OpKind::Immediate8to64 | OpKind::Immediate32to64) => {
            Some(Definition::Address(plus(instruction.immediate(1) as i64)))
        }
        (Mnemonic::Sub, OpKind::Immediate8to64 | OpKind::Immediate32to64) => {
            Some(Definition::Address(plus((instruction.immediate(1) as i64).checked_neg()?)))
        }
        (Mnemonic::Add, OpKind::Register) if is_whole => Some(Definition::Address(Operand {
            index: Some(instruction.op1_register().full_register()),
            ..plus(0)
        })),
        _ => None,
    }
}
