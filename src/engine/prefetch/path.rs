//! The path that most iterations of a counted loop take, as one block that can be measured.

use super::candidates::{Candidate, place};
use super::no_cycles::NoCycles;
use crate::loop_path::{body, decoded};
use crate::recorded_loads::code::Code;
use isa::flow::{Edge, Flow, Loop};
use report::documents::count::Count;
use std::collections::HashMap;

/// Code of an iteration.
pub(super) struct Iteration {
    /// Where the loop begins.
    pub start: u64,
    /// The code, without the jumps between its blocks.
    pub code: Vec<u8>,
    /// Where it is from, in words.
    pub source: String,
}

/// An iteration of the innermost loop around a load: the loop's block, or the blocks that counts of edges lead through.
pub(super) fn most_frequent(
    code: &mut [Code],
    counts: &Count,
    one: &Candidate,
) -> Result<Iteration, NoCycles> {
    if let Ok((start, code)) = &one.body {
        let source = "measured block".to_owned();
        return Ok(Iteration { start: *start, code: code.clone(), source });
    }
    let (code, at) = place(code, &one.load.0, one.load.1).ok_or(NoCycles::NoCode)?;
    let flow = code.flow(at).ok_or(NoCycles::NoCode)?;
    let innermost = flow.block_at(at.address).and_then(|number| flow.blocks[number].innermost);
    let own = innermost.and_then(|number| flow.loops.get(number)).ok_or(NoCycles::NoLoop)?;
    let path = path(&flow, own, &edges(counts, &one.load.0.0))?;
    let inst = |range: std::ops::Range<u64>| -> Vec<u8> {
        let inside = flow.instructions.iter().filter(|(at, _)| range.contains(at));
        inside.flat_map(|(_, inst)| inst.bytes.iter().copied()).collect()
    };
    let blocks = path.iter().map(|number| &flow.blocks[*number]);
    let parts: Vec<(u64, Vec<u8>)> =
        blocks.map(|block| (block.start, inst(block.start..block.end))).collect();
    let all = decoded(&parts)?;
    let mut lines: Vec<(u64, &isa::code::Inst)> = Vec::new();
    for (start, bytes) in &parts {
        let end = start + bytes.len() as u64;
        let mut own: Vec<_> = all.iter().filter(|(at, _)| (*start..end).contains(*at)).collect();
        own.sort_by_key(|(at, _)| **at);
        lines.extend(own.into_iter().map(|(at, inst)| (*at, inst)));
    }
    let start = flow.blocks[own.head].start;
    let source = format!(
        "measured block: the most frequent path of {} of {} blocks, without its jumps",
        path.len(),
        own.blocks.len()
    );
    Ok(Iteration { start, code: body(&lines, start)?, source })
}

/// The loop's blocks from its head on, by the edge that was taken most often.
fn path(flow: &Flow, own: &Loop, taken: &HashMap<(u64, u64), u64>) -> Result<Vec<usize>, NoCycles> {
    let (mut number, mut path) = (own.head, Vec::new());
    while path.len() <= own.blocks.len() {
        let block = &flow.blocks[number];
        path.push(number);
        let next = block.edges.iter().filter_map(|edge| match edge {
            Edge::Block(to) => Some(*to).filter(|to| own.blocks.contains(to)),
            Edge::Outside(_) => None,
        });
        let times = |to: &usize| taken.get(&(block.start, flow.blocks[*to].start)).copied();
        number = next.max_by_key(times).ok_or(NoCycles::Leaves)?;
        if number == own.head {
            return Ok(path);
        }
    }
    Err(NoCycles::Nested)
}

/// How often each edge of a module was taken.
fn edges(counts: &Count, module: &str) -> HashMap<(u64, u64), u64> {
    let own = counts.edges.iter().filter(|edge| edge.module == module);
    own.filter_map(|edge| Some(((edge.from.0, edge.to.0), edge.count?))).collect()
}
