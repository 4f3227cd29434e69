//! Wishes → probes that see certain instructions: pure, from a function's facts and the room around its
//! module.
//!
//! A probe's jump may lie before the instruction that it is for: its trampoline executes everything from
//! there up to that instruction. So one probe serves all wishes of a block.

use super::bytes::Bytes;
use super::candidates::{can_move, is_free};
use super::room::Room;
use super::site::{JUMP, Kind};
use crate::facts::{Block, Function};
use std::ops::Range;

/// What is observed of an instruction, each time it is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// Whether a conditional jump is taken.
    Outcome,
    /// Where an indirect jump or call goes.
    Target,
    /// Where a load loads from.
    Address,
    /// What a load of so many bytes loads.
    Value {
        /// 1, 2, 4 or 8.
        width: u32,
    },
    /// What a load takes between fences, in ticks, of one in 1 to 2^`bits` executions, at random; in the
    /// upper half what a load from the first cache took right before.
    Latency {
        /// Bytes that it loads.
        width: u32,
        /// 1 to 14.
        bits: u8,
    },
    /// At the entry of a function: the bytes of the stack pointer in reverse, and in the lower 16 bits, which
    /// are 0 then, those of the return address.
    Entered,
    /// What general registers hold before the instruction, of as many executions as a budget allows that
    /// is filled up now and then.
    Registers {
        /// Bit n: the register with number n in encodings.
        mask: u16,
    },
}

impl What {
    /// How much code it needs, in multiples of that of a plain record.
    pub fn parts(self) -> usize {
        match self {
            What::Latency { .. } => 3,
            // 122 bytes, and at most 28 for each of them.
            What::Registers { mask } => 1 + (mask.count_ones() as usize).div_ceil(4),
            _ => 1,
        }
    }

    /// Whether it is seen before the instruction, which need not be executed in the trampoline.
    fn is_before(self) -> bool {
        matches!(self, What::Registers { .. } | What::Entered)
    }
}

/// An instruction, and what to observe of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wish {
    /// Its address (p_vaddr).
    pub at: u64,
    /// What is observed.
    pub what: What,
}

/// One probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observer {
    /// Address of the first instruction that the jump replaces.
    pub at: u64,
    /// Address after the last one.
    pub next: u64,
    /// Where the code goes on after the trampoline, which executes everything before that.
    pub until: u64,
    /// How it is patched.
    pub kind: Kind,
    /// Its wishes, by number, in order of address.
    pub wishes: Vec<usize>,
    /// Where its trampoline must lie (p_vaddr); anywhere near if not given.
    pub trampoline: Option<u64>,
}

/// The plan of a function.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Its probes.
    pub observers: Vec<Observer>,
    /// Wishes that are not granted, and why.
    pub refused: Vec<(usize, String)>,
}

/// Plans probes for all wishes. `length` bounds the bytes of a trampoline of so many parts
/// ([`What::parts`]) and instructions.
pub fn observe(
    function: &Function,
    wishes: &[Wish],
    room: &mut Room,
    length: impl Fn(usize, usize) -> u64,
) -> Observation {
    let mut code = Bytes::new(function);
    let mut found = Observation::default();
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); function.blocks.len()];
    for (number, wish) in wishes.iter().enumerate() {
        match block_of(function, wish.at) {
            Some(block) => open[block].push(number),
            None => found.refused.push((number, "no known instruction is there".to_owned())),
        }
    }
    open.iter_mut().for_each(|own| own.sort_by_key(|number| wishes[*number].at));
    let spans = |block: usize, open: &[Vec<usize>]| candidates(function, block, wishes, open);
    // Blocks that need the instructions of the next one come first.
    let needs_next = |block: &usize| spans(*block, &open).iter().all(|span| span.last > *block);
    let (first, rest): (Vec<usize>, Vec<usize>) =
        (0..open.len()).filter(|block| !open[*block].is_empty()).partition(needs_next);
    for block in first.into_iter().chain(rest) {
        if open[block].is_empty() {
            continue;
        }
        let taken = spans(block, &open).into_iter().find_map(|span| {
            let own: Vec<usize> = open[block..=span.last].concat();
            let parts = own.iter().map(|number| wishes[*number].what.parts()).sum();
            let most = length(parts, span.instructions);
            let trampoline = code.take(span.kind, span.at..span.next, (room, most), |_| true)?;
            let Span { at, next, until, kind, last, .. } = span;
            Some((last, Observer { at, next, until, kind, wishes: own, trampoline }))
        });
        match taken {
            Some((last, observer)) => {
                open[block..=last].iter_mut().for_each(Vec::clear);
                found.observers.push(observer);
            }
            None => {
                let why = "no jump fits before it in its block";
                found.refused.extend(open[block].drain(..).map(|n| (n, why.to_owned())));
            }
        }
    }
    found
}

/// The block with an instruction at this address, if it is certain to be code.
fn block_of(function: &Function, at: u64) -> Option<usize> {
    let block = function.blocks.partition_point(|b| b.start <= at).checked_sub(1)?;
    let found = &function.blocks[block];
    (found.is_reached && found.instructions.iter().any(|i| i.ip() == at)).then_some(block)
}

/// A way to observe a block.
struct Span {
    at: u64,
    next: u64,
    until: u64,
    kind: Kind,
    /// The last block of which something is executed in the trampoline.
    last: usize,
    /// How many instructions are.
    instructions: usize,
}

/// All ways to observe a block's wishes, the best first.
fn candidates(
    function: &Function,
    block: usize,
    wishes: &[Wish],
    open: &[Vec<usize>],
) -> Vec<Span> {
    let Some(first) = open[block].first().map(|number| wishes[*number].at) else {
        return Vec::new();
    };
    let own = &function.blocks[block];
    let starts = (0..own.instructions.len()).filter(|at| own.instructions[*at].ip() <= first);
    let mut all: Vec<Span> = starts
        .flat_map(|at| [false, true].map(|pun| span(function, (block, at), pun, wishes, open)))
        .flatten()
        .collect();
    all.sort_by_key(|span| (span.last, span.kind, span.instructions));
    all
}

/// The probe whose jump begins at an instruction.
fn span(
    function: &Function,
    (block, first): (usize, usize),
    pun: bool,
    wishes: &[Wish],
    open: &[Vec<usize>],
) -> Option<Span> {
    let start = function.blocks[block].instructions[first].ip();
    let length = function.blocks[block].instructions[first].len() as u64;
    let kind = match (pun, length < JUMP) {
        (true, true) => Kind::Pun,
        (true, false) => return None,
        (false, true) => Kind::Multi,
        (false, false) => Kind::Single,
    };
    if kind == Kind::Multi && !function.is_complete {
        return None;
    }
    let mut next = None;
    let (mut last, mut at, mut instructions) = (block, first, 0);
    loop {
        let of = &function.blocks[last];
        let wish = open[last].last().map(|number| wishes[*number]);
        if let Some(until) = end(of, at, wish, next) {
            let next = next?;
            let written = start..if kind == Kind::Pun { next } else { start + JUMP };
            let free = is_free(function, written);
            return free.then_some(Span { at: start, next, until, kind, last, instructions });
        }
        match of.instructions.get(at) {
            Some(instruction) if can_move(instruction) => {
                at += 1;
                instructions += 1;
                let end = instruction.next_ip();
                if next.is_none() && (kind == Kind::Pun || end - start >= JUMP) {
                    next = Some(end);
                }
            }
            Some(_) => return None,
            None => {
                let following = function.blocks.get(last + 1)?;
                let falls = of.successors.contains(&(last + 1)) && following.start == of.end;
                // Its own probe would never be reached.
                let is_taken =
                    wishes.iter().any(|w| (following.start..following.end).contains(&w.at))
                        && open[last + 1].is_empty();
                if !falls || is_taken || function.fixed.contains(&following.start) {
                    return None;
                }
                (last, at) = (last + 1, 0);
            }
        }
    }
}

/// Where the trampoline may end, if it may end before instruction `at`: after the last wish of the
/// block and what is written over. A call is not executed in the trampoline: it is seen before.
fn end(block: &Block, at: usize, wish: Option<Wish>, next: Option<u64>) -> Option<u64> {
    next?;
    let address = block.instructions.get(at).map_or(block.end, |i| i.ip());
    let Some(wish) = wish else { return Some(address) };
    let is_call = block.instructions.get(at).is_some_and(|i| i.is_call_near_indirect());
    let is_seen = wish.at < address || (wish.at == address && (is_call || wish.what.is_before()));
    is_seen.then_some(address)
}

/// The branches of a function whose outcome or target is not always the same.
pub fn branches(function: &Function) -> Vec<Wish> {
    let wish = |block: &Block| {
        let last = block.instructions.last()?;
        let what = match last {
            i if i.is_jcc_short_or_near() => What::Outcome,
            i if i.is_jmp_near_indirect() || i.is_call_near_indirect() => What::Target,
            _ => return None,
        };
        Some(Wish { at: last.ip(), what })
    };
    function.blocks.iter().filter(|block| block.is_reached).filter_map(wish).collect()
}

impl Observer {
    /// Addresses of the instructions that the trampoline executes.
    pub fn executed(&self) -> Range<u64> {
        self.at..self.until
    }
}
