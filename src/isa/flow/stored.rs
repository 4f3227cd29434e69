//! A control-flow graph from its parts, as another process stored them: the code need not be here.

use super::graph::{BasicBlock, Edge, Flow, Loop};
use crate::code::InstBuilder;
use iced_x86::{Decoder, DecoderOptions};

/// Most bytes of a block: no code is longer, and counting a block's lines stays bounded.
const LONGEST: u64 = 1 << 20;

/// The graph of these blocks and loops, whose code is runs of bytes at addresses. `None` if they are inconsistent:
/// blocks out of order, indices of missing blocks or loops, bytes that do not decode.
pub fn stored(blocks: Vec<BasicBlock>, loops: Vec<Loop>, code: &[(u64, Vec<u8>)]) -> Option<Flow> {
    let (n, of_loops) = (blocks.len(), loops.len());
    let is_sound = |block: &BasicBlock| {
        let leads = |edge: &Edge| !matches!(edge, Edge::Block(to) if *to >= n);
        block.start < block.end
            && block.end - block.start <= LONGEST
            && block.edges.iter().all(leads)
            && block.innermost.is_none_or(|of| of < of_loops)
    };
    let in_order = blocks.windows(2).all(|two| two[0].start < two[1].start);
    let is_loop = |one: &Loop| {
        let all = one.back_edges.iter().chain(&one.blocks);
        one.head < n && all.into_iter().all(|block| *block < n)
    };
    if !in_order || !blocks.iter().all(is_sound) || !loops.iter().all(is_loop) {
        return None;
    }
    let start = blocks.first().map_or(0, |block| block.start);
    let (mut builder, mut instructions) = (InstBuilder::default(), Vec::new());
    for (at, bytes) in code {
        at.checked_add(bytes.len() as u64)?;
        let mut decoder = Decoder::with_ip(64, bytes, *at, DecoderOptions::NONE);
        while decoder.can_decode() {
            let from = decoder.position();
            let decoded = decoder.decode();
            if decoded.is_invalid() {
                return None;
            }
            let offset = usize::try_from(decoded.ip().checked_sub(start)?).ok()?;
            let own = bytes.get(from..decoder.position())?;
            instructions.push((decoded.ip(), builder.inst(decoded, own, offset)));
        }
    }
    let sorted = instructions.windows(2).all(|two| two[0].0 < two[1].0);
    sorted.then(|| Flow { blocks, loops, instructions, ..Flow::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `dec eax; jne` back to itself: one block that is a loop.
    #[test]
    fn only_what_belongs_together_is_a_graph() {
        let block = || BasicBlock {
            start: 0x10,
            end: 0x14,
            edges: vec![Edge::Block(0), Edge::Outside(0x14)],
            innermost: Some(0),
            ..BasicBlock::default()
        };
        let around = || Loop { head: 0, back_edges: vec![0], blocks: vec![0], ..Loop::default() };
        let code = [(0x10, vec![0xff, 0xc8, 0x75, 0xfc])];
        let flow = stored(vec![block()], vec![around()], &code).unwrap();
        let texts: Vec<&str> = flow.instructions.iter().map(|(_, one)| &*one.text).collect();
        assert_eq!(texts, ["dec eax", "jne short 0x10"]);
        assert!(stored(vec![block()], vec![], &code).is_none(), "its loop is not there");
        let other = Loop { head: 1, ..around() };
        assert!(stored(vec![block()], vec![other], &code).is_none());
        let long = BasicBlock { end: u64::MAX, ..block() };
        assert!(stored(vec![long], vec![around()], &code).is_none());
        assert!(stored(vec![block(), block()], vec![around()], &code).is_none(), "not in order");
        assert!(stored(vec![block()], vec![around()], &[(u64::MAX, vec![0x90; 4])]).is_none());
    }
}
