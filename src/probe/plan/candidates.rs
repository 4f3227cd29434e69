//! The instructions of a block that can be patched.

use super::site::{JUMP, Kind, Site};
use crate::facts::{Block, Function};
use iced_x86::{Code, FlowControl, Instruction, RflagsBits};
use std::ops::Bound::Excluded;

/// What `inc` changes.
const CHANGED: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;

/// All places of a count in a block, the cheapest first.
pub(super) fn candidates(function: &Function, number: usize) -> Vec<Site> {
    let block = &function.blocks[number];
    let mut all = Vec::new();
    for first in 0..block.instructions.len() {
        all.extend(retarget(function, number, first));
        all.extend(displaced(function, number, first));
    }
    all.sort_by_key(|site: &Site| (site.keeps_flags, site.kind, site.next - site.at));
    all
}

fn site(block: &Block, number: usize, from: usize, to: usize, kind: Kind) -> Site {
    Site {
        block: number,
        at: block.instructions[from].ip(),
        next: block.instructions[to].next_ip(),
        kind,
        keeps_flags: block.live[from] & CHANGED != 0,
        trampoline: None,
    }
}

/// A `call rel32` that is changed to go through the trampoline.
fn retarget(function: &Function, number: usize, at: usize) -> Option<Site> {
    let block = &function.blocks[number];
    let call = &block.instructions[at];
    let is_plain = call.code() == Code::Call_rel32_64 && call.len() as u64 == JUMP;
    let stays = is_free(function, call.ip(), call.next_ip());
    (is_plain && stays).then(|| site(block, number, at, at, Kind::Retarget))
}

/// One or more instructions from `first` on that are executed in the trampoline.
fn displaced(function: &Function, number: usize, first: usize) -> Option<Site> {
    let block = &function.blocks[number];
    let start = block.instructions[first].ip();
    for (last, instruction) in block.instructions.iter().enumerate().skip(first) {
        if !can_move(instruction) {
            break;
        }
        if instruction.next_ip() - start < JUMP {
            continue;
        }
        let kind = if first == last { Kind::Single } else { Kind::Multi };
        let is_sure = kind == Kind::Single || function.is_complete;
        if is_sure && is_free(function, start, start + JUMP) {
            return Some(site(block, number, first, last, kind));
        }
        break;
    }
    let one = &block.instructions[first];
    let is_short = (one.len() as u64) < JUMP && can_move(one);
    (is_short && is_free(function, start, one.next_ip()))
        .then(|| site(block, number, first, first, Kind::Pun))
}

/// Whether nothing leads or refers to the bytes between the two addresses.
fn is_free(function: &Function, start: u64, end: u64) -> bool {
    function.fixed.range((Excluded(start), Excluded(end))).next().is_none()
}

/// Whether an instruction does the same elsewhere. A call would leave another return address; a
/// landing place of indirect jumps, a system call and an instruction that raises an exception are
/// where others look for them.
fn can_move(instruction: &Instruction) -> bool {
    match instruction.flow_control() {
        FlowControl::Next => {
            !matches!(instruction.code(), Code::Endbr64 | Code::Endbr32 | Code::Hlt)
                && !instruction.is_privileged()
        }
        FlowControl::ConditionalBranch
        | FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch => true,
        _ => false,
    }
}
