//! Wishes → probes that see certain instructions: pure, from a function's facts and the room around its
//! module.
//!
//! A probe's jump may lie before the instruction that it is for: its trampoline executes everything from
//! there up to that instruction. So one probe serves all wishes of a block.

use super::bytes::Bytes;
use super::candidates::{can_move, is_free};
use super::follows::{follows, refusal};
use super::room::Room;
use super::site::{JUMP, Kind};
use crate::facts::{Block, Call, Function};
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
    /// At the entry of a function that gives memory: each of its calls, in a log of its own. Of several wishes of an
    /// instruction it is the first.
    Allocated {
        /// Which function it is.
        call: Call,
    },
    /// Each execution of a marker, in a log of its own.
    Marked {
        /// The number (in encodings) of the register with its argument.
        argument: Option<u8>,
        /// Where the number of the process is: an address in it.
        process: u64,
    },
}

impl What {
    /// How much code it needs, in multiples of that of a plain record.
    pub fn parts(self) -> usize {
        match self {
            What::Latency { .. } => 3,
            // 122 bytes, and at most 28 for each of them.
            What::Registers { mask } => 1 + (mask.count_ones() as usize).div_ceil(4),
            What::Allocated { .. } => 5,
            What::Marked { .. } => 3,
            _ => 1,
        }
    }

    /// Whether it is seen before the instruction, which need not be executed in the trampoline.
    fn is_before(self) -> bool {
        matches!(
            self,
            What::Registers { .. } | What::Entered | What::Allocated { .. } | What::Marked { .. }
        )
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
    observe_with(function, wishes, room, length, &|_| true)
}

/// The same for code that has been running: every probe replaces one instruction, so that what was
/// interrupted or called before comes back to the beginning of an instruction or of a jump.
pub fn observe_live(
    function: &Function,
    wishes: &[Wish],
    room: &mut Room,
    length: impl Fn(usize, usize) -> u64,
) -> Observation {
    observe_with(function, wishes, room, length, &|kind| kind != Kind::Multi)
}

fn observe_with(
    function: &Function,
    wishes: &[Wish],
    room: &mut Room,
    length: impl Fn(usize, usize) -> u64,
    is_allowed: &dyn Fn(Kind) -> bool,
) -> Observation {
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); function.blocks.len()];
    let mut nowhere = Vec::new();
    for (number, wish) in wishes.iter().enumerate() {
        match block_of(function, wish.at) {
            Some(block) => open[block].push(number),
            None => nowhere.push((number, "no known instruction is there".to_owned())),
        }
    }
    open.iter_mut().for_each(|own| own.sort_by_key(|number| wishes[*number].at));
    let plan = |joined: &[usize], room: &mut Room| {
        let ask = Ask { function, wishes, joined, is_allowed };
        planned(&ask, open.clone(), room, &length)
    };
    let mut own = room.clone();
    let (mut found, failed) = plan(&[], &mut own);
    // What no jump fits into may be executed after the block before, if nothing else leads there.
    let joined: Vec<usize> =
        failed.iter().copied().filter(|block| follows(function, *block)).collect();
    if !joined.is_empty() {
        let mut other = room.clone();
        let (again, _) = plan(&joined, &mut other);
        if again.refused.len() < found.refused.len() {
            (found, own) = (again, other);
        }
    }
    *room = own;
    found.refused.extend(nowhere);
    found
}

/// What is to be planned.
struct Ask<'a> {
    function: &'a Function,
    wishes: &'a [Wish],
    /// Blocks that are executed after the one before.
    joined: &'a [usize],
    /// Kinds of probes that may be taken.
    is_allowed: &'a dyn Fn(Kind) -> bool,
}

/// Probes for the wishes of each block, and the blocks that none fits into.
fn planned(
    ask: &Ask,
    mut open: Vec<Vec<usize>>,
    room: &mut Room,
    length: &impl Fn(usize, usize) -> u64,
) -> (Observation, Vec<usize>) {
    let mut code = Bytes::new(ask.function);
    let (mut found, mut failed) = (Observation::default(), Vec::new());
    let spans = |block: usize, open: &[Vec<usize>]| candidates(ask, block, open);
    // Blocks that need the instructions of the next one come first.
    let needs_next = |block: &usize| spans(*block, &open).iter().all(|span| span.last > *block);
    let has_wish = |block: &usize| !open[*block].is_empty() || ask.joined.contains(&(block + 1));
    let (first, rest): (Vec<usize>, Vec<usize>) =
        (0..open.len()).filter(has_wish).partition(needs_next);
    for block in first.into_iter().chain(rest) {
        if open[block].is_empty() && !ask.joined.contains(&(block + 1)) {
            continue;
        }
        let all = spans(block, &open);
        let all =
            [false, true].into_iter().flat_map(|is_wide| all.iter().map(move |s| (is_wide, s)));
        let taken = all.into_iter().find_map(|(is_wide, span)| {
            let own: Vec<usize> = open[block..=span.last].concat();
            let parts = own.iter().map(|number| ask.wishes[*number].what.parts()).sum();
            let most = length(parts, span.instructions);
            room.widen(is_wide);
            let taken = code.take(span.kind, span.at..span.next, (room, most), |_| true);
            room.widen(false);
            let trampoline = taken?;
            let Span { at, next, until, kind, last, .. } = *span;
            Some((last, Observer { at, next, until, kind, wishes: own, trampoline }))
        });
        match taken {
            Some((last, observer)) => {
                open[block..=last].iter_mut().for_each(Vec::clear);
                found.observers.push(observer);
            }
            None if open[block].is_empty() => {}
            None => {
                failed.push(block);
                let why = refusal(ask.function, block, ask.wishes[open[block][0]].at);
                found.refused.extend(open[block].drain(..).map(|n| (n, why.clone())));
            }
        }
    }
    (found, failed)
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
fn candidates(ask: &Ask, block: usize, open: &[Vec<usize>]) -> Vec<Span> {
    let first = open[block].first().map(|number| ask.wishes[*number].at);
    let Some(own) = ask.function.blocks.get(block) else { return Vec::new() };
    let first = first.unwrap_or(own.end);
    let starts = (0..own.instructions.len()).filter(|at| own.instructions[*at].ip() <= first);
    let mut all: Vec<Span> = starts
        .flat_map(|at| [false, true].map(|pun| span(ask, (block, at), pun, open)))
        .flatten()
        .filter(|span| (ask.is_allowed)(span.kind))
        .collect();
    all.sort_by_key(|span| (span.last, span.kind, span.instructions));
    all
}

/// The probe whose jump begins at an instruction.
fn span(ask: &Ask, (block, first): (usize, usize), pun: bool, open: &[Vec<usize>]) -> Option<Span> {
    let Ask { function, wishes, joined, .. } = *ask;
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
        let goes_on = joined.contains(&(last + 1)) && !open[last + 1].is_empty();
        if let Some(until) = end(of, at, wish, next).filter(|_| !goes_on) {
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
