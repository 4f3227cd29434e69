//! The block with its loads in one cache line, and its stores in another: whether it matters where in the L1 data cache it
//! accesses memory.
//!
//! A Golden Cove loads from one bank of 8 bytes only twice a cycle, and commits stores in pairs only within a line.

use super::disjoint_memory::{NoVariant, Operand, index, operand, shifted};
use crate::Values;
use isa::code::{Block, Inst};
use isa::effects::Effects;

const LINE: i64 = 64;

/// The variant, and its control: the same encodings with the addresses left as they are.
pub struct OneLine {
    pub variant: Block,
    pub control: Block,
}

/// Builds the variant; `values` are the block's initial values.
///
/// # Errors
/// Why it cannot be built.
pub fn one_line(block: &Block, effects: &[Effects], values: &Values) -> Result<OneLine, NoVariant> {
    let body = match block.final_branch() {
        Some(jump) => &block.instructions[..index(block, jump).min(block.instructions.len())],
        None => &block.instructions[..],
    };
    let operands: Vec<Option<Operand>> = body
        .iter()
        .zip(effects)
        .map(|(inst, effects)| operand(inst, effects, values))
        .collect::<Result<_, _>>()?;
    let shifts = shifts(&operands).ok_or(NoVariant::Alike)?;
    let parts: Vec<(&Inst, Option<i64>)> = body.iter().zip(shifts).collect();
    let jump = &block.bytes[body.iter().map(|inst| inst.bytes.len()).sum()..];
    Ok(OneLine {
        variant: encoded(&parts, jump, |shift| shift)?,
        control: encoded(&parts, jump, |_| 0)?,
    })
}

/// The instructions with their shift added to every address, and the jump after them.
fn encoded(
    parts: &[(&Inst, Option<i64>)],
    jump: &[u8],
    of: impl Fn(i64) -> i64,
) -> Result<Block, NoVariant> {
    let mut bytes = Vec::new();
    for (inst, shift) in parts {
        match shift {
            None => bytes.extend(&inst.bytes),
            Some(shift) => {
                let made = shifted(inst, of(*shift), bytes.len() as u64);
                bytes.extend(made.ok_or(NoVariant::FixedAddress)?);
            }
        }
    }
    bytes.extend(jump);
    Block::decode(&bytes).map_err(|_| NoVariant::Undecodable)
}

/// What to add to the address of each operand, such that the loads lie side by side in the line of the first, and the
/// stores in that of the first store; `None` if they do already, or do not fit.
fn shifts(operands: &[Option<Operand>]) -> Option<Vec<Option<i64>>> {
    let all = || operands.iter().flatten();
    let line = |address: i64| address.div_euclid(LINE);
    let first = |stores: bool| all().find(|o| o.stores == stores).map(|o| line(o.address));
    // The stores' line must not be the loads', lest values pass through it.
    let apart = i64::from(first(true) == first(false));
    let bases = [first(false), first(true).map(|line| line + apart)];
    let mut next = [0, 0];
    let mut shifts = Vec::with_capacity(operands.len());
    for operand in operands {
        let Some(operand) = operand else {
            shifts.push(None);
            continue;
        };
        if operand.bytes > LINE {
            return None;
        }
        let own = usize::from(operand.stores);
        let width = (operand.bytes as u64).next_power_of_two() as i64;
        let at = (next[own] + width - 1) / width * width % LINE;
        next[own] = at + width;
        shifts.push(Some(LINE * bases[own]? + at - operand.address));
    }
    let lines = |stores: bool| {
        let mut lines: Vec<i64> =
            all().filter(|o| o.stores == stores).map(|o| line(o.address)).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len()
    };
    (lines(true) > 1 || lines(false) > 1).then_some(shifts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::deps::Code;

    fn build(hex: &str) -> Result<OneLine, NoVariant> {
        let block = Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap();
        let code = Code::of_bytes(&block.bytes, tma::Core::default().facts()).unwrap();
        let values = Values { registers: [0x1234_5600; 16], ..Values::default() };
        one_line(&block, &code.effects, &values)
    }

    fn texts(block: &Block) -> Vec<&str> {
        block.instructions.iter().map(|inst| &*inst.text).collect()
    }

    #[test]
    fn loads_come_to_lie_side_by_side() {
        // mov rax,[rsi]; mov rbx,[rsi+64]; mov rcx,[rsi+128]
        let made = build("488b06 488b5e40 488b8e80000000").unwrap();
        assert_eq!(
            texts(&made.variant),
            ["mov rax,[rsi]", "mov rbx,[rsi+8]", "mov rcx,[rsi+0x10]"]
        );
        assert_eq!(texts(&made.control)[1..], ["mov rbx,[rsi+0x40]", "mov rcx,[rsi+0x80]"]);
        assert_eq!(made.variant.bytes.len(), made.control.bytes.len());
    }

    #[test]
    fn stores_have_another_line_than_loads() {
        // vmovaps [rsi],ymm0; vmovaps [rsi+64],ymm0; mov rax,[rsi+8]
        let made = build("c5fc2906 c5fc294640 488b4608").unwrap();
        let [first, second, load] = texts(&made.variant)[..] else { panic!("three") };
        assert_eq!((first, second), ("vmovaps [rsi+0x40],ymm0", "vmovaps [rsi+0x60],ymm0"));
        assert_eq!(load, "mov rax,[rsi]");
    }

    #[test]
    fn accesses_of_one_line_are_left_alone() {
        assert!(build("488b06 488b5e08").is_err_and(|why| why == NoVariant::Alike));
        assert!(build("4801d8").is_err_and(|why| why == NoVariant::Alike));
    }
}
