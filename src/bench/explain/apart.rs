//! The block with its memory kept apart: several copies of it, in which no load reads what a store
//! wrote, while registers keep their chains. Where that is faster, values that go through memory
//! are what it waits for.

use crate::Values;
use iced_x86::{Encoder, Instruction, OpKind};
use isa::code::{Block, Inst};
use isa::effects::{Access, ArchReg, Effects};

/// Instructions of the variant, at most.
const MOST: usize = 400;
/// Copies, at most: so many iterations a chain through memory is stretched over.
const COPIES: usize = 32;
/// Bytes that the copies' stores are spread over: half a page, so that loads can have the other
/// half. Loads wait for stores with the same low twelve bits of the address on some processors.
const SPREAD: i64 = 2048;
/// Loads go so far from where they were, and to the offset in a page that suits.
const FAR: i64 = 1 << 20;
/// Steps from copy to copy are multiples of a cache line.
const LINE: i64 = 64;

/// The variant and how many iterations it holds. The reason why there is none, else.
pub struct Apart {
    pub block: Block,
    pub copies: usize,
}

/// An explicit memory operand.
struct Operand {
    /// About where it is in the first iteration.
    address: i64,
    bytes: i64,
    stores: bool,
}

/// Builds it, with the instructions `before` in front of each copy; `values` are those that the
/// block starts with.
///
/// # Errors
/// Why it cannot be built.
pub fn apart(
    block: &Block,
    effects: &[Effects],
    values: &Values,
    before: &[u8],
) -> Result<Apart, &'static str> {
    let body = match block.final_branch() {
        Some(jump) => &block.instructions[..block.instructions.len().min(index(block, jump))],
        None => &block.instructions[..],
    };
    let operands: Vec<Option<Operand>> = body
        .iter()
        .zip(effects)
        .map(|(inst, effects)| operand(inst, effects, values))
        .collect::<Result<_, _>>()?;
    if !operands.iter().flatten().any(|o| o.stores) {
        return Err("nothing is stored");
    }
    let most = COPIES.min(MOST / body.len().max(1));
    let (step, copies) = steps(&operands, most).ok_or("its accesses lie too far apart")?;
    let away = away(&operands, step, copies);
    let mut bytes = Vec::new();
    for copy in 0..copies as i64 {
        bytes.extend(before);
        for (inst, operand) in body.iter().zip(&operands) {
            match operand {
                None => bytes.extend(&inst.bytes),
                Some(o) => {
                    let shift = if o.stores { copy * step } else { away };
                    let moved = moved(inst, shift, bytes.len() as u64);
                    bytes.extend(moved.ok_or("an address cannot be moved")?);
                }
            }
        }
    }
    let block = Block::decode(&bytes).map_err(|_| "it is no code")?;
    Ok(Apart { block, copies })
}

fn index(block: &Block, inst: &Inst) -> usize {
    block.instructions.iter().position(|i| i.offset == inst.offset).unwrap_or(usize::MAX)
}

fn operand(
    inst: &Inst,
    effects: &Effects,
    values: &Values,
) -> Result<Option<Operand>, &'static str> {
    if effects.memory.is_empty() {
        return Ok(None);
    }
    let decoded = &inst.decoded;
    let explicit = (0..decoded.op_count()).any(|i| decoded.op_kind(i) == OpKind::Memory);
    if !explicit || effects.memory.iter().any(|a| a.bytes == 0) {
        return Err("an access has no address in the code (stack, string)");
    }
    let stores = effects.memory.iter().any(|a| a.store);
    let address = effects.memory.iter().map(|a| address(a, values)).min().unwrap_or_default();
    let end = effects.memory.iter().map(|a| address_end(a, values)).max().unwrap_or_default();
    Ok(Some(Operand { address, bytes: end.saturating_sub(address).clamp(1, SPREAD), stores }))
}

fn address(access: &Access, values: &Values) -> i64 {
    let of = |register| {
        let number = ArchReg::of(register).and_then(|p: ArchReg| p.as_gpr());
        number.map_or(0, |n| values.registers[usize::from(n)] as i64)
    };
    let scaled = of(access.index).wrapping_mul(i64::from(access.scale));
    of(access.base).wrapping_add(scaled).wrapping_add(access.displacement)
}

fn address_end(access: &Access, values: &Values) -> i64 {
    address(access, values).wrapping_add(i64::from(access.bytes))
}

/// From copy to copy, and how many copies: no store of one copy reaches where one of another does.
fn steps(operands: &[Option<Operand>], most: usize) -> Option<(i64, usize)> {
    let stores: Vec<&Operand> = operands.iter().flatten().filter(|o| o.stores).collect();
    let apart = |distance: i64| {
        stores.iter().all(|a| {
            stores.iter().all(|b| {
                let from = a.address.wrapping_sub(b.address).wrapping_add(distance);
                from >= b.bytes || from.saturating_neg() >= a.bytes
            })
        })
    };
    let works = |step: &i64| (1..most as i64).all(|i| apart(i * step));
    let step = (1..=16).map(|n| n * LINE).find(works)?;
    let copies = usize::try_from(SPREAD / step).unwrap_or(1).min(most);
    (copies >= 2).then_some((step, copies))
}

/// How far loads go: where they share no offset within a page with a store, if that can be had.
fn away(operands: &[Option<Operand>], step: i64, copies: usize) -> i64 {
    const PAGE: i64 = 4096;
    let all = || operands.iter().flatten();
    let stored: Vec<(i64, i64)> = all()
        .filter(|o| o.stores)
        .flat_map(|o| (0..copies as i64).map(|i| (o.address.wrapping_add(i * step), o.bytes)))
        .collect();
    let met = |away: &i64| {
        let loads = all().filter(|o| !o.stores);
        let meets = |o: &Operand| {
            let at = o.address.wrapping_add(*away);
            let near = |(start, bytes): &&(i64, i64)| {
                let from = at.wrapping_sub(*start).rem_euclid(PAGE);
                from < *bytes || from + o.bytes > PAGE
            };
            stored.iter().filter(near).count()
        };
        loads.map(meets).sum::<usize>()
    };
    let candidates = (0..PAGE / LINE).map(|n| FAR + (PAGE / 2 + n * LINE) % PAGE);
    candidates.min_by_key(met).unwrap_or(FAR)
}

/// The instruction with its operand moved, as it is encoded at `at`.
fn moved(inst: &Inst, shift: i64, at: u64) -> Option<Vec<u8>> {
    let mut made: Instruction = inst.decoded;
    let displacement = made.memory_displacement64().wrapping_add(shift as u64);
    let relative = made.is_ip_rel_memory_operand();
    if !relative && i32::try_from(displacement as i64).is_err() {
        return None;
    }
    made.set_memory_displacement64(displacement);
    if !relative {
        made.set_memory_displ_size(8);
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(&made, at).ok()?;
    Some(encoder.take_buffer())
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::deps::memory::{InitialValues, Settings};
    use isa::deps::{Analyser, Code};

    fn build(hex: &str) -> Result<Apart, &'static str> {
        let bytes = isa::code::parse_hex(hex).unwrap();
        let code = Code::of_bytes(&bytes, tma::Core::default().facts()).unwrap();
        let values = Values { registers: [0x1234_5600; 16], ..Values::default() };
        apart(&Block::decode(&bytes).unwrap(), &code.effects, &values, &[])
    }

    /// Pairs of store and load that share bytes, as the dependency finder sees them.
    fn carried(bytes: &[u8]) -> usize {
        let code = Code::of_bytes(bytes, tma::Core::default().facts()).unwrap();
        let given =
            InitialValues { registers: [Some(0x1234_5600); 16], ..InitialValues::default() };
        let search = Settings { window: 128, runs: 3, initial_values: vec![given] };
        let found = Analyser::default().analyse(&code, &search).memory.dependencies;
        // What the first copy loads of an earlier round of all copies is far away.
        found.iter().filter(|c| c.delta == 0).count()
    }

    #[test]
    fn no_copy_loads_what_another_one_stored() {
        for hex in [
            "480103",                 // add [rbx],rax
            "8903 894304 488b03",     // two halves stored, the whole loaded
            "488b03 48ffc0 48894308", // load, add, store beside it
            "4801442460 4801442468",  // two counters on the stack
        ] {
            let apart = build(hex).unwrap();
            assert!(apart.copies >= 8, "{hex}: {}", apart.copies);
            assert_eq!(carried(&apart.block.bytes), 0, "{hex}");
        }
    }

    #[test]
    fn what_has_no_address_in_the_code_stays() {
        assert!(build("50 58").is_err_and(|why| why.contains("stack")));
        assert!(build("488b03").is_err_and(|why| why.contains("nothing")));
    }
}
