//! A function's code with its samples and entries → pieces whose time is analysed: loops without calls (of outer loops
//! what is not in inner ones; without code that never runs) with more than one iteration an entry, blocks with enough samples, and the rest together.

use super::further::{Counted, Uncounted};
use crate::hot::hottest::Hot;
use iced_x86::{FlowControl, OpKind, Register};
use isa::deps::memory::Settings;
use isa::deps::{self, Analyser, Window, critical_path};
use isa::flow::{Edge, Flow, Loop};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use tma::Core;

/// Fewest samples of a block that is analysed on its own: with fewer its share is only known within a half.
const SAMPLES: u64 = 16;

/// Share of an outer loop's iterations whose paths must be known to analyse it as a whole.
const FOLLOWED: f64 = 0.5;

/// Fewest iterations an entry of a loop: with fewer it is rather code in a row, and analysed block by block.
const TRIPS: f64 = 2.0;

/// Evidence of a function, by block.
pub(super) struct Seen {
    pub samples: Vec<u64>,
    pub entries: Vec<Result<u64, Uncounted>>,
    /// Cycles of its longest path of dependencies.
    pub latency: Vec<f64>,
}

/// A function with its counts.
pub(super) struct Function {
    /// Its number among the hot functions.
    pub number: usize,
    /// Path of its file.
    pub module: String,
    pub flow: Arc<Flow>,
    /// By block.
    pub samples: Vec<u64>,
    /// By block.
    pub entries: Vec<Result<u64, Uncounted>>,
    /// By block: cycles of its longest path of dependencies, if it has samples.
    pub latency: Vec<f64>,
    pub pieces: Vec<Piece>,
    /// Whether it is a linkage stub, whose jump is always predicted.
    pub is_stub: bool,
}

/// The kind of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A loop of `Flow::loops`.
    Loop(usize),
    Block,
    /// Blocks with few samples.
    Rest,
}

/// Blocks whose time is analysed together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub kind: Kind,
    pub blocks: Vec<usize>,
    pub samples: u64,
    /// Executions: of a loop its iterations; of the rest 1.
    pub entries: f64,
    /// How often a loop is entered from outside.
    pub entered: Option<f64>,
    /// The paths through a loop.
    pub paths: Vec<Path>,
}

/// A piece: its file and first address.
pub(super) type Key = (String, u64);

/// A piece in its function.
#[derive(Clone, Copy)]
pub(super) struct PieceOf<'a> {
    pub function: &'a Function,
    pub piece: &'a Piece,
}

impl PieceOf<'_> {
    /// Whether there are divisions or roots, whose time depends on their operands.
    pub fn divides(self) -> bool {
        let mut all = self.piece.blocks.iter().flat_map(|block| self.function.instructions(*block));
        all.any(|(_, inst)| inst.divides())
    }

    /// Its file and first address.
    pub fn key(self) -> Key {
        (self.function.module.clone(), self.start())
    }

    /// The first address of its first block; of a loop of its head.
    pub fn start(self) -> u64 {
        let head = match self.piece.kind {
            Kind::Loop(number) => self.function.flow.loops[number].head,
            _ => self.piece.blocks[0],
        };
        self.function.range(head).start
    }
}

impl Piece {
    /// Whether a loop has few iterations an entry.
    fn is_left_at_once(&self) -> bool {
        self.entered.is_some_and(|entered| self.entries < TRIPS * entered)
    }
}

impl Function {
    /// Whether a block loads or stores anything, the stack of calls aside.
    pub fn has_access(&self, block: usize) -> bool {
        self.instructions(block).iter().any(|(_, inst)| {
            let decoded = &inst.decoded;
            let mut kinds = (0..decoded.op_count()).map(|number| decoded.op_kind(number));
            let is_named = decoded.is_string_instruction() || kinds.any(|k| k == OpKind::Memory);
            is_named && inst.touches_memory()
        })
    }

    /// Whether a block stores to memory that other threads may know: not to its own stack.
    pub fn stores(&self, block: usize) -> bool {
        self.instructions(block).iter().any(|(_, inst)| {
            let decoded = &inst.decoded;
            let mut kinds = (0..decoded.op_count()).map(|number| decoded.op_kind(number));
            let is_named = kinds.any(|kind| kind == OpKind::Memory);
            is_named && decoded.memory_base() != Register::RSP && inst.writes_memory()
        })
    }

    /// From a hot function and its control flow.
    pub fn of(number: usize, hot: &Hot, flow: Arc<Flow>, counted: &Counted) -> Self {
        let module = hot.path.display().to_string();
        let mut samples = vec![0; flow.blocks.len()];
        for (at, some) in &hot.blocks {
            if let Some(block) = flow.block_at(*at) {
                samples[block] += some;
            }
        }
        let entries =
            flow.blocks.iter().map(|block| counted.entries(&module, block.start)).collect();
        let seen = Seen { samples, entries, latency: Vec::new() };
        Self::of_flow(number, module, flow, seen, counted)
    }

    /// From the control flow of a file, with the samples, entries and latencies of its blocks.
    pub fn of_flow(
        number: usize,
        module: String,
        flow: Arc<Flow>,
        seen: Seen,
        counted: &Counted,
    ) -> Self {
        let Seen { samples, entries, latency } = seen;
        let pieces = Vec::new();
        let mut function =
            Self { number, module, flow, samples, entries, latency, pieces, is_stub: false };
        function.pieces = function.find_pieces(counted);
        function
    }

    /// Enters how often a block was executed that has no count.
    pub fn enter(&mut self, block: usize, entries: u64, counted: &Counted) {
        self.entries[block] = Ok(entries);
        self.pieces = self.find_pieces(counted);
    }

    /// Its pieces.
    pub fn pieces(&self) -> impl Iterator<Item = PieceOf<'_>> {
        self.pieces.iter().map(|piece| PieceOf { function: self, piece })
    }

    /// Its first address.
    pub fn start(&self) -> Option<u64> {
        self.flow.blocks.first().map(|block| block.start)
    }

    /// The addresses of a block.
    pub fn range(&self, block: usize) -> Range<u64> {
        self.flow.blocks[block].start..self.flow.blocks[block].end
    }

    /// Whether it has blocks that no known jump reaches, as its own unknown ones may.
    pub fn has_unknown_jumps_inside(&self) -> bool {
        let edges = self.flow.blocks.iter().flat_map(|block| &block.edges);
        let reached: HashSet<usize> = edges
            .filter_map(|edge| match edge {
                Edge::Block(to) => Some(*to),
                Edge::Outside(_) => None,
            })
            .collect();
        (1..self.flow.blocks.len())
            .any(|block| !reached.contains(&block) && self.executed(block) > 0.0)
    }

    /// Executions of a block, 0 where they are not known.
    pub fn executed(&self, block: usize) -> f64 {
        self.entries[block].as_ref().map_or(0.0, |count| *count as f64)
    }

    /// The instructions of a block with their addresses.
    pub fn instructions(&self, block: usize) -> &[(u64, isa::code::Inst)] {
        let Range { start, end } = self.range(block);
        let all = &self.flow.instructions;
        let from = all.partition_point(|(at, _)| *at < start);
        let to = all.partition_point(|(at, _)| *at < end);
        &all[from..to]
    }

    /// The bytes of its instructions.
    pub fn bytes(&self, block: usize) -> Vec<u8> {
        self.instructions(block).iter().flat_map(|(_, inst)| inst.bytes.iter().copied()).collect()
    }

    /// Cycles that instructions of these blocks can wait for each other, in all of their executions.
    pub fn waits(&self, blocks: &[usize]) -> f64 {
        let of = |block: &usize| self.executed(*block) * self.latency.get(*block).unwrap_or(&0.0);
        blocks.iter().map(of).sum()
    }

    /// Finds the longest paths of dependencies in blocks with samples.
    pub fn find_latency(&mut self, analyser: &mut Analyser, core: &Core) {
        let of = |block: usize| match self.samples[block] {
            0 => 0.0,
            _ => longest(&self.bytes(block), analyser, core),
        };
        self.latency = (0..self.flow.blocks.len()).map(of).collect();
    }

    fn find_pieces(&self, counted: &Counted) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (number, one) in self.flow.loops.iter().enumerate() {
            let own: Vec<usize> = self.own(number).collect();
            let samples: u64 = own.iter().map(|block| self.samples[*block]).sum();
            if samples < SAMPLES || own.iter().any(|block| self.calls(*block)) {
                continue;
            }
            let back_edges = one.back_edges.iter().copied().filter(|block| self.runs(*block));
            let of = Loop { blocks: own, back_edges: back_edges.collect(), ..one.clone() };
            let piece = self.piece_of(number, &of, samples, counted);
            // Most iterations of an outer loop must not enter inner ones.
            let followed: f64 = piece.paths.iter().map(|path| path.share).sum();
            let is_innermost = self.is_innermost(&piece, one) && !piece.paths.is_empty();
            if (is_innermost || followed >= FOLLOWED) && !piece.is_left_at_once() {
                pieces.push(piece);
            }
        }
        let whole: Vec<usize> = pieces.iter().flat_map(|piece| piece.blocks.clone()).collect();
        let (mut rest, mut left) = (Vec::new(), 0);
        let (mut uncounted, mut of_uncounted) = (Vec::new(), 0);
        for block in (0..self.flow.blocks.len()).filter(|block| !whole.contains(block)) {
            if self.samples[block] > 0 && self.entries[block].is_err() {
                of_uncounted += self.samples[block];
                uncounted.push(block);
            } else if self.samples[block] >= SAMPLES {
                pieces.push(Piece {
                    kind: Kind::Block,
                    blocks: vec![block],
                    samples: self.samples[block],
                    entries: self.executed(block),
                    entered: None,
                    paths: Vec::new(),
                });
            } else if self.samples[block] > 0 || self.executed(block) > 0.0 {
                left += self.samples[block];
                rest.push(block);
            }
        }
        for (blocks, samples) in [(rest, left), (uncounted, of_uncounted)] {
            if samples > 0 {
                let (kind, entered, paths) = (Kind::Rest, None, Vec::new());
                pieces.push(Piece { kind, blocks, samples, entries: 1.0, entered, paths });
            }
        }
        pieces
    }

    /// The blocks of a loop that run and are in no loop within it: what handles errors that do not happen, say, is none
    /// of it.
    fn own(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let blocks = self.flow.loops[number].blocks.iter().copied();
        let is_own = move |block: &usize| self.flow.blocks[*block].innermost == Some(number);
        blocks.filter(move |block| is_own(block) && self.runs(*block))
    }

    /// Whether a block was executed, as far as known.
    fn runs(&self, block: usize) -> bool {
        self.samples[block] > 0 || self.entries[block] != Ok(0)
    }

    /// [`Self::runs`] of a block that may not be there.
    pub fn may_run(&self, block: usize) -> bool {
        block < self.entries.len() && self.runs(block)
    }

    /// Whether a piece has all of a loop that runs.
    pub fn is_innermost(&self, piece: &Piece, of: &Loop) -> bool {
        piece.blocks.len() == of.blocks.iter().filter(|block| self.runs(**block)).count()
    }

    fn piece_of(&self, number: usize, one: &Loop, samples: u64, counted: &Counted) -> Piece {
        let start = |block: usize| self.flow.blocks[block].start;
        let taken = |from: usize, to: usize| counted.edge(&self.module, start(from), start(to));
        let share = |from: usize, to: usize| match self.executed(from) {
            all if all > 0.0 => match taken(from, to) {
                Some(count) => count as f64 / all,
                // Uncounted edges are taken to be equally frequent.
                None => 1.0 / self.flow.blocks[from].edges.len().max(1) as f64,
            },
            _ => 0.0,
        };
        let back: Option<u64> = one.back_edges.iter().map(|from| taken(*from, one.head)).sum();
        let entries = self.executed(one.head);
        Piece {
            kind: Kind::Loop(number),
            blocks: one.blocks.clone(),
            samples,
            entries,
            entered: back.map(|back| (entries - back as f64).max(0.0)),
            paths: paths(&self.flow, one, &share),
        }
    }

    fn calls(&self, block: usize) -> bool {
        let last = self.instructions(block).last().map(|(_, inst)| inst.decoded.flow_control());
        matches!(last, Some(FlowControl::Call | FlowControl::IndirectCall | FlowControl::Interrupt))
            || self.flow.blocks[block].edges.iter().any(|edge| matches!(edge, Edge::Outside(_)))
    }
}

/// Most paths of a loop.
const MOST: usize = 3;
/// Less frequent paths are not followed.
const LEAST: f64 = 0.05;

/// Most steps from block to block in all: each of the paths above is of a twentieth of the iterations at least.
const STEPS: usize = 10_000;

/// A path from the loop's head back to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    /// Its blocks, in order.
    pub blocks: Vec<usize>,
    /// Share of the iterations that take it, if branches do not depend on one another.
    pub share: f64,
}

/// The most frequent paths, most frequent first. `share` is that of a block's executions that go on to another.
fn paths(flow: &Flow, of: &Loop, share: &dyn Fn(usize, usize) -> f64) -> Vec<Path> {
    let mut found: Vec<Path> = Vec::new();
    let mut open = vec![Path { blocks: vec![of.head], share: 1.0 }];
    // Shares of a saved graph may be anything.
    for _ in 0..STEPS {
        let Some(path) = take_most(&mut open) else { break };
        if found.len() >= MOST || path.share < LEAST {
            break;
        }
        let last = *path.blocks.last().unwrap_or(&of.head);
        for edge in &flow.blocks[last].edges {
            let Edge::Block(to) = edge else { continue };
            let share = path.share * share(last, *to);
            if *to == of.head {
                found.push(Path { share, ..path.clone() });
            } else if of.blocks.contains(to) && !path.blocks.contains(to) {
                let blocks = path.blocks.iter().copied().chain([*to]).collect();
                open.push(Path { blocks, share });
            }
        }
    }
    found.retain(|path| path.share >= LEAST);
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found.truncate(MOST);
    found
}

fn take_most(open: &mut Vec<Path>) -> Option<Path> {
    let most = (0..open.len()).max_by(|a, b| open[*a].share.total_cmp(&open[*b].share))?;
    Some(open.swap_remove(most))
}

/// Cycles of the longest path of dependencies through instructions, with loads that hit the first cache.
pub(super) fn longest(bytes: &[u8], analyser: &mut Analyser, core: &Core) -> f64 {
    let Ok(code) = deps::Code::of_bytes(bytes, core.facts()) else { return 0.0 };
    let settings =
        Settings { window: Window::of(core).entries, runs: 1, initial_values: Vec::new() };
    let analysis = analyser.analyse(&code, &settings);
    let latencies = analyser.latencies();
    let to = |root| {
        let (low, high) = critical_path(&code, &analysis, latencies, root, &|_| None).cycles;
        f64::midpoint(low, high)
    };
    (0..code.instructions.len()).map(to).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::flow::BasicBlock;

    /// 0 → 1 (70 %) or 2; both → 3; 3 → 0. By hand.
    #[test]
    fn both_sides_of_a_branch_are_paths() {
        let block = |to: &[usize]| BasicBlock {
            edges: to.iter().map(|to| Edge::Block(*to)).collect(),
            ..BasicBlock::default()
        };
        let blocks = vec![block(&[1, 2]), block(&[3]), block(&[3]), block(&[0])];
        let flow = Flow { blocks, ..Flow::default() };
        let of = Loop { head: 0, blocks: vec![0, 1, 2, 3], ..Loop::default() };
        let share = |from: usize, to: usize| match (from, to) {
            (0, 1) => 0.7,
            (0, 2) => 0.3,
            _ => 1.0,
        };
        let found = paths(&flow, &of, &share);
        let blocks: Vec<&[usize]> = found.iter().map(|path| &path.blocks[..]).collect();
        assert_eq!(blocks, [&[0, 1, 3][..], &[0, 2, 3]]);
        assert_eq!((found[0].share, found[1].share), (0.7, 0.3));
    }
}
