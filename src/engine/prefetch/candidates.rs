//! The loads that are analysed, with the code around them.

use super::evidence::{Evidence, LoadKey};
use super::no_cycles::NoCycles;
use crate::recorded_loads::code::Code;
use crate::recorded_loads::executed::{ModuleKey, key};
use isa::flow::Flow;
use loads::access::{Access, Function, classify};
use profile::address_space::ModuleAddress;
use profile::symbols::{Line, SourcePoint};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Loads of a loop are analysed, sampled or not, if it has at least this share of the back edges.
const LEAST_SHARE: f64 = 0.01;
/// Most loads that are analysed.
const MOST: usize = 200;

/// A load and its code.
#[derive(Debug)]
pub(super) struct Candidate {
    pub load: LoadKey,
    pub function: Option<String>,
    pub line: Line,
    pub source: Option<SourcePoint>,
    pub access: Option<Access>,
    /// Loads of its innermost loop, itself included.
    pub neighbours: BTreeSet<u64>,
    /// Blocks of the loops around it, the innermost loop first.
    pub loops: Vec<Vec<Range<u64>>>,
    /// Code of its innermost loop, with its address, if that is one block; or why not.
    pub body: Result<(u64, Vec<u8>), NoCycles>,
}

/// Sampled loads, and those of the hottest loops.
pub(super) fn candidates(evidence: &mut Evidence) -> Vec<Candidate> {
    let mut codes = std::mem::take(&mut evidence.codes);
    let mut wanted: BTreeMap<LoadKey, f64> = BTreeMap::new();
    for loads in &evidence.loads {
        for (load, sum) in &loads.sums {
            let share = sum.weight / loads.total.weight.max(1.0);
            let own = wanted.entry(load.clone()).or_default();
            *own = own.max(share).max(f64::MIN_POSITIVE);
        }
    }
    for ((module, head), own) in &evidence.loops {
        if own.share >= LEAST_SHARE {
            for load in loads_of(&mut codes, module, *head) {
                wanted.entry((module.clone(), load)).or_default();
            }
        }
    }
    let mut wanted: Vec<(LoadKey, f64)> = wanted.into_iter().collect();
    wanted.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    wanted.truncate(MOST);
    let found = wanted.into_iter().map(|(load, _)| candidate(load, &mut codes)).collect();
    evidence.codes = codes;
    found
}

/// The place of an address in the first recording whose code knows it.
pub(super) fn place<'a>(
    codes: &'a mut [Code],
    module: &ModuleKey,
    address: u64,
) -> Option<(&'a mut Code, ModuleAddress)> {
    codes.iter_mut().find_map(|code| {
        let number = code.modules.iter().position(|own| key(own) == *module)?;
        let place = ModuleAddress { module: number, address };
        code.instruction(place)?;
        Some((code, place))
    })
}

/// The loads of the loop with this head that are in no loop within it.
fn loads_of(codes: &mut [Code], module: &ModuleKey, head: u64) -> BTreeSet<u64> {
    let Some((code, place)) = place(codes, module, head) else { return BTreeSet::new() };
    let Some(flow) = code.flow(place) else { return BTreeSet::new() };
    let at_head =
        |one: &isa::flow::Loop| flow.blocks.get(one.head).is_some_and(|block| block.start == head);
    let number = flow.loops.iter().position(at_head);
    number.map(|number| loads_in(&flow, number)).unwrap_or_default()
}

/// The loads whose innermost loop has this number.
fn loads_in(flow: &Flow, number: usize) -> BTreeSet<u64> {
    let mut info = iced_x86::InstructionInfoFactory::new();
    let blocks = flow.blocks.iter().filter(|block| block.innermost == Some(number));
    let ranges: Vec<_> = blocks.map(|block| block.start..block.end).collect();
    let inside = |at: &u64| ranges.iter().any(|range| range.contains(at));
    flow.instructions
        .iter()
        .filter(|(at, _)| inside(at))
        .filter(|(_, inst)| {
            let is_stack = inst.decoded.is_stack_instruction();
            !is_stack && crate::recorded_loads::code::memory(&inst.decoded, &mut info).reads
        })
        .map(|(at, _)| *at)
        .collect()
}

/// A load with its code.
pub(super) fn candidate(load: LoadKey, codes: &mut [Code]) -> Candidate {
    let mut found = Candidate {
        load,
        function: None,
        line: Line::default(),
        source: None,
        access: None,
        neighbours: BTreeSet::new(),
        loops: Vec::new(),
        body: Err(NoCycles::NoCode),
    };
    let Some((code, place)) = place(codes, &found.load.0, found.load.1) else { return found };
    found.function = code.function(place).map(|function| function.short);
    found.line = code.line(place).unwrap_or_default();
    found.source =
        code.modules.get(place.module).and_then(|module| code.symbols.source_point(module, place));
    if let Some(flow) = code.flow(place) {
        found.access = classify(&Function::of(&flow), place.address);
        let block = flow.block_at(place.address).and_then(|block| flow.blocks.get(block));
        let innermost = block.and_then(|block| block.innermost);
        found.neighbours = innermost.map(|one| loads_in(&flow, one)).unwrap_or_default();
        found.loops = loops(&flow, innermost);
        found.body = body(&flow, innermost);
    }
    found
}

/// The blocks of a loop, of that around it, and so on.
fn loops(flow: &Flow, innermost: Option<usize>) -> Vec<Vec<Range<u64>>> {
    let around = |one: &usize| flow.loops.get(*one).and_then(|own| own.parent);
    let numbers = std::iter::successors(innermost, around);
    let own = numbers.filter_map(|number| flow.loops.get(number));
    let block = |number: &usize| flow.blocks.get(*number).map(|block| block.start..block.end);
    own.map(|own| own.blocks.iter().filter_map(block).collect()).collect()
}

/// The code of a loop of one block.
fn body(flow: &Flow, innermost: Option<usize>) -> Result<(u64, Vec<u8>), NoCycles> {
    let own = innermost.and_then(|number| flow.loops.get(number)).ok_or(NoCycles::NoLoop)?;
    let [block] = own.blocks[..] else {
        return Err(NoCycles::Blocks(own.blocks.len()));
    };
    let block = flow.blocks.get(block).ok_or(NoCycles::NoLoop)?;
    let inside = flow.instructions.iter().filter(|(at, _)| (block.start..block.end).contains(at));
    Ok((block.start, inside.flat_map(|(_, inst)| inst.bytes.iter().copied()).collect()))
}
