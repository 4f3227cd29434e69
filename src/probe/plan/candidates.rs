//! Instructions of a block that can be patched.

use super::site::{JUMP, Kind, Site, Then};
use crate::facts::{Block, Function};
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, RflagsBits};
use std::ops::Range;

/// Flags that `inc` changes.
const CHANGED: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;

/// A place for the count of a block; the cheapest sorts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    keeps_flags: bool,
    pub kind: Kind,
    /// Following blocks that begin among the patched instructions.
    pub then: usize,
    length: u64,
    /// Index of the first patched instruction.
    first: usize,
}

/// Adds all places for the count of a block, the cheapest first.
pub(super) fn candidates(function: &Function, number: usize, all: &mut Vec<Candidate>) {
    let before = all.len();
    for first in 0..function.blocks[number].certain {
        all.extend(retarget(function, number, first));
        all.extend(displaced(function, number, first));
        all.extend(pun(function, number, first));
    }
    all[before..].sort_unstable();
}

impl Candidate {
    fn new(block: &Block, first: usize, kind: Kind) -> Self {
        let keeps_flags = block.live[first] & CHANGED != 0;
        let length = block.instructions[first].len() as u64;
        Self { keeps_flags, kind, then: 0, length, first }
    }

    /// The candidate as a site, without counts for `spare` blocks.
    pub fn site(&self, function: &Function, number: usize, spare: impl Fn(usize) -> bool) -> Site {
        let at = function.blocks[number].instructions[self.first].ip();
        let following = (number + 1..=number + self.then).filter(|block| !spare(*block));
        let then = following.map(|block| {
            let own = &function.blocks[block];
            let keeps_flags = own.live.first().is_none_or(|live| live & CHANGED != 0);
            Then { block, at: own.start, keeps_flags }
        });
        Site {
            block: number,
            at,
            next: at + self.length,
            kind: self.kind,
            keeps_flags: self.keeps_flags,
            then: then.collect(),
            trampoline: None,
        }
    }
}

/// A `call rel32` redirected through the trampoline.
fn retarget(function: &Function, number: usize, at: usize) -> Option<Candidate> {
    let block = &function.blocks[number];
    let call = &block.instructions[at];
    let is_plain = call.code() == Code::Call_rel32_64 && call.len() as u64 == JUMP;
    let stays = is_free(function, call.ip()..call.next_ip());
    (is_plain && stays).then(|| Candidate::new(block, at, Kind::Retarget))
}

/// Instructions from `first` on that are executed in the trampoline, including those of following
/// blocks that are entered only from there.
fn displaced(function: &Function, number: usize, first: usize) -> Option<Candidate> {
    let block = &function.blocks[number];
    let start = block.instructions[first].ip();
    let (mut last, mut at) = (number, first);
    loop {
        let block = &function.blocks[last];
        let instruction = &block.instructions[at];
        if !can_move(instruction) {
            return None;
        }
        let end = instruction.next_ip();
        if end - start >= JUMP {
            let kind = if (last, at) == (number, first) { Kind::Single } else { Kind::Multi };
            let is_sure = kind == Kind::Single || function.is_complete;
            let found = is_sure && is_free(function, start..start + JUMP);
            let one = Candidate::new(&function.blocks[number], first, kind);
            let (then, length) = (last - number, end - start);
            return found.then_some(Candidate { then, length, ..one });
        }
        at += 1;
        if at == block.instructions.len() {
            let next = function.blocks.get(last + 1)?;
            let falls = block.successors.contains(&(last + 1)) && next.start == block.end;
            if !falls || next.instructions.is_empty() || function.fixed.contains(&next.start) {
                return None;
            }
            (last, at) = (last + 1, 0);
        }
    }
}

/// A short instruction, whose jump ends in the bytes after it.
fn pun(function: &Function, number: usize, at: usize) -> Option<Candidate> {
    let block = &function.blocks[number];
    let one = &block.instructions[at];
    let is_short = (one.len() as u64) < JUMP && can_move(one);
    (is_short && is_free(function, one.ip()..one.next_ip()))
        .then(|| Candidate::new(block, at, Kind::Pun))
}

/// Whether nothing jumps or refers to these bytes, except the first.
pub(super) fn is_free(function: &Function, range: Range<u64>) -> bool {
    !function.fixed.divide(&range)
}

/// Whether an instruction has the same effect at another address. Not a call (its return address
/// differs), nor targets of indirect jumps, system calls and instructions that raise an exception,
/// whose addresses are seen by others.
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
