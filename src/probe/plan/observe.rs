//! Requests → probes that observe instructions: pure, from a function's analysis and the room around its module.
//!
//! A probe's jump may be before the observed instruction: its trampoline executes everything in between. So one probe
//! serves all requests of a block.

use super::choose::{can_move, is_free};
use super::request::Request;
use super::room::{Bytes, Room};
use super::site::{JUMP, Kind, NoPlace};
use crate::facts::{Block, Function};
use std::ops::Range;

/// One probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observer {
    /// Address of the first instruction that the jump replaces.
    pub at: u64,
    /// Address after the last one.
    pub next: u64,
    /// Address at which the code continues after the trampoline, which executes everything before.
    pub until: u64,
    /// How it is patched.
    pub kind: Kind,
    /// Whether no flag is live before it.
    pub may_change_flags: bool,
    /// Indices of its requests, in order of address.
    pub requests: Vec<usize>,
    /// Address of its trampoline (p_vaddr); anywhere near if not given.
    pub trampoline: Option<u64>,
}

/// The plan of a function.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Its probes.
    pub observers: Vec<Observer>,
    /// Requests without a probe, and why.
    pub refused: Vec<(usize, NoPlace)>,
}

/// Plans probes for all requests. `length` gives the most bytes of a trampoline of so many parts
/// ([`super::What::parts`]) and instructions.
pub fn observe(
    function: &Function,
    requests: &[Request],
    room: &mut Room,
    length: impl Fn(usize, usize) -> u64,
) -> Observation {
    observe_with(function, requests, room, length, &|_| true)
}

/// As [`observe`], for code that has been running: every probe replaces one instruction, so that
/// interrupted or calling code continues at the start of an instruction or jump.
pub fn observe_live(
    function: &Function,
    requests: &[Request],
    room: &mut Room,
    length: impl Fn(usize, usize) -> u64,
) -> Observation {
    observe_with(function, requests, room, length, &|kind| kind != Kind::Multi)
}

fn observe_with(
    function: &Function,
    requests: &[Request],
    room: &mut Room,
    length: impl Fn(usize, usize) -> u64,
    is_allowed: &dyn Fn(Kind) -> bool,
) -> Observation {
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); function.blocks.len()];
    let mut nowhere = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        match block_of(function, request.at) {
            Some(block) => open[block].push(number),
            None => nowhere.push((number, NoPlace::Nowhere)),
        }
    }
    open.iter_mut().for_each(|own| own.sort_by_key(|number| requests[*number].at));
    let plan = |joined: &[usize], room: &mut Room| {
        let planning = Planning { function, requests, joined, is_allowed };
        planned(&planning, open.clone(), room, &length)
    };
    room.mark();
    let (mut found, failed) = plan(&[], room);
    // Blocks too short for a jump may be executed after the block before, if nothing else leads
    // there.
    let joined: Vec<usize> =
        failed.iter().copied().filter(|block| follows(function, *block)).collect();
    if !joined.is_empty() {
        room.give_back();
        let (again, _) = plan(&joined, room);
        if again.refused.len() < found.refused.len() {
            found = again;
        } else {
            room.give_back();
            (found, _) = plan(&[], room);
        }
    }
    found.refused.extend(nowhere);
    found
}

/// Probes for the requests of each block, and the blocks without a place for one.
fn planned(
    planning: &Planning,
    mut open: Vec<Vec<usize>>,
    room: &mut Room,
    length: &impl Fn(usize, usize) -> u64,
) -> (Observation, Vec<usize>) {
    let mut code = Bytes::new(planning.function);
    let (mut found, mut failed) = (Observation::default(), Vec::new());
    let spans = |block: usize, open: &[Vec<usize>]| candidates(planning, block, open);
    // Blocks that need instructions of the next block come first.
    let needs_next = |block: &usize| spans(*block, &open).iter().all(|span| span.last > *block);
    let has_request =
        |block: &usize| !open[*block].is_empty() || planning.joined.contains(&(block + 1));
    let (first, rest): (Vec<usize>, Vec<usize>) =
        (0..open.len()).filter(has_request).partition(needs_next);
    for block in first.into_iter().chain(rest) {
        if open[block].is_empty() && !planning.joined.contains(&(block + 1)) {
            continue;
        }
        let all = spans(block, &open);
        let all =
            [false, true].into_iter().flat_map(|is_wide| all.iter().map(move |s| (is_wide, s)));
        let taken = all.into_iter().find_map(|(is_wide, span)| {
            let own: Vec<usize> = open[block..=span.last].concat();
            let parts = own.iter().map(|number| planning.requests[*number].what.parts()).sum();
            let most = length(parts, span.instructions);
            room.widen(is_wide);
            let taken = code.take(span.kind, span.at..span.next, room, most, |_| true);
            room.widen(false);
            let trampoline = taken?;
            let Span { at, next, until, kind, last, .. } = *span;
            let may_change_flags = may_change_flags(planning.function, at);
            Some((
                last,
                Observer { at, next, until, kind, may_change_flags, requests: own, trampoline },
            ))
        });
        match taken {
            Some((last, observer)) => {
                open[block..=last].iter_mut().for_each(Vec::clear);
                found.observers.push(observer);
            }
            None if open[block].is_empty() => {}
            None => {
                failed.push(block);
                let why = refusal(planning.function, block, planning.requests[open[block][0]].at);
                found.refused.extend(open[block].drain(..).map(|n| (n, why.clone())));
            }
        }
    }
    (found, failed)
}

/// Whether no flag is live before an instruction.
fn may_change_flags(function: &Function, at: u64) -> bool {
    let block = block_of(function, at).map(|number| &function.blocks[number]);
    let live = block.and_then(|block| {
        let index = block.instructions.iter().position(|i| i.ip() == at)?;
        block.live.get(index)
    });
    live.is_some_and(|live| *live == 0)
}

/// The block with an instruction at this address, if it is certainly code.
fn block_of(function: &Function, at: u64) -> Option<usize> {
    let block = function.blocks.partition_point(|b| b.start <= at).checked_sub(1)?;
    let found = &function.blocks[block];
    (found.is_reached && found.instructions.iter().any(|i| i.ip() == at)).then_some(block)
}

impl Observer {
    /// Addresses of the instructions that the trampoline executes.
    pub fn executed(&self) -> Range<u64> {
        self.at..self.until
    }
}

/// Input of a plan.
pub(super) struct Planning<'a> {
    pub function: &'a Function,
    pub requests: &'a [Request],
    /// Blocks executed in the trampoline of the one before.
    pub joined: &'a [usize],
    /// Whether a kind of probe is allowed.
    pub is_allowed: &'a dyn Fn(Kind) -> bool,
}

/// A possible probe for a block.
pub(super) struct Span {
    pub at: u64,
    pub next: u64,
    pub until: u64,
    pub kind: Kind,
    /// The last block with instructions in the trampoline.
    pub last: usize,
    /// Number of instructions in the trampoline.
    pub instructions: usize,
}

/// All possible probes for a block's requests, the best first.
pub(super) fn candidates(planning: &Planning, block: usize, open: &[Vec<usize>]) -> Vec<Span> {
    let first = open[block].first().map(|number| planning.requests[*number].at);
    let Some(own) = planning.function.blocks.get(block) else { return Vec::new() };
    let first = first.unwrap_or(own.end);
    let starts = (0..own.instructions.len()).filter(|at| own.instructions[*at].ip() <= first);
    let mut all: Vec<Span> = starts
        .flat_map(|at| [false, true].map(|pun| span(planning, block, at, pun, open)))
        .flatten()
        .filter(|span| (planning.is_allowed)(span.kind))
        .collect();
    all.sort_by_key(|span| (span.last, span.kind, span.instructions));
    all
}

/// The probe whose jump begins at an instruction.
fn span(
    planning: &Planning,
    block: usize,
    first: usize,
    pun: bool,
    open: &[Vec<usize>],
) -> Option<Span> {
    let Planning { function, requests, joined, .. } = *planning;
    let start = function.blocks[block].instructions[first].ip();
    let length = function.blocks[block].instructions[first].len() as u64;
    let kind = match (pun, length < JUMP) {
        (true, true) => Kind::Pun(0),
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
        let current = &function.blocks[last];
        let request = open[last].last().map(|number| requests[*number]);
        let continues = joined.contains(&(last + 1)) && !open[last + 1].is_empty();
        if let Some(until) = end(current, at, request, next).filter(|_| !continues) {
            let next = next?;
            let written = start..if kind.is_pun() { next } else { start + JUMP };
            let kind = if kind == Kind::Multi && instructions == 1 { Kind::Single } else { kind };
            return is_free(function, written).then_some(Span {
                at: start,
                next,
                until,
                kind,
                last,
                instructions,
            });
        }
        match current.instructions.get(at) {
            Some(instruction) if can_move(instruction) => {
                at += 1;
                instructions += 1;
                let end = instruction.next_ip();
                if next.is_none() && (kind.is_pun() || end - start >= JUMP) {
                    next = Some(end);
                }
            }
            Some(_) => return None,
            None if next.is_none()
                && kind == Kind::Multi
                && current.end + function.padding_after(last) >= start + JUMP =>
            {
                // The jump ends in bytes that nothing executes.
                next = Some(start + JUMP);
            }
            None => {
                let following = function.blocks.get(last + 1)?;
                let falls =
                    current.successors.contains(&(last + 1)) && following.start == current.end;
                // Its own probe would be bypassed.
                let is_taken =
                    requests.iter().any(|w| (following.start..following.end).contains(&w.at))
                        && open[last + 1].is_empty();
                if !falls || is_taken || function.fixed.contains(&following.start) {
                    return None;
                }
                (last, at) = (last + 1, 0);
            }
        }
    }
}

/// The end of the trampoline, if it may end before instruction `at`: after the last request and all
/// replaced bytes. A call is not executed in the trampoline but observed before.
fn end(block: &Block, at: usize, request: Option<Request>, next: Option<u64>) -> Option<u64> {
    next?;
    let address = block.instructions.get(at).map_or(block.end, |i| i.ip());
    let Some(request) = request else { return Some(address) };
    let is_call = block.instructions.get(at).is_some_and(|i| i.is_call_near_indirect());
    let is_seen =
        request.at < address || (request.at == address && (is_call || request.what.is_before()));
    is_seen.then_some(address)
}

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
