//! The loads that are analysed, with the code around them and the records of it, by program and address. Says why
//! an iteration of a loop was not measured.

use crate::recorded_loads::event::Sampled;
use crate::recorded_loads::executed::{ModuleKey, key, may_have_stacks};
use crate::recorded_loads::gather::{Gathered, gather};
use crate::trips;
use bench::{Assumed, NoPath};
use branches::stacks::{Analysis, LoopSum, Sums, analyse};
use isa::flow::Flow;
use loads::access::{Access, Function, classify};
use loads::prefetch::Timed;
use loads::recorded::{Operation, Sum};
use profile::address_space::ModuleAddress;
use profile::code::Code;
use profile::files::SearchPaths;
use profile::recording::Stream;
use profile::symbols::{Line, SourcePoint};
use report::documents::prefetch::EventRow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use tma::{Cause, Error, Result};

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
    pub body: std::result::Result<(u64, Vec<u8>), NoCycles>,
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
            !is_stack && crate::recorded_loads::executed::memory(&inst.decoded, &mut info).reads
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
fn body(flow: &Flow, innermost: Option<usize>) -> std::result::Result<(u64, Vec<u8>), NoCycles> {
    let own = innermost.and_then(|number| flow.loops.get(number)).ok_or(NoCycles::NoLoop)?;
    let [block] = own.blocks[..] else {
        return Err(NoCycles::Blocks(own.blocks.len()));
    };
    let block = flow.blocks.get(block).ok_or(NoCycles::NoLoop)?;
    let inside = flow.instructions.iter().filter(|(at, _)| (block.start..block.end).contains(at));
    Ok((block.start, inside.flat_map(|(_, inst)| inst.bytes.iter().copied()).collect()))
}

/// A load in a program.
pub(super) type LoadKey = (ModuleKey, u64);

/// The samples of an event's loads.
#[derive(Debug, Default)]
pub(super) struct Loads {
    pub event: usize,
    pub least_latency: Option<u64>,
    pub total: Sum,
    pub sums: BTreeMap<LoadKey, Sum>,
}

/// A recorded loop.
#[derive(Debug)]
pub(super) struct Loop {
    pub event: usize,
    pub taken: u64,
    /// Share of the back edges of the event.
    pub share: f64,
    pub timed: Timed,
}

/// Everything that recordings tell.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub events: Vec<EventRow>,
    pub loads: Vec<Loads>,
    /// By program and head; of several events that with most iterations.
    pub loops: HashMap<(ModuleKey, u64), Loop>,
    targets: HashMap<ModuleKey, BTreeSet<u64>>,
    /// Code of the recordings.
    pub codes: Vec<Code>,
}

impl Evidence {
    /// Adds a recording, whose events have the numbers from `first` on.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn add(&mut self, recording: &Stream, first: usize, search: &SearchPaths) -> Result<()> {
        let about = &recording.about;
        let gathered = gather(recording, search)?;
        let mut stacks = match about.events.iter().any(may_have_stacks) {
            true => analyse(recording, None, search)?.0,
            false => Vec::new(),
        };
        for (own, event) in about.events.iter().enumerate() {
            let mut row = EventRow {
                event: first + own,
                source: about.source.clone(),
                name: event.name.clone(),
                ..EventRow::default()
            };
            let found = stacks.get_mut(own).and_then(Option::take);
            if let Some(found) = found.filter(|found| found.sums.entries > 0) {
                row.stacks = found.sums.samples;
                row.has_cycles = Some(found.sums.has_cycles());
                self.add_loops(&found, row.event);
            }
            let least = Sampled::of(event).least_latency();
            if let Some(loads) = samples(&gathered, own, row.event, least) {
                row.loads = loads.total.samples;
                row.least_latency = least;
                self.loads.push(loads);
            }
            if row.stacks > 0 || row.loads > 0 {
                self.events.push(row);
            }
        }
        self.codes.push(gathered.code);
        Ok(())
    }

    /// Once all recordings are added: blocks begin where branches were seen to go.
    pub fn finish(&mut self) {
        for code in &mut self.codes {
            let known = code.modules.iter().enumerate();
            let targets = known
                .filter_map(|(number, module)| {
                    Some((number, self.targets.get(&key(module))?.clone()))
                })
                .collect();
            code.observe(targets);
        }
    }

    fn add_loops(&mut self, found: &Analysis, event: usize) {
        for to in found.sums.edges.keys().filter_map(|edge| edge.to) {
            if let Some(module) = found.places.module(to.module) {
                self.targets.entry(key(module)).or_default().insert(to.address);
            }
        }
        let all: u64 = found.loops.iter().map(|(_, sum)| sum.taken).sum();
        for (shape, sum) in &found.loops {
            let Some(module) = found.places.module(shape.module) else { continue };
            let own = Loop {
                event,
                taken: sum.taken,
                share: sum.taken as f64 / all.max(1) as f64,
                timed: timed(sum, &found.sums),
            };
            let place = (key(module), shape.head);
            if self.loops.get(&place).is_none_or(|known| known.taken < own.taken) {
                self.loops.insert(place, own);
            }
        }
    }
}

fn timed(sum: &LoopSum, of: &Sums) -> Timed {
    Timed {
        iterations: sum.clean.counts().collect(),
        mispredicted: sum.iterations.number() - sum.clean.number(),
        has_cycles: of.has_cycles(),
        trips: trips::recorded(sum, of),
        ..Timed::default()
    }
}

/// The samples of loads of an event, if it has some.
fn samples(gathered: &Gathered, own: usize, event: usize, least: Option<u64>) -> Option<Loads> {
    let sums = gathered.events.get(own)?;
    let total = sums.totals.get(&Operation::Load).filter(|sum| sum.samples > 0)?;
    let mut loads = Loads { event, least_latency: least, total: total.clone(), ..Loads::default() };
    for ((operation, site), sum) in &sums.sites {
        let place = site.place().filter(|_| *operation == Operation::Load);
        if let Some(place) = place
            && let Some(module) = gathered.code.modules.get(place.module)
        {
            loads.sums.insert((key(module), place.address), sum.clone());
        }
    }
    Some(loads)
}

/// Why an iteration of a loop was not measured.
#[derive(Debug, Clone, PartialEq)]
pub enum NoCycles {
    /// The code of the load is not known.
    NoCode,
    /// The load is in no loop.
    NoLoop,
    /// Its loop has this many blocks, and no counts say which one follows which.
    Blocks(usize),
    /// The most frequent edges lead out of its loop.
    Leaves,
    /// The most frequent edges lead through a loop in it.
    Nested,
    /// The path through it is not one block.
    Path(NoPath),
    /// It cannot be decoded or run.
    Failed(Cause<Error>),
    /// Its loads miss the first cache in the sandbox.
    Misses {
        /// The assumption that does not hold.
        assumption: Assumed,
        /// How that was found.
        how: String,
    },
    /// Too few of this many measurements are stable; why the last of the others is not.
    Unstable(usize, Option<String>),
    /// Neither as it is nor, for the second reason, with all of its loads from one address.
    Both(Box<NoCycles>, Box<NoCycles>),
}

impl From<NoPath> for NoCycles {
    fn from(why: NoPath) -> Self {
        Self::Path(why)
    }
}

impl From<Error> for NoCycles {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

impl fmt::Display for NoCycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocks(blocks) => {
                return write!(f, "the loop has {blocks} blocks, and only one can be measured");
            }
            Self::Path(why) => return why.fmt(f),
            Self::Failed(error) => return error.fmt(f),
            Self::Misses { assumption, how } => {
                return write!(
                    f,
                    "its loads do not all hit the first cache ({}): {how}",
                    assumption.word()
                );
            }
            Self::Unstable(tried, why) => {
                let why = why.as_deref().unwrap_or("no result");
                return write!(f, "too few of {tried} measurements are stable: {why}");
            }
            Self::Both(why, again) => {
                return write!(f, "{why}; with its loads from one address: {again}");
            }
            Self::NoCode => "its code is not known",
            Self::NoLoop => "no loop of its function contains it",
            Self::Leaves => "its most frequent path leaves the loop",
            Self::Nested => "the loop has another one in it",
        })
    }
}
