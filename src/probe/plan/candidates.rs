//! The instructions of a block that can be patched.

use super::site::{JUMP, Kind, Site, Then};
use crate::facts::{Block, Function};
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, RflagsBits};
use std::ops::Bound::Excluded;
use std::ops::Range;

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
        all.extend(pun(function, number, first));
    }
    all.sort_by_key(|site| (site.keeps_flags, site.kind, site.then.len(), site.next - site.at));
    all
}

fn site(block: &Block, number: usize, from: usize, to: usize, kind: Kind) -> Site {
    Site {
        block: number,
        at: block.instructions[from].ip(),
        next: block.instructions[to].next_ip(),
        kind,
        keeps_flags: block.live[from] & CHANGED != 0,
        then: Vec::new(),
        trampoline: None,
    }
}

/// A `call rel32` that is changed to go through the trampoline.
fn retarget(function: &Function, number: usize, at: usize) -> Option<Site> {
    let block = &function.blocks[number];
    let call = &block.instructions[at];
    let is_plain = call.code() == Code::Call_rel32_64 && call.len() as u64 == JUMP;
    let stays = is_free(function, call.ip()..call.next_ip());
    (is_plain && stays).then(|| site(block, number, at, at, Kind::Retarget))
}

/// One or more instructions from `first` on that are executed in the trampoline; also those of the
/// blocks after it, if they are entered only from there.
fn displaced(function: &Function, number: usize, first: usize) -> Option<Site> {
    let block = &function.blocks[number];
    let start = block.instructions[first].ip();
    let mut then = Vec::new();
    let (mut of, mut at) = (number, first);
    loop {
        let block = &function.blocks[of];
        let instruction = &block.instructions[at];
        if !can_move(instruction) {
            return None;
        }
        let end = instruction.next_ip();
        if end - start >= JUMP {
            let kind = if (of, at) == (number, first) { Kind::Single } else { Kind::Multi };
            let is_sure = kind == Kind::Single || function.is_complete;
            let found = is_sure && is_free(function, start..start + JUMP);
            let one = site(&function.blocks[number], number, first, first, kind);
            return found.then_some(Site { next: end, then, ..one });
        }
        at += 1;
        if at == block.instructions.len() {
            let next = function.blocks.get(of + 1)?;
            let falls = block.successors.contains(&(of + 1)) && next.start == block.end;
            if !falls || function.fixed.contains(&next.start) {
                return None;
            }
            let keeps_flags = next.live.first()? & CHANGED != 0;
            then.push(Then { block: of + 1, at: next.start, keeps_flags });
            (of, at) = (of + 1, 0);
        }
    }
}

/// A short instruction whose jump ends in the bytes that follow.
fn pun(function: &Function, number: usize, at: usize) -> Option<Site> {
    let block = &function.blocks[number];
    let one = &block.instructions[at];
    let is_short = (one.len() as u64) < JUMP && can_move(one);
    (is_short && is_free(function, one.ip()..one.next_ip()))
        .then(|| site(block, number, at, at, Kind::Pun))
}

/// Whether nothing leads or refers to these bytes after the first.
pub(super) fn is_free(function: &Function, range: Range<u64>) -> bool {
    function.fixed.range((Excluded(range.start), Excluded(range.end))).next().is_none()
}

/// Whether an instruction does the same elsewhere. A call would leave another return address; a
/// landing place of indirect jumps, a system call and an instruction that raises an exception are
/// where others look for them.
pub(super) fn can_move(instruction: &Instruction) -> bool {
    match instruction.flow_control() {
        FlowControl::Next => {
            !matches!(instruction.code(), Code::Endbr64 | Code::Endbr32 | Code::Hlt)
                && !instruction.is_privileged()
        }
        FlowControl::ConditionalBranch
        | FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::Return => !matches!(
            instruction.mnemonic(),
            Mnemonic::Iret | Mnemonic::Iretq | Mnemonic::Iretd | Mnemonic::Retf
        ),
        _ => false,
    }
}
