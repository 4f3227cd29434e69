//! Variants of a block that differ from it in one respect.

use crate::filler::Filler;
use isa::code::Block;

/// A variant and how many iterations of the original block it holds.
pub struct Variant {
    pub block: Block,
    pub copies: usize,
}

/// Bytes of a filler: long enough that 64 bytes of code hold no more operations than an op cache
/// accepts for them.
const FILLER: usize = 5;

/// The block with `count` fillers spread evenly among its instructions, except between the last two, which may be
/// macro-fused.
pub fn padded(block: &Block, count: usize, filler: Filler) -> Option<Block> {
    let instructions = &block.instructions;
    let tail = if block.final_branch().is_some() { 2 } else { 0 };
    let places = instructions.len().saturating_sub(tail).max(1);
    let mut bytes = Vec::with_capacity(block.bytes.len() + FILLER * count);
    for (i, inst) in instructions.iter().enumerate() {
        if i < places {
            let fillers = (i + 1) * count / places - i * count / places;
            bytes.extend(std::iter::repeat_n(filler.bytes(FILLER), fillers).flatten());
        }
        bytes.extend(&inst.bytes);
    }
    Block::decode(&bytes).ok().filter(|b| b.instructions.len() == instructions.len() + count)
}

/// The block without the jump at its end; `None` if there is none, or nothing else.
pub fn body(block: &Block) -> Option<Block> {
    let jump = block.final_branch()?;
    Block::decode(&block.bytes[..jump.offset]).ok()
}

/// The block with `bytes` before it.
pub fn preceded(bytes: &[u8], block: &Block) -> Option<Block> {
    Block::decode(&[bytes, &block.bytes].concat()).ok()
}

/// The block without its instruction `index`; `None` if it is the only one.
pub fn without(block: &Block, index: usize) -> Option<Block> {
    let inst = block.instructions.get(index)?;
    let end = inst.offset + inst.bytes.len();
    let bytes = [&block.bytes[..inst.offset], &block.bytes[end..]].concat();
    Block::decode(&bytes).ok()
}

/// Nops that make issue slots the bound: 1.5 times `cycles` at `width` slots per cycle. `None` if that exceeds an
/// op cache.
pub fn filling_nops(cycles: f64, width: u32, instructions: usize) -> Option<usize> {
    const MAX_SLOTS: usize = 400;
    let slots = (1.5 * cycles * f64::from(width)).ceil();
    (slots.is_finite() && slots <= MAX_SLOTS as f64)
        .then(|| (slots as usize).saturating_sub(instructions).max(instructions / 2).max(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nops_are_spread_and_leave_a_fused_pair_alone() {
        let block = Block::decode(&isa::code::parse_hex("4801d8 4801d9 4839cf 72f5").unwrap());
        let padded = padded(&block.unwrap(), 4, Filler::Nop).unwrap();
        let texts: Vec<_> = padded
            .instructions
            .iter()
            .map(|i| i.text.split(' ').next().unwrap().to_owned())
            .collect();
        assert_eq!(texts, ["nop", "nop", "add", "nop", "nop", "add", "cmp", "jb"]);
    }

    #[test]
    fn as_many_nops_as_the_time_asks_for() {
        assert_eq!(filling_nops(3.0, 6, 3), Some(24));
        assert_eq!(filling_nops(0.25, 4, 1), Some(4));
        assert_eq!(filling_nops(100.0, 6, 3), None);
    }
}
