//! The block with its loads in one cache line, and its stores in another: whether it matters where in the L1 data cache it
//! accesses memory.
//!
//! A Golden Cove loads from one bank of 8 bytes only twice a cycle, and commits stores in pairs only within a line.

use super::disjoint_memory::{Operand, operand, shifted};
use crate::Values;
use iced_x86::Register;
use isa::code::{Block, Inst};
use isa::effects::Effects;

const LINE: i64 = 64;

/// The variant, and its control: the same encodings with the addresses left as they are.
pub struct OneLine {
    pub variant: Block,
    pub control: Block,
}

/// Builds the variant of a block without a jump; `values` are its initial values. `None` if an address cannot be changed, if
/// the accesses do not fit a line, or if they are in one already.
pub fn one_line(block: &Block, effects: &[Effects], values: &Values) -> Option<OneLine> {
    let instructions = &block.instructions;
    let operands: Vec<Option<Operand>> = instructions
        .iter()
        .zip(effects)
        .map(|(inst, effects)| operand(inst, effects, values).ok())
        .collect::<Option<_>>()?;
    if instructions.iter().any(is_elsewhere) {
        return None;
    }
    let parts: Vec<(&Inst, Option<i64>)> = instructions.iter().zip(shifts(&operands)?).collect();
    Some(OneLine { variant: encoded(&parts, |shift| shift)?, control: encoded(&parts, |_| 0)? })
}

/// Whether an address depends on more than general-purpose registers: its place among the others is not known, or changes
/// with the length of the code.
fn is_elsewhere(inst: &Inst) -> bool {
    let decoded = &inst.decoded;
    inst.rip_displacement.is_some()
        || matches!(decoded.segment_prefix(), Register::FS | Register::GS)
        || decoded.memory_index().is_vector_register()
}

/// The instructions with their shift added to every address.
fn encoded(parts: &[(&Inst, Option<i64>)], of: impl Fn(i64) -> i64) -> Option<Block> {
    let mut bytes = Vec::new();
    for (inst, shift) in parts {
        match shift {
            None => bytes.extend(&inst.bytes),
            Some(shift) => bytes.extend(shifted(inst, of(*shift), bytes.len() as u64)?),
        }
    }
    Block::decode(&bytes).ok()
}

/// What to add to the address of each operand, such that the loads lie side by side in the line of the first, and the
/// stores in that of the first store. Every operand keeps its alignment, which other iterations may need.
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
        let own = usize::from(operand.stores);
        let width = (operand.bytes as u64).next_power_of_two() as i64;
        let offset = operand.address.rem_euclid(width);
        if offset + operand.bytes > width || width > LINE {
            return None;
        }
        let at = (next[own] + width - 1) / width * width % LINE;
        next[own] = at + width;
        shifts.push(Some((LINE * bases[own]? + at + offset).wrapping_sub(operand.address)));
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

    fn build_from(hex: &str, register: u64) -> Option<OneLine> {
        let block = Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap();
        let code = Code::of_bytes(&block.bytes, tma::Core::default().facts()).unwrap();
        let values = Values { registers: [register; 16], ..Values::default() };
        one_line(&block, &code.effects, &values)
    }

    fn build(hex: &str) -> Option<OneLine> {
        build_from(hex, 0x1234_5600)
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
    fn accesses_keep_their_alignment() {
        // mov ax,[rsi]; mov bx,[rsi+0x41]: two bytes at an odd address may cross a line.
        assert!(build("668b06 668b5e41").is_none());
        // mov eax,[rsi]; mov ebx,[rsi+0x48]
        let made = build("8b06 8b5e48").unwrap();
        assert_eq!(texts(&made.variant), ["mov eax,[rsi]", "mov ebx,[rsi+4]"]);
    }

    #[test]
    fn what_cannot_be_moved_for_certain_is_left_alone() {
        for hex in [
            "488b06 488b5e08",       // in one line already
            "4801d8",                // no access
            "488b06 488b1d00100000", // mov rbx,[rip+0x1000]
            "488b06 64488b5e40",     // mov rbx,fs:[rsi+0x40]
            "488b463c 488b5e7c",     // across two lines each
        ] {
            assert!(build(hex).is_none(), "{hex}");
        }
        // A register that is overwritten before it is used.
        assert!(
            build_from("488b06 488b5e40", i64::MIN as u64).is_none_or(|m| m
                .variant
                .instructions
                .len()
                == 2)
        );
    }
}
