//! Blocks too short for a jump: whether the block before can be used, and why there is no probe.

use super::no_place::NoPlace;
use super::site::JUMP;
use crate::facts::Function;

/// Whether a block is entered only by falling through from the one before it.
pub(super) fn follows(function: &Function, block: usize) -> bool {
    let Some(previous) = block.checked_sub(1) else { return false };
    let (own, before) = (&function.blocks[block], &function.blocks[previous]);
    let mut leading =
        (0..function.blocks.len()).filter(|b| function.blocks[*b].successors.contains(&block));
    function.is_complete
        && !own.is_entered
        && !function.fixed.contains(&own.start)
        && before.end == own.start
        && leading.next() == Some(previous)
        && leading.next().is_none()
}

/// Why no probe fits before an instruction of a block.
pub(super) fn refusal(function: &Function, block: usize, request: u64) -> NoPlace {
    let own = &function.blocks[block];
    let before = own.instructions.iter().filter(|i| i.ip() <= request);
    let inside = |start: u64| function.fixed.within(&(start + 1..start + JUMP)).first().copied();
    match before.filter_map(|i| inside(i.ip())).next_back() {
        _ if !function.is_complete => NoPlace::OneAtATime,
        Some(at) => NoPlace::MayLead(at),
        None => NoPlace::Follows,
    }
}
