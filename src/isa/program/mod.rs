//! Functions, blocks and loops of a program's file, by the places that a user names.
//!
//! | file | concern |
//! |---|---|
//! | `elf` | blocks of ELF files |
//! | `places` | places as a user writes them; functions of ELF files |

mod elf;
mod places;

use crate::flow;
use elf::Program;
use serde::Serialize;
use std::ops::Range;
use tma::Result;

pub use elf::{Located, function_around, read_location, read_named, read_path, read_ranges};
pub use places::{
    Known, Location, LoopName, Names, nameless, nameless_start, preference, split as split_location,
};

/// The basic blocks of one function: the document `tdtool.blocks/1`.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionBlocks {
    /// `tdtool.blocks/1`.
    pub schema: &'static str,
    /// The function's name, as people read it.
    pub function: String,
    /// In order of address; the index is the N of `FUNCTION+N`.
    pub blocks: Vec<BlockLine>,
    /// Its loops, outer ones first; the index is the N of `FUNCTION@N`.
    pub loops: Vec<LoopLine>,
}

/// A loop of a function.
#[derive(Debug, Clone, Serialize)]
pub struct LoopLine {
    /// The N of `FUNCTION@N`.
    pub number: usize,
    /// Number of its first block.
    pub head: usize,
    /// Address of its first block, `0x…`.
    pub start: String,
    /// Numbers of all its blocks, those of loops within it, too.
    pub blocks: Vec<usize>,
    /// Number of loops that enclose it, itself included.
    pub depth: u32,
}

/// A basic block of a function.
#[derive(Debug, Clone, Serialize)]
pub struct BlockLine {
    /// The N of `FUNCTION+N`.
    pub number: usize,
    /// Address of its first instruction (p_vaddr), `0x…`.
    pub start: String,
    /// Address after its last instruction, `0x…`.
    pub end: String,
    /// Number of instructions.
    pub instructions: usize,
    /// Number of loops that enclose it.
    pub loop_depth: u32,
    /// Number of the innermost of them.
    pub innermost_loop: Option<usize>,
    /// Its first instruction, in Intel syntax.
    pub first: String,
    /// Its last instruction, in Intel syntax.
    pub last: String,
}

/// The basic blocks of the function of the ELF file `data` that `location` names or lies in.
///
/// # Errors
/// `data` is not an x86-64 ELF file or has no such function.
pub fn list_blocks(data: &[u8], names: Names<'_>, location: &Location) -> Result<FunctionBlocks> {
    let program = Program::open(&data)?.with(names);
    let function = match location {
        Location::Range(address, _)
        | Location::At(address)
        | Location::Loop(LoopName::At(address)) => program.around(*address)?,
        Location::Function(name, _) | Location::Loop(LoopName::Number(name, _)) => {
            program.function(name)?
        }
    };
    let flow = flow::flow(&program.code(&function)?, function.start, &[], &program.image);
    let line = |(number, block): (usize, &flow::BasicBlock)| {
        let from = flow.instructions.partition_point(|(at, _)| *at < block.start);
        let to = flow.instructions.partition_point(|(at, _)| *at < block.end);
        let own = flow.instructions.get(from..to).unwrap_or_default();
        let text = |one: Option<&(u64, crate::code::Inst)>| {
            one.map_or(String::new(), |i| i.1.text.clone())
        };
        BlockLine {
            number,
            start: format!("{:#x}", block.start),
            end: format!("{:#x}", block.end),
            instructions: own.len(),
            loop_depth: block.innermost.and_then(|l| flow.loops.get(l)).map_or(0, |l| l.depth),
            innermost_loop: block.innermost,
            first: text(own.first()),
            last: text(own.last()),
        }
    };
    let blocks = flow.blocks.iter().enumerate().map(line).collect();
    let one = |(number, l): (usize, &flow::Loop)| LoopLine {
        number,
        head: l.head,
        start: format!("{:#x}", flow.blocks[l.head].start),
        blocks: l.blocks.clone(),
        depth: l.depth,
    };
    let loops = flow.loops.iter().enumerate().map(one).collect();
    let function = program.shown(&function);
    Ok(FunctionBlocks { schema: "tdtool.blocks/1", function, blocks, loops })
}

/// A loop of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    /// Its first block (p_vaddr).
    pub head: Range<u64>,
    /// Its code, a range for each run of adjacent blocks.
    pub region: Vec<Range<u64>>,
    /// Number of its blocks.
    pub blocks: usize,
}

/// The innermost loop that contains `address`; `None` if it is in no loop, or the file `data` has no
/// such function.
pub fn loop_around(data: &[u8], address: u64) -> Option<Around> {
    let program = Program::open(&data).ok()?;
    let function = program.around(address).ok()?;
    let flow = flow::flow(&program.code(&function).ok()?, function.start, &[], &program.image);
    let innermost = flow.loops.get(flow.blocks.get(flow.block_at(address)?)?.innermost?)?;
    let mut region: Vec<Range<u64>> = Vec::new();
    for block in &innermost.blocks {
        let block = flow.blocks.get(*block)?;
        match region.last_mut().filter(|last| last.end == block.start) {
            Some(last) => last.end = block.end,
            None => region.push(block.start..block.end),
        }
    }
    let head = flow.blocks.get(innermost.head)?;
    Some(Around { head: head.start..head.end, region, blocks: innermost.blocks.len() })
}

/// The code of the innermost loop that contains `address`, as [`loop_around`] finds it.
pub fn loop_region(data: &[u8], address: u64) -> Option<Vec<Range<u64>>> {
    loop_around(data, address).map(|around| around.region)
}
