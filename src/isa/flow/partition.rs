//! Bytes of a function → instructions → basic blocks and edges. Instructions are found by recursive traversal from the
//! entry and other roots, then by a linear sweep over the remaining bytes, so that data between code does not misalign
//! the decoding of branch targets.
//!
//! A block begins at the entry, at a branch target (direct, from a jump table, or seen in a
//! recording) and after an instruction that may not fall through: a branch, call or return. Calls end
//! blocks because the callee's work is not the block's own. Unreachable padding belongs to no block.

use super::graph::{BasicBlock, Edge};
use super::image::Memory;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// The instructions of a function and the bytes that do not decode.
pub(super) struct Disassembly {
    /// In order of address, without overlap.
    pub instructions: Vec<Instruction>,
    /// For each byte, whether it is reachable from the entry or a root.
    reached: Vec<bool>,
    start: u64,
    /// Ranges that do not decode: start and end (exclusive).
    pub undecoded: Vec<(u64, u64)>,
}

impl Disassembly {
    /// Decodes `code` at `start`. `roots` are known instruction addresses, the most certain first. The
    /// code must not wrap around the end of the address space.
    pub fn new(code: &[u8], start: u64, roots: impl IntoIterator<Item = u64>) -> Self {
        let mut traversal = Traversal {
            decoder: Decoder::with_ip(64, code, start, DecoderOptions::NONE),
            start,
            covered: vec![false; code.len()],
            instructions: Vec::with_capacity(code.len() / 4),
            pending: Vec::new(),
        };
        traversal.follow(start);
        for root in roots {
            traversal.follow(root);
        }
        let reached = traversal.covered.clone();
        traversal.sweep();
        let undecoded = traversal.undecoded();
        let mut instructions = traversal.instructions;
        instructions.sort_unstable_by_key(Instruction::ip);
        Self { instructions, reached, start, undecoded }
    }

    /// Whether `address` belongs to an instruction that is reachable from the entry or a root.
    pub fn is_certain(&self, address: u64) -> bool {
        let offset = address.checked_sub(self.start).and_then(|o| usize::try_from(o).ok());
        offset.and_then(|offset| self.reached.get(offset)) == Some(&true)
    }

    /// Index of the instruction at `address`, or of one that begins a byte earlier with a LOCK prefix:
    /// single-threaded paths of the C library jump over the prefix.
    pub fn index_of(&self, address: u64) -> Option<usize> {
        match self.instructions.binary_search_by_key(&address, Instruction::ip) {
            Ok(index) => Some(index),
            Err(after) => {
                let index = after.checked_sub(1)?;
                let before = &self.instructions[index];
                let skips = before.has_lock_prefix() && before.ip() + 1 == address;
                skips.then_some(index)
            }
        }
    }
}

/// The target of a direct jump, conditional or not, or of `xbegin`.
pub(super) fn direct_target(instruction: &Instruction) -> Option<u64> {
    let jumps = match instruction.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => true,
        FlowControl::XbeginXabortXend => instruction.op0_kind() == OpKind::NearBranch64,
        _ => false,
    };
    jumps.then(|| instruction.near_branch_target())
}

/// Whether control may continue at the next instruction.
fn falls_through(instruction: &Instruction) -> bool {
    instruction.code() != Code::Hlt
        && !matches!(
            instruction.flow_control(),
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
                | FlowControl::Exception
        )
}

struct Traversal<'a> {
    decoder: Decoder<'a>,
    start: u64,
    /// Which bytes belong to an instruction.
    covered: Vec<bool>,
    instructions: Vec<Instruction>,
    /// Offsets still to be visited.
    pending: Vec<usize>,
}

impl Traversal<'_> {
    fn offset(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        (offset < self.covered.len()).then_some(offset)
    }

    /// Decodes all instructions reachable from `address` that are not yet decoded.
    fn follow(&mut self, address: u64) {
        self.pending.extend(self.offset(address));
        while let Some(offset) = self.pending.pop() {
            let mut at = Some(offset);
            while let Some(instruction) = at.and_then(|at| self.decode(at)) {
                let target = direct_target(&instruction).and_then(|t| self.offset(t));
                self.pending.extend(target.filter(|&t| !self.covered[t]));
                at = falls_through(&instruction)
                    .then(|| self.offset(instruction.next_ip()))
                    .flatten();
            }
        }
    }

    /// Decodes the bytes that the traversal did not reach.
    fn sweep(&mut self) {
        let mut offset = 0;
        while offset < self.covered.len() {
            if !self.covered[offset] {
                self.follow(self.start + offset as u64);
            }
            // Undecodable bytes extend to the next known instruction.
            let skipped = self.covered[offset..].iter().take_while(|&&c| !c).count();
            offset += skipped.max(1);
        }
    }

    /// The bytes that belong to no instruction.
    fn undecoded(&self) -> Vec<(u64, u64)> {
        let mut undecoded = Vec::new();
        let mut offset = 0;
        for part in self.covered.chunk_by(|a, b| a == b) {
            let from = self.start + offset as u64;
            offset += part.len();
            if !part[0] {
                undecoded.push((from, self.start + offset as u64));
            }
        }
        undecoded
    }

    /// Decodes one instruction; `None` if it is invalid or overlaps another.
    fn decode(&mut self, offset: usize) -> Option<Instruction> {
        if self.covered[offset] {
            return None;
        }
        self.decoder.set_position(offset).ok()?;
        self.decoder.set_ip(self.start + offset as u64);
        let instruction = self.decoder.decode();
        let bytes = self.covered.get_mut(offset..offset + instruction.len())?;
        if instruction.is_invalid() || bytes.contains(&true) {
            return None;
        }
        bytes.fill(true);
        self.instructions.push(instruction);
        Some(instruction)
    }
}

/// Jump tables: address of the jump → targets, in table order.
pub(super) type Tables = BTreeMap<u64, Vec<u64>>;

/// The basic blocks of a function and the instructions of each.
pub(super) struct Partition {
    pub blocks: Vec<BasicBlock>,
    /// Instruction indices of each block.
    pub spans: Vec<Range<usize>>,
    /// Padding between blocks.
    pub padding: Vec<(u64, u64)>,
}

struct Partitioner<'a> {
    disassembly: &'a Disassembly,
    range: Range<u64>,
    tables: &'a Tables,
    no_return: HashSet<u64>,
}

/// Partitions `disassembly` into basic blocks; `range` are the function's addresses.
pub(super) fn partition(
    disassembly: &Disassembly,
    range: Range<u64>,
    observed: &[u64],
    tables: &Tables,
    memory: &dyn Memory,
) -> Partition {
    let leaders = leaders(disassembly, observed, tables);
    let no_return = no_return(disassembly, range.end, memory);
    let partitioner = Partitioner { disassembly, range, tables, no_return };
    let starts: Vec<usize> = (0..leaders.len()).filter(|&i| leaders[i] != Leader::No).collect();
    let ends = starts.iter().skip(1).copied().chain([leaders.len()]);
    let spans: Vec<_> = starts.iter().copied().zip(ends).map(|(from, to)| from..to).collect();
    let spans = partitioner.without_padding(spans, &leaders);
    let mut padding = Vec::new();
    let mut code_spans = Vec::new();
    for (span, nops) in spans {
        if nops > span.start {
            padding.push((
                address(disassembly, span.start),
                disassembly.instructions[nops - 1].next_ip(),
            ));
        }
        if nops < span.end {
            code_spans.push(nops..span.end);
        }
    }
    let blocks = code_spans.iter().map(|span| partitioner.block(span, &code_spans)).collect();
    Partition { blocks, spans: code_spans, padding: joined(padding) }
}

fn address(disassembly: &Disassembly, index: usize) -> u64 {
    disassembly.instructions[index].ip()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leader {
    No,
    /// The instruction before it ends a block.
    AfterBoundary,
    /// It is the entry or a branch target.
    Target,
}

/// Which instructions begin a block.
fn leaders(disassembly: &Disassembly, observed: &[u64], tables: &Tables) -> Vec<Leader> {
    let mut leaders = vec![Leader::No; disassembly.instructions.len()];
    let mut expected = None;
    for (index, instruction) in disassembly.instructions.iter().enumerate() {
        let goes_on = expected == Some(instruction.ip());
        if !goes_on {
            leaders[index] = Leader::AfterBoundary;
        }
        expected = (!ends_block(instruction)).then(|| instruction.next_ip());
    }
    if let Some(entry) = leaders.first_mut() {
        *entry = Leader::Target;
    }
    let direct = disassembly.instructions.iter().filter_map(direct_target);
    let known = observed.iter().chain(tables.values().flatten()).copied();
    for target in direct.chain(known) {
        if let Some(index) = disassembly.index_of(target) {
            leaders[index] = Leader::Target;
        }
    }
    leaders
}

fn ends_block(instruction: &Instruction) -> bool {
    instruction.flow_control() != FlowControl::Next || instruction.code() == Code::Hlt
}

fn is_padding(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}

/// Merges adjacent ranges.
fn joined(ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut result: Vec<(u64, u64)> = Vec::new();
    for (from, to) in ranges {
        match result.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => result.push((from, to)),
        }
    }
    result
}

/// The callees that do not return: those known to `memory`, and the callee of a call that is the
/// last instruction of the function.
fn no_return(disassembly: &Disassembly, end: u64, memory: &dyn Memory) -> HashSet<u64> {
    let mut asked = HashSet::new();
    let mut no_return = HashSet::new();
    for instruction in disassembly.instructions.iter().filter(|i| i.is_call_near()) {
        let callee = instruction.near_branch_target();
        let is_last = instruction.next_ip() == end;
        if is_last || (asked.insert(callee) && !memory.returns(callee)) {
            no_return.insert(callee);
        }
    }
    no_return
}

impl Partitioner<'_> {
    /// Whether control may continue after `instruction`.
    fn goes_on(&self, instruction: &Instruction) -> bool {
        falls_through(instruction)
            && !(instruction.is_call_near()
                && self.no_return.contains(&instruction.near_branch_target()))
    }

    /// Each span with the index after its leading padding: no-ops that nothing but other padding
    /// reaches.
    fn without_padding(
        &self,
        spans: Vec<Range<usize>>,
        leaders: &[Leader],
    ) -> Vec<(Range<usize>, usize)> {
        let all = &self.disassembly.instructions;
        let mut falls_to = None;
        let mut result = Vec::with_capacity(spans.len());
        for span in spans {
            let is_reached =
                leaders[span.start] == Leader::Target || falls_to == Some(all[span.start].ip());
            let nops = all[span.clone()].iter().take_while(|i| is_padding(i)).count();
            let after = if is_reached { span.start } else { span.start + nops };
            let last = &all[span.end - 1];
            falls_to = (after < span.end && self.goes_on(last)).then(|| last.next_ip());
            result.push((span, after));
        }
        result
    }

    /// The block of the instructions `span`, with its edges.
    fn block(&self, span: &Range<usize>, spans: &[Range<usize>]) -> BasicBlock {
        let last = &self.disassembly.instructions[span.end - 1];
        let start = self.disassembly.instructions[span.start].ip();
        let mut block = BasicBlock { start, end: last.next_ip(), ..Default::default() };
        let table = self.tables.get(&last.ip());
        for target in direct_target(last).into_iter().chain(table.into_iter().flatten().copied()) {
            self.add_edge(&mut block, spans, target);
        }
        if self.goes_on(last) {
            let is_call =
                matches!(last.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            if is_call && !self.range.contains(&last.next_ip()) {
                block.is_exit = true;
            } else {
                self.add_edge(&mut block, spans, last.next_ip());
            }
        } else if last.flow_control() == FlowControl::IndirectBranch {
            block.unresolved |= table.is_none();
        } else {
            block.is_exit = direct_target(last).is_none();
        }
        block
    }

    /// Adds an edge to `target` unless it exists; marks the block unresolved if `target` is not the
    /// start of a block.
    fn add_edge(&self, block: &mut BasicBlock, spans: &[Range<usize>], target: u64) {
        let edge = if self.range.contains(&target) {
            let found = self.disassembly.index_of(target);
            found.and_then(|i| spans.binary_search_by_key(&i, |s| s.start).ok()).map(Edge::Block)
        } else {
            Some(Edge::Outside(target))
        };
        match edge {
            Some(edge) if !block.edges.contains(&edge) => block.edges.push(edge),
            Some(_) => {}
            None => block.unresolved = true,
        }
    }
}
