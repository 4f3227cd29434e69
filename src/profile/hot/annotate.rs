//! Annotates the code of a function, block by block, with its share of the samples, or says why it is unavailable;
//! finds the hottest loops.

use super::Profile;
use super::filter::Skid;
use super::tally::{HotFunction, Tally};
use crate::code::{Extent, Unavailable};
use crate::module::ModuleKind;
use isa::flow::{BasicBlock, Edge, Flow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A block with samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotBlock {
    /// Index of its function.
    pub function: usize,
    /// First address (p_vaddr).
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Number of samples.
    pub samples: u64,
    /// Nesting depth of loops.
    pub loop_depth: u32,
    /// Source file of its hottest instruction.
    pub file: Option<String>,
    /// Line in `file`.
    pub line: Option<u32>,
    /// Inlined function that the line belongs to.
    #[serde(default)]
    pub inlined: Option<String>,
}

/// A loop with samples, less the loops within it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HotLoop {
    /// First address of the block that it is entered at (p_vaddr).
    pub head: u64,
    /// Number of its blocks.
    pub blocks: usize,
    /// From its first address to the end of its last instruction; the line is that of its hottest block.
    pub whole: HotBlock,
}

/// An instruction of an annotated function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedLine {
    /// Address (p_vaddr).
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Intel syntax, addresses absolute.
    pub text: String,
    /// Number of samples.
    pub samples: u64,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Source file and line.
    pub source: Option<(String, u32)>,
}

/// A block of an annotated function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedBlock {
    /// Its address range and share.
    pub block: HotBlock,
    /// Start addresses of its successors.
    pub edges: Vec<u64>,
    /// Whether it is the head of a loop.
    pub is_head: bool,
    /// The head of the loop that it closes.
    pub back_to: Option<u64>,
    /// Whether edges are missing: it ends in an indirect jump with unknown targets.
    pub unresolved: bool,
    /// Its instructions.
    pub lines: Vec<AnnotatedLine>,
}

/// A function with its code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotated {
    /// The function.
    pub function: HotFunction,
    /// Its blocks, in order of address.
    pub blocks: Vec<AnnotatedBlock>,
    /// How exact the addresses of its samples are, where its code is available.
    pub skid: Option<Skid>,
    /// Other limits that a reader must know.
    pub notes: Vec<String>,
}

impl Profile {
    /// The code of the function at `index` with its samples. If it is unavailable, the notes say why.
    pub fn annotate(&mut self, index: usize) -> Annotated {
        let Some(function) = self.functions.get(index).cloned() else {
            return Annotated::default();
        };
        let flow = match self.flow(index) {
            Ok(flow) => flow,
            Err(why) => {
                let notes = vec![format!("its code is unavailable: {why}")];
                return Annotated { function, notes, ..Annotated::default() };
            }
        };
        let (skid, notes) = (Some(self.skid), remarks(&flow));
        let blocks = (0..flow.blocks.len()).map(|i| self.block(index, &flow, i)).collect();
        Annotated { function, blocks, skid, notes }
    }

    /// The hottest blocks of the hottest functions, hottest first.
    pub fn blocks(&mut self, most: usize) -> Vec<HotBlock> {
        let mut all = Vec::new();
        for index in 0..self.functions.len() {
            // Functions come in order of share; no block is hotter than its function.
            let least = nth_share(&all, most);
            if self.functions[index].share < least {
                break;
            }
            let Ok(flow) = self.flow(index) else { continue };
            let hot = (0..flow.blocks.len()).map(|i| self.place_of(index, &flow, i));
            all.extend(hot.filter(|b| b.samples > 0));
            sort(&mut all);
            all.truncate(most);
        }
        for block in &mut all {
            self.find_line(block);
        }
        all
    }

    /// First addresses of the blocks of a function that have samples, and how many.
    pub fn block_samples(&mut self, function: usize) -> Vec<(u64, u64)> {
        let Ok(flow) = self.flow(function) else { return Vec::new() };
        let places = (0..flow.blocks.len()).map(|i| self.place_of(function, &flow, i));
        places.filter(|b| b.samples > 0).map(|b| (b.start, b.samples)).collect()
    }

    /// Mean period of the samples: nanoseconds for clocks.
    pub fn period(&self) -> Option<f64> {
        let total = self.gathered.total;
        (total.samples > 0).then(|| total.weight / total.samples as f64)
    }

    /// The bytes of a block.
    pub fn code(&mut self, block: &HotBlock) -> Result<Vec<u8>, Unavailable> {
        let module = self.keys.get(block.function).map(|key| key.0);
        let module = module.and_then(|m| self.spaces.modules.all.get(m));
        let module = module.ok_or(Unavailable::NoMapping)?;
        Ok(self.symbols.code(module, block.start, block.end)?)
    }

    /// The file of a block of user code, and the offset of `address` in it.
    pub fn offset(&mut self, block: &HotBlock, address: u64) -> Result<(String, u64), Unavailable> {
        let number = self.keys.get(block.function).map_or(usize::MAX, |key| key.0);
        let module = self.spaces.modules.all.get(number).filter(|m| m.kind == ModuleKind::File);
        let path = module.map(|m| m.path.clone()).ok_or(Unavailable::NoFile)?;
        match self.spaces.offset_of(number, address) {
            Some(offset) => Ok((path, offset)),
            None => Err(Unavailable::Unread(path)),
        }
    }

    /// The first address of the innermost loop around a block.
    pub fn loop_head(&mut self, block: &HotBlock) -> Option<u64> {
        let flow = self.flow(block.function).ok()?;
        let innermost = flow.blocks.iter().find(|b| b.start == block.start)?.innermost?;
        Some(flow.blocks.get(flow.loops.get(innermost)?.head)?.start)
    }

    /// The control flow of the function at `index`, or why it is not known.
    pub fn flow(&mut self, index: usize) -> Result<Arc<Flow>, Unavailable> {
        let function = self.summary.functions.get(index).ok_or(Unavailable::NoMapping)?;
        if let Some(gap) = &function.gap {
            return Err(gap.clone().into());
        }
        let (number, range) = (self.keys[index].0, function.start..function.end);
        let extent = Extent { module: &self.spaces.modules.all[number], number, range };
        self.flows.of(extent, &mut self.symbols, &self.gathered.targets)
    }

    /// Samples of a function in an address range.
    fn tally(&self, index: usize, start: u64, end: u64) -> Tally {
        let places = &self.addresses[index];
        let from = places.partition_point(|(address, _)| *address < start);
        let mut sum = Tally::default();
        places[from..].iter().take_while(|(address, _)| *address < end).for_each(|p| sum.add(p.1));
        sum
    }

    pub(super) fn place_of(&self, index: usize, flow: &Flow, block: usize) -> HotBlock {
        let BasicBlock { start, end, innermost, .. } = flow.blocks[block];
        let tally = self.tally(index, start, end);
        HotBlock {
            function: index,
            start,
            end,
            share: self.gathered.share(tally),
            samples: tally.samples,
            loop_depth: innermost.and_then(|l| flow.loops.get(l)).map_or(0, |l| l.depth),
            ..HotBlock::default()
        }
    }

    /// Sets the line of a block to that of its hottest instruction.
    pub(super) fn find_line(&mut self, block: &mut HotBlock) {
        let inside = |p: &&(u64, Tally)| (block.start..block.end).contains(&p.0);
        let places = self.addresses[block.function].iter().filter(inside);
        let hottest = places.max_by(|a, b| a.1.weight.total_cmp(&b.1.weight)).map(|p| p.0);
        let address = hottest.unwrap_or(block.start);
        if let Some(line) = self.line_at(block.function, address) {
            (block.file, block.line) = (Some(line.file), Some(line.line));
            block.inlined = line.inlined;
        }
    }

    fn block(&mut self, index: usize, flow: &Flow, number: usize) -> AnnotatedBlock {
        let block = &flow.blocks[number];
        let start = |edge: &Edge| match edge {
            Edge::Block(to) => flow.blocks.get(*to).map(|b| b.start),
            Edge::Outside(address) => Some(*address),
        };
        let back = flow.loops.iter().find(|l| l.back_edges.contains(&number));
        let from = flow.instructions.partition_point(|(address, _)| *address < block.start);
        let inside = flow.instructions[from..].iter().take_while(|(a, _)| *a < block.end);
        let lines = inside
            .map(|(address, inst)| {
                let tally = self.tally(index, *address, address + inst.bytes.len() as u64);
                AnnotatedLine {
                    address: *address,
                    bytes: inst.bytes.clone(),
                    text: inst.text.clone(),
                    samples: tally.samples,
                    share: self.gathered.share(tally),
                    source: self.line_at(index, *address).map(|line| (line.file, line.line)),
                }
            })
            .collect();
        AnnotatedBlock {
            block: self.place_of(index, flow, number),
            edges: block.edges.iter().filter_map(start).collect(),
            is_head: flow.loops.iter().any(|l| l.head == number),
            back_to: back.map(|l| flow.blocks[l.head].start),
            unresolved: block.unresolved,
            lines,
        }
    }
}

fn sort(blocks: &mut [HotBlock]) {
    blocks.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.start.cmp(&b.start)));
}

/// The share of the last of `most` sorted blocks; 0 while there are fewer.
fn nth_share(blocks: &[HotBlock], most: usize) -> f64 {
    most.checked_sub(1).and_then(|last| blocks.get(last)).map_or(0.0, |b| b.share)
}

/// Limits of the block structure that a reader must know.
fn remarks(flow: &Flow) -> Vec<String> {
    let mut notes = Vec::new();
    let unresolved = flow.blocks.iter().filter(|b| b.unresolved).count();
    if unresolved > 0 {
        notes.push(format!("{unresolved} indirect jumps have unknown targets: edges are missing"));
    }
    if !flow.undecoded.is_empty() {
        let bytes: u64 = flow.undecoded.iter().map(|(from, to)| to - from).sum();
        notes
            .push(format!("{bytes} bytes do not decode as instructions: data, or a truncated end"));
    }
    if !flow.irreducible.is_empty() {
        notes.push(
            "some cycles have several entries (irreducible) and are not counted as loops"
                .to_owned(),
        );
    }
    notes
}

impl Profile {
    /// The hottest loops of the hottest functions, each less the loops within it, hottest first.
    pub fn loops(&mut self, most: usize) -> Vec<HotLoop> {
        let mut all: Vec<(HotLoop, HotBlock)> = Vec::new();
        for index in 0..self.functions.len() {
            // Functions come in order of share; no loop is hotter than its function.
            let last = most.checked_sub(1).and_then(|last| all.get(last));
            if self.functions[index].share < last.map_or(0.0, |(of, _)| of.whole.share) {
                break;
            }
            let Ok(flow) = self.flow(index) else { continue };
            for (number, of) in flow.loops.iter().enumerate() {
                let is_own = |block: &&usize| flow.blocks[**block].innermost == Some(number);
                let own = of.blocks.iter().filter(is_own).map(|b| self.place_of(index, &flow, *b));
                let own: Vec<HotBlock> = own.collect();
                let hottest = own.iter().max_by(|a, b| a.share.total_cmp(&b.share)).cloned();
                let Some(hottest) = hottest.filter(|block| block.samples > 0) else { continue };
                let whole = HotBlock {
                    function: index,
                    start: of.blocks.iter().map(|b| flow.blocks[*b].start).min().unwrap_or(0),
                    end: of.blocks.iter().map(|b| flow.blocks[*b].end).max().unwrap_or(0),
                    share: own.iter().map(|block| block.share).sum(),
                    samples: own.iter().map(|block| block.samples).sum(),
                    loop_depth: of.depth,
                    ..HotBlock::default()
                };
                let head = flow.blocks[of.head].start;
                all.push((HotLoop { head, blocks: of.blocks.len(), whole }, hottest));
            }
            let hotter = |a: &HotLoop, b: &HotLoop| b.whole.share.total_cmp(&a.whole.share);
            all.sort_by(|a, b| hotter(&a.0, &b.0).then(a.0.head.cmp(&b.0.head)));
            all.truncate(most);
        }
        let with_line = |(mut of, mut hottest): (HotLoop, HotBlock)| {
            self.find_line(&mut hottest);
            (of.whole.file, of.whole.line) = (hottest.file, hottest.line);
            of.whole.inlined = hottest.inlined;
            of
        };
        all.into_iter().map(with_line).collect()
    }
}
