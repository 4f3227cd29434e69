//! The block with its memory dependencies broken: several copies whose loads and stores access
//! disjoint addresses, with register dependencies unchanged. If it is faster, the block waits for
//! values that pass through memory.

use super::variants::Variant;
use crate::Values;
use iced_x86::{Encoder, Instruction, OpKind};
use isa::code::{Block, Inst};
use isa::effects::{Access, ArchReg, Effects};
use std::fmt;

/// Most instructions of the variant.
const MAX_INSTRUCTIONS: usize = 400;
/// Most copies: a memory-carried dependency then spans that many iterations. Zen 5 renames the values of this many
/// words in memory and forwards those of more: natively `xor [rsi+N],rax` takes 0.50 cycles with 2 to 8 words in
/// rotation, 0.82 with 10.
const MAX_COPIES: usize = 8;
/// Distances at a multiple of which a load may falsely depend on an earlier store, the preferred one first: on Zen
/// 4 and 5, stores a multiple of 1 KiB above a load with the same base register (the self-test; natively on Zen
/// 4), on others those with the same low 12 address bits (4K aliasing).
const ALIASES: [i64; 2] = [1024, 4096];
/// Fewest copies worth having at the preferred distance: a dependency through memory then takes at most
/// this part of its latency.
const ENOUGH_COPIES: usize = 6;
/// Most bytes of an access that count.
const WIDEST: i64 = 2048;
/// Distance by which loads are moved, plus the offset in a page that aliases least.
const LOAD_DISTANCE: i64 = 1 << 20;
/// Steps from copy to copy are multiples of a cache line.
const LINE: i64 = 64;

/// Why the variant cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoVariant {
    /// The block does not store.
    NoStore,
    /// Its accesses are too far apart.
    Apart,
    /// An address cannot be changed.
    FixedAddress,
    /// The result cannot be decoded.
    Undecodable,
    /// An access has an implicit address.
    Implicit,
}

impl fmt::Display for NoVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoStore => "the block does not store",
            Self::Apart => "its accesses are too far apart",
            Self::FixedAddress => "an address cannot be changed",
            Self::Undecodable => "the variant cannot be decoded",
            Self::Implicit => "an access has an implicit address (stack, string)",
        })
    }
}

/// An explicit memory operand.
pub(super) struct Operand {
    /// Approximate address in the first iteration.
    pub(super) address: i64,
    pub(super) bytes: i64,
    pub(super) stores: bool,
}

/// The variant, and its control: the same copies and encodings with the addresses left as they are.
pub struct Disjoint {
    pub variant: Variant,
    pub control: Block,
}

/// Builds the variant, with the instructions `before` ahead of each copy; `values` are the block's
/// initial values.
///
/// # Errors
/// Why it cannot be built.
pub fn disjoint_memory(
    block: &Block,
    effects: &[Effects],
    values: &Values,
    before: &[u8],
) -> Result<Disjoint, NoVariant> {
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
        return Err(NoVariant::NoStore);
    }
    let most = MAX_COPIES.min(MAX_INSTRUCTIONS / body.len().max(1));
    let Spread { step, copies, alias } = Spread::of(&operands, most).ok_or(NoVariant::Apart)?;
    let load_shift = load_shift(&operands, step, copies, alias);
    let parts: Vec<(&Inst, Option<&Operand>)> =
        body.iter().zip(operands.iter().map(Option::as_ref)).collect();
    let of = |operand: &Operand, copy: i64| if operand.stores { copy * step } else { load_shift };
    let block = repeated(&parts, copies, before, of)?;
    Ok(Disjoint {
        variant: Variant { block, copies },
        control: repeated(&parts, copies, before, |_, _| 0)?,
    })
}

/// Copies of the instructions, each after those `before`, with `shift` (of the operand and the copy's number) added to
/// every address.
fn repeated(
    parts: &[(&Inst, Option<&Operand>)],
    copies: usize,
    before: &[u8],
    shift: impl Fn(&Operand, i64) -> i64,
) -> Result<Block, NoVariant> {
    let mut bytes = Vec::new();
    for copy in 0..copies as i64 {
        bytes.extend(before);
        for (inst, operand) in parts {
            match operand {
                None => bytes.extend(&inst.bytes),
                Some(o) => {
                    let encoded = shifted(inst, shift(o, copy), bytes.len() as u64);
                    bytes.extend(encoded.ok_or(NoVariant::FixedAddress)?);
                }
            }
        }
    }
    Block::decode(&bytes).map_err(|_| NoVariant::Undecodable)
}

fn index(block: &Block, inst: &Inst) -> usize {
    block.instructions.iter().position(|i| i.offset == inst.offset).unwrap_or(usize::MAX)
}

/// The explicit memory operand of an instruction, if it accesses memory.
pub(super) fn operand(
    inst: &Inst,
    effects: &Effects,
    values: &Values,
) -> Result<Option<Operand>, NoVariant> {
    if effects.memory.is_empty() {
        return Ok(None);
    }
    let decoded = &inst.decoded;
    let explicit = (0..decoded.op_count()).any(|i| decoded.op_kind(i) == OpKind::Memory);
    if !explicit || effects.memory.iter().any(|a| a.bytes == 0) {
        return Err(NoVariant::Implicit);
    }
    let stores = effects.memory.iter().any(|a| a.store);
    let address = effects.memory.iter().map(|a| address(a, values)).min().unwrap_or_default();
    let end = effects.memory.iter().map(|a| address_end(a, values)).max().unwrap_or_default();
    Ok(Some(Operand { address, bytes: end.saturating_sub(address).clamp(1, WIDEST), stores }))
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

/// The spread of the copies' accesses.
struct Spread {
    /// Bytes from one copy's stores to the next one's.
    step: i64,
    copies: usize,
    /// The distance, a multiple of which loads and stores avoid.
    alias: i64,
}

impl Spread {
    /// So that no two copies store to the same bytes, and no copy loads at a multiple of the distance
    /// from another one's store; `None` if there is none.
    fn of(operands: &[Option<Operand>], most: usize) -> Option<Self> {
        let [near, far] = ALIASES;
        let preferred = Self::within(operands, most, near, near / 4 * 3);
        preferred
            .filter(|spread| spread.copies >= ENOUGH_COPIES.min(most))
            .or_else(|| Self::within(operands, most, far, far / 2))
    }

    /// A spread with stores within `bytes`, which leaves the rest of `alias` to loads.
    fn within(operands: &[Option<Operand>], most: usize, alias: i64, bytes: i64) -> Option<Self> {
        let stores: Vec<&Operand> = operands.iter().flatten().filter(|o| o.stores).collect();
        let apart = |distance: i64| {
            stores.iter().all(|a| {
                stores.iter().all(|b| {
                    let from = a.address.wrapping_sub(b.address).wrapping_add(distance);
                    from >= b.bytes || from.saturating_neg() >= a.bytes
                })
            })
        };
        let copies = |step: i64| {
            let fits = usize::try_from(bytes / step).unwrap_or(1).min(most);
            (1..fits).find(|i| !apart(*i as i64 * step)).unwrap_or(fits)
        };
        let steps = (1..=16).map(|n| n * LINE).map(|step| (step, copies(step)));
        // The shortest step of those with the most copies.
        let (step, copies) = steps.rev().max_by_key(|(_, copies)| *copies)?;
        (copies >= 2).then_some(Self { step, copies, alias })
    }
}

/// Shift of the loads: to where the fewest are a multiple of `alias` from a store.
fn load_shift(operands: &[Option<Operand>], step: i64, copies: usize, alias: i64) -> i64 {
    let all = || operands.iter().flatten();
    let stored: Vec<(i64, i64)> = all()
        .filter(|o| o.stores)
        .flat_map(|o| (0..copies as i64).map(|i| (o.address.wrapping_add(i * step), o.bytes)))
        .collect();
    let conflicts = |shift: &i64| {
        let loads = all().filter(|o| !o.stores);
        let aliases = |o: &Operand| {
            let at = o.address.wrapping_add(*shift);
            let near = |(start, bytes): &&(i64, i64)| {
                let from = at.wrapping_sub(*start).rem_euclid(alias);
                from < *bytes || from + o.bytes > alias
            };
            stored.iter().filter(near).count()
        };
        loads.map(aliases).sum::<usize>()
    };
    let candidates = (0..alias / LINE).map(|n| LOAD_DISTANCE + (alias / 2 + n * LINE) % alias);
    candidates.min_by_key(conflicts).unwrap_or(LOAD_DISTANCE)
}

/// The instruction with `shift` added to its address, encoded at `at`.
pub(super) fn shifted(inst: &Inst, shift: i64, at: u64) -> Option<Vec<u8>> {
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

    fn build(hex: &str) -> Result<Disjoint, NoVariant> {
        let bytes = isa::code::parse_hex(hex).unwrap();
        let code = Code::of_bytes(&bytes, tma::Core::default().facts()).unwrap();
        let values = Values { registers: [0x1234_5600; 16], ..Values::default() };
        disjoint_memory(&Block::decode(&bytes).unwrap(), &code.effects, &values, &[])
    }

    /// Memory dependencies, as the analyser finds them.
    fn memory_dependencies(bytes: &[u8]) -> usize {
        let code = Code::of_bytes(bytes, tma::Core::default().facts()).unwrap();
        let initial =
            InitialValues { registers: [Some(0x1234_5600); 16], ..InitialValues::default() };
        let search = Settings { window: 128, runs: 3, initial_values: vec![initial] };
        let all = Analyser::default().analyse(&code, &search).memory.dependencies;
        // Dependencies on an earlier iteration of all copies are too far apart to matter.
        all.iter().filter(|c| c.delta == 0).count()
    }

    #[test]
    fn no_copy_loads_what_another_stored() {
        for hex in [
            "480103",                 // add [rbx],rax
            "8903 894304 488b03",     // two halves stored, the whole loaded
            "488b03 48ffc0 48894308", // load, add, store beside it
            "4801442460 4801442468",  // two counters on the stack
        ] {
            let Disjoint { variant, control } = build(hex).unwrap();
            let lengths =
                |b: &Block| b.instructions.iter().map(|i| i.bytes.len()).collect::<Vec<_>>();
            assert_eq!(lengths(&control), lengths(&variant.block), "{hex}");
            let own = isa::code::parse_hex(hex).unwrap().repeat(variant.copies);
            assert_eq!(memory_dependencies(&control.bytes), memory_dependencies(&own), "{hex}");
            assert!(variant.copies >= 8, "{hex}: {}", variant.copies);
            assert_eq!(memory_dependencies(&variant.block.bytes), 0, "{hex}");
        }
    }

    #[test]
    fn implicit_addresses_are_refused() {
        assert!(build("50 58").is_err_and(|why| why == NoVariant::Implicit));
        assert!(build("488b03").is_err_and(|why| why == NoVariant::NoStore));
    }
}
