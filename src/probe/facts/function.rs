//! One function: its blocks, edges and instructions, and the padding after it, up to the next function or jump
//! target, which nothing executes.

use super::module::{Addresses, Module};
use super::no_code::NoCode;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use isa::flow::{Edge, Flow, Memory as _, decoded_flow};
use std::collections::BTreeSet;
use std::ops::Range;

/// How control leaves a block, apart from [`Block::successors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Not at all.
    None,
    /// To another function, or by a return.
    Leaves,
    /// It ends in a call, which may not come back.
    MayEnd,
    /// Anywhere: an indirect jump whose targets are not known.
    Unknown,
}

/// A basic block.
#[derive(Debug, Clone)]
pub struct Block {
    /// First address (p_vaddr).
    pub start: u64,
    /// Address after its last instruction.
    pub end: u64,
    /// Its instructions, at their own addresses.
    pub instructions: Vec<Instruction>,
    /// Arithmetic flags live before each instruction.
    pub live: Vec<u32>,
    /// Indices of the blocks that may follow.
    pub successors: Vec<usize>,
    /// Number of first instructions that run as often as the block is entered; an unknown jump may
    /// lead to the others.
    pub certain: usize,
    /// Its exit other than to successors.
    pub exit: Exit,
    /// Whether it may be entered other than from the blocks of the function.
    pub is_entered: bool,
    /// Whether it is certain to be code: it is reached from the function's start or another entry.
    pub is_reached: bool,
}

/// Longest function that is probed.
const LONGEST: u64 = 4 << 20;
/// Most entries of a jump table of distances.
const MOST_ENTRIES: u64 = 4096;

/// A natural loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// Index of its first block.
    pub head: usize,
    /// Indices of the blocks that jump back there.
    pub latches: Vec<usize>,
}

/// A function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its addresses.
    pub range: Range<u64>,
    /// Its bytes in the file, and the padding after it.
    pub bytes: Vec<u8>,
    /// Blocks in order of address.
    pub blocks: Vec<Block>,
    /// Its loops, outer ones first.
    pub loops: Vec<Loop>,
    /// Addresses that may be jumped to or read: no patch may contain one after its start.
    pub fixed: Addresses,
    /// Whether all jumps are known, so that several instructions may be patched together.
    pub is_complete: bool,
}

impl Function {
    /// Analyses the function at `range` of `module`. `entered` are the addresses that may be
    /// reached from elsewhere.
    pub fn read(module: &Module, range: Range<u64>, entered: &Addresses) -> Result<Self, NoCode> {
        if range.end <= range.start || range.end - range.start > LONGEST {
            return Err(NoCode::Length);
        }
        let bytes = module.code(range.clone()).ok_or(NoCode::Outside)?.to_vec();
        let flow = |observed: &[u64]| decoded_flow(&bytes, range.start, observed, &module.image);
        let (first, own) = flow(&[]);
        let mut fixed = Vec::new();
        own.iter().for_each(|instruction| name(instruction, module, &range, &mut fixed));
        fixed.extend(entered.within(&range));
        let mut fixed: Addresses = fixed.into_iter().collect();
        // Also if it may be a tail call: a program can compute pointers into the function.
        if first.blocks.iter().any(|b| b.unresolved) {
            fixed.extend(tables(&own, module, &range));
        }
        let is_start = |at: &u64| own.binary_search_by_key(at, Instruction::ip).is_ok();
        let observed: Vec<u64> = fixed.iter().filter(is_start).collect();
        let begins = |at: &u64| first.blocks.binary_search_by_key(at, |b| b.start).is_ok();
        let (found, own) = match observed.iter().all(begins) {
            true => (first, own),
            false => flow(&observed),
        };
        let blocks = blocks(&found, &own, &fixed, range.start);
        let calls = blocks.iter().filter(|b| b.exit == Exit::MayEnd).map(|b| b.end);
        let tables = found.tables.iter().flat_map(|(_, targets)| targets).copied();
        fixed.extend(calls.chain(tables).chain(own.iter().filter_map(near_target)));
        let mut function = Self {
            is_complete: found.undecoded.is_empty() && is_complete(&blocks),
            blocks,
            loops: found.loops.iter().map(Loop::of).collect(),
            range,
            bytes,
            fixed,
        };
        if function.blocks.last().is_some_and(|b| b.end == function.range.end && leaves(b)) {
            let rest = function.range.end..module.padding_end(function.range.end);
            let code = module.code(rest.clone()).unwrap_or_default();
            function.bytes.extend_from_slice(&code[..padding(code, rest.start) as usize]);
        }
        function.mark_reached();
        function.find_live(module);
        function.find_certain(found.undecoded.is_empty());
        Ok(function)
    }

    /// Number of bytes after a block that nothing executes; 0 if control may pass there or jumps
    /// are unknown.
    pub fn padding_after(&self, block: usize) -> u64 {
        let own = &self.blocks[block];
        if !self.is_complete || !leaves(own) {
            return 0;
        }
        let is_code = |one: &&Block| {
            one.is_reached || one.is_entered || !one.instructions.iter().all(is_padding)
        };
        let end = self.range.start + self.bytes.len() as u64;
        let next = self.blocks[block + 1..].iter().find(is_code).map_or(end, |one| one.start);
        padding(self.at(own.end..next), own.end)
    }

    /// The bytes at a range of its addresses.
    fn at(&self, range: Range<u64>) -> &[u8] {
        let inside = |at: u64| at.saturating_sub(self.range.start) as usize;
        self.bytes.get(inside(range.start)..inside(range.end)).unwrap_or_default()
    }

    /// Marks the blocks on known paths.
    fn mark_reached(&mut self) {
        let mut pending: Vec<usize> =
            (0..self.blocks.len()).filter(|&b| self.blocks[b].is_entered).collect();
        while let Some(block) = pending.pop() {
            if !std::mem::replace(&mut self.blocks[block].is_reached, true) {
                pending.extend(&self.blocks[block].successors);
            }
        }
    }
}

impl Loop {
    fn of(found: &isa::flow::Loop) -> Self {
        Self { head: found.head, latches: found.back_edges.clone() }
    }
}

/// Whether all exits are known.
fn is_complete(blocks: &[Block]) -> bool {
    blocks.iter().all(|block| block.exit != Exit::Unknown)
}

/// The blocks of a flow graph, without their live flags.
fn blocks(flow: &Flow, all: &[Instruction], fixed: &Addresses, start: u64) -> Vec<Block> {
    let block = |block: &isa::flow::BasicBlock| {
        let from = all.partition_point(|instruction| instruction.ip() < block.start);
        let to = all.partition_point(|instruction| instruction.ip() < block.end);
        let instructions = all[from..to].to_vec();
        let inside = |edge: &Edge| match edge {
            Edge::Block(index) => Some(*index),
            Edge::Outside(_) => None,
        };
        let successors: Vec<usize> = block.edges.iter().filter_map(inside).collect();
        let is_call = instructions.last().is_some_and(|last| {
            matches!(last.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        });
        let exit = match block {
            _ if block.unresolved => Exit::Unknown,
            _ if is_call => Exit::MayEnd,
            _ if block.is_exit || successors.len() < block.edges.len() => Exit::Leaves,
            _ => Exit::None,
        };
        let is_entered = block.start == start || fixed.contains(&block.start);
        Block {
            start: block.start,
            end: block.end,
            instructions,
            live: Vec::new(),
            successors,
            exit,
            is_entered,
            is_reached: false,
            certain: 0,
        }
    };
    flow.blocks.iter().map(block).collect()
}

/// The target of a direct jump or call.
pub(super) fn near_target(instruction: &Instruction) -> Option<u64> {
    (instruction.op0_kind() == OpKind::NearBranch64).then(|| instruction.near_branch_target())
}

/// Adds the addresses in `range` that an instruction refers to other than by a jump: calls, `lea`,
/// data between the code and, in code that is not position-independent, immediates.
fn name(instruction: &Instruction, module: &Module, range: &Range<u64>, found: &mut Vec<u64>) {
    if instruction.is_ip_rel_memory_operand() {
        let at = instruction.ip_rel_memory_address();
        // A load may have up to 64 bytes; `lea` refers to one address.
        let bytes = if instruction.mnemonic() == iced_x86::Mnemonic::Lea { 1 } else { 64 };
        found.extend(at.max(range.start)..at.saturating_add(bytes).min(range.end));
    }
    let callee =
        near_target(instruction).filter(|_| instruction.flow_control() == FlowControl::Call);
    let operands = if module.is_fixed { instruction.op_count() } else { 0 };
    let immediates = (0..operands).filter_map(|at| instruction.try_immediate(at).ok());
    found.extend(immediates.chain(callee).filter(|target| range.contains(target)));
}

/// Targets inside the function of jump tables of distances (`lea` of the table, then an indirect
/// jump).
fn tables(own: &[Instruction], module: &Module, range: &Range<u64>) -> BTreeSet<u64> {
    let mut targets = BTreeSet::new();
    if !own.iter().any(|i| i.flow_control() == FlowControl::IndirectBranch) {
        return targets;
    }
    for instruction in own.iter().filter(|i| i.code() == Code::Lea_r64_m) {
        if !instruction.is_ip_rel_memory_operand() {
            continue;
        }
        let base = instruction.ip_rel_memory_address();
        for entry in 0..MOST_ENTRIES {
            let word = module.image.read(base.wrapping_add(4 * entry), 4);
            let Some(Ok(word)) = word.map(<[u8; 4]>::try_from) else { break };
            let target = base.wrapping_add_signed(i32::from_le_bytes(word).into());
            if !range.contains(&target) {
                break;
            }
            targets.insert(target);
        }
    }
    targets
}

/// Functions begin at multiples of this.
const ALIGNMENT: u64 = 16;

impl Module {
    /// The end of the padding after a function that ends at `end`: the next known or aligned
    /// address.
    pub(super) fn padding_end(&self, end: u64) -> u64 {
        let range = end..end.next_multiple_of(ALIGNMENT);
        let next = self.functions.partition_point(|function| function.start < end);
        let function = self.functions.get(next).map(|function| function.start);
        let others = [&self.named, &self.pads].map(|all| all.within(&range).first().copied());
        [function, others[0], others[1]].into_iter().flatten().fold(range.end, u64::min)
    }
}

/// Whether control never passes to the address after a block.
pub(super) fn leaves(block: &Block) -> bool {
    let last = block.instructions.last().map(Instruction::flow_control);
    matches!(
        last,
        Some(FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch)
    )
}

/// The number of first bytes of `code`, at `start`, that are padding.
pub(super) fn padding(code: &[u8], start: u64) -> u64 {
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let all = decoder.into_iter().take_while(is_padding);
    all.map(|instruction| instruction.len() as u64).sum()
}

pub(super) fn is_padding(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Nop || instruction.code() == Code::Int3
}
