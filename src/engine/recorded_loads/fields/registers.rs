//! The object that a register points to: a variable by DWARF, else what the code before loaded or computed.

use super::super::code::Code;
use super::definition::{Definition, definition};
use super::object::{By, Object};
use super::operand::Operand;
use iced_x86::Register;
use profile::address_space::ModuleAddress;
use profile::symbols::{Place, Untyped};

/// Definitions followed from one register to the next.
const DEEPEST: usize = 12;

/// The object that an operand of the instruction at `place` is in.
pub(super) fn object(
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
