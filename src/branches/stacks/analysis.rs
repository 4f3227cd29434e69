//! A recording → edges, ranges, blocks and loops of one event.

use super::code::Code;
use super::distribution::Distribution;
use super::loops::{LoopShape, LoopSum, Loops};
use super::sums::{Edge, Sums};
use super::window::{Range, windows};
use iced_x86::FlowControl;
use profile::address_space::{AddressSpaces, ModuleAddress};
use profile::files::{Program, SearchPaths};
use profile::hot::origin;
use profile::module::{Module, ModuleKind};
use profile::recording::Stream;
use profile::symbols::{Function, Symbols};
use profile::text::Counts;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tma::Result;

/// Everything about one event.
#[derive(Debug)]
pub struct Analysis {
    /// Edges, ranges, instructions.
    pub sums: Sums,
    /// Loops, those whose back edges were taken most often first.
    pub loops: Vec<(LoopShape, LoopSum)>,
    /// Blocks of known functions, by module and address.
    pub blocks: Vec<BlockSum>,
    /// What the addresses are.
    pub places: Places,
}

/// Entries and cycles of a block.
#[derive(Debug, Clone)]
pub struct BlockSum {
    /// Number of its module.
    pub module: usize,
    /// Name of its function.
    pub function: String,
    /// First address.
    pub start: u64,
    /// Address after its last instruction.
    pub end: u64,
    /// How often it was entered in the recorded ranges.
    pub count: u64,
    /// Cycles of the ranges that are this block and nothing else.
    pub cycles: Distribution,
}

/// What the addresses of a recording are.
#[derive(Debug)]
pub struct Places(Code);

impl Places {
    /// The module of this number.
    pub fn module(&self, number: usize) -> Option<&Module> {
        self.0.module(number)
    }

    /// All modules, by number.
    pub fn modules(&self) -> &[Module] {
        self.0.modules()
    }

    /// The function at an address.
    pub fn function(&mut self, place: ModuleAddress) -> Option<Function> {
        self.0.function(place)
    }

    /// What a branch does; `None` where its code is not known.
    pub fn branch(&mut self, place: ModuleAddress) -> Option<FlowControl> {
        self.0.branch(place).map(|(kind, _)| kind)
    }
}

/// Analyses the samples of each event; `None` for events without branches, and those that are not
/// `wanted`. Programs are searched in `search`. Returns also the limits of the records that a report must
/// state.
///
/// # Errors
/// The recording cannot be read.
pub fn analyse(
    stream: &Stream,
    wanted: Option<usize>,
    search: &SearchPaths,
) -> Result<(Vec<Option<Analysis>>, Vec<String>)> {
    let spaces = || AddressSpaces::new(search.clone(), &stream.about.build_ids);
    let mut all = vec![Sums::default(); stream.about.events.len()];
    let mut first = spaces();
    let notes = windows(stream, &mut first, &mut |event, window| {
        if let Some(sums) = all.get_mut(event) {
            sums.add(window);
        }
    })?;
    let code = |sums: &Sums| {
        let symbols = Symbols::new(search.clone()).with_origin(origin(&stream.about));
        Code::new(symbols, first.modules.all.clone(), targets(sums))
    };
    let is_wanted =
        |event: usize, sums: &Sums| wanted.is_none_or(|wanted| wanted == event) && sums.entries > 0;
    let mut found: Vec<Option<(Sums, Loops, Code)>> = all
        .into_iter()
        .enumerate()
        .map(|(event, sums)| {
            is_wanted(event, &sums).then(|| {
                let mut code = code(&sums);
                let loops = loops(&sums, &mut code);
                (sums, loops, code)
            })
        })
        .collect();
    // Again, now that the loops are known.
    windows(stream, &mut spaces(), &mut |event, window| {
        if let Some((_, loops, code)) = found.get_mut(event).and_then(Option::as_mut) {
            loops.add(window, code);
        }
    })?;
    let finish = |(sums, loops, mut code): (Sums, Loops, Code)| {
        let blocks = blocks(&sums, &mut code);
        Analysis { sums, loops: loops.finish(), blocks, places: Places(code) }
    };
    Ok((found.into_iter().map(|one| one.map(finish)).collect(), notes))
}

/// The same of counts of a program's code: without times, trips and iterations.
pub fn of_counts(counts: &Counts, program: &Program, search: &SearchPaths) -> Analysis {
    let module = Module {
        path: program.path().to_owned(),
        kind: ModuleKind::File,
        build_id: program.build_id().map(<[u8]>::to_vec),
        ..Module::default()
    };
    let sums = Sums::of_counts(counts);
    let mut code = Code::new(Symbols::new(search.clone()), vec![module], targets(&sums));
    let loops = loops(&sums, &mut code).counted(|from, to| {
        let edge = Edge { from: Some(from), to: Some(to) };
        sums.edges.get(&edge).map_or(0, |sum| sum.count)
    });
    let blocks = blocks(&sums, &mut code);
    Analysis { sums, loops, blocks, places: Places(code) }
}

/// The loops that the recorded branches close.
fn loops(sums: &Sums, code: &mut Code) -> Loops {
    let edges: BTreeSet<&Edge> = sums.edges.keys().collect();
    let both = edges.into_iter().filter_map(|edge| Some((edge.from?, edge.to?)));
    Loops::new(both.filter_map(|(a, b)| Some(((a, b), code.shape(a, b)?))).collect())
}

fn targets(sums: &Sums) -> HashMap<usize, BTreeSet<u64>> {
    let mut all: HashMap<usize, BTreeSet<u64>> = HashMap::new();
    for to in sums.edges.keys().filter_map(|edge| edge.to) {
        all.entry(to.module).or_default().insert(to.address);
    }
    all
}

fn blocks(sums: &Sums, code: &mut Code) -> Vec<BlockSum> {
    let mut functions: BTreeMap<(usize, u64), Function> = BTreeMap::new();
    let ranges: BTreeMap<Range, _> = sums.ranges.iter().map(|(range, sum)| (*range, sum)).collect();
    for range in ranges.keys() {
        let place = ModuleAddress { module: range.module, address: range.first };
        if let Some(function) = code.function(place) {
            functions.insert((range.module, function.start), function);
        }
    }
    let mut all = Vec::new();
    for ((module, _), function) in functions {
        let Some(flow) = code.flow(module, &function) else { continue };
        // A range lies in one function, but for tail calls that fall through, which no compiler emits.
        let own: Vec<_> = ranges
            .range(
                Range { module, first: function.start, last: 0 }..Range {
                    module,
                    first: function.end,
                    last: 0,
                },
            )
            .collect();
        for block in &flow.blocks {
            let mut sum = BlockSum {
                module,
                function: function.short.clone(),
                start: block.start,
                end: block.end,
                count: 0,
                cycles: Distribution::default(),
            };
            let covers =
                own.iter().filter(|(r, _)| r.first <= block.start && block.start <= r.last);
            for (range, found) in covers {
                sum.count = sum.count.saturating_add(found.count);
                if range.first == block.start && range.last < block.end {
                    sum.cycles.add_all(&found.cycles);
                }
            }
            if sum.count > 0 {
                all.push(sum);
            }
        }
    }
    all
}
