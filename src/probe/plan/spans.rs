//! Possible probes for the requests of a block: the instruction replaced by a jump, and the code
//! that the trampoline executes.

use super::candidates::{can_move, is_free};
use super::request::Request;
use super::site::{JUMP, Kind};
use crate::facts::{Block, Function};

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
        let current = &function.blocks[last];
        let request = open[last].last().map(|number| requests[*number]);
        let continues = joined.contains(&(last + 1)) && !open[last + 1].is_empty();
        if let Some(until) = end(current, at, request, next).filter(|_| !continues) {
            let next = next?;
            let written = start..if kind == Kind::Pun { next } else { start + JUMP };
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
                if next.is_none() && (kind == Kind::Pun || end - start >= JUMP) {
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
