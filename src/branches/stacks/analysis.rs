//! A recording → edges, ranges, blocks and loops of one event.

use super::code::Code;
use super::distribution::Distribution;
use super::loops::{self, LoopShape, LoopSum};
use super::sums::{Edge, Sums};
use super::window::{Range, Window, windows};
use iced_x86::FlowControl;
use profile::address_space::{AddressSpaces, ModuleAddress};
use profile::files::SearchPaths;
use profile::hot::origin;
use profile::module::Module;
use profile::recording::Stream;
use profile::symbols::{Function, Symbols};
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
    let mut found: Vec<Option<(Sums, Loops)>> = all
        .into_iter()
        .enumerate()
        .map(|(event, sums)| {
            is_wanted(event, &sums).then(|| {
                let loops = Loops::new(&sums, code(&sums));
                (sums, loops)
            })
        })
        .collect();
    // Again, now that the loops are known.
    windows(stream, &mut spaces(), &mut |event, window| {
        if let Some((_, loops)) = found.get_mut(event).and_then(Option::as_mut) {
            loops.add(window);
        }
    })?;
    let finish = |(sums, loops): (Sums, Loops)| {
        let (loops, mut code) = loops.finish();
        let blocks = blocks(&sums, &mut code);
        Analysis { sums, loops, blocks, places: Places(code) }
    };
    Ok((found.into_iter().map(|one| one.map(finish)).collect(), notes))
}

fn targets(sums: &Sums) -> HashMap<usize, BTreeSet<u64>> {
    let mut all: HashMap<usize, BTreeSet<u64>> = HashMap::new();
    for to in sums.edges.keys().filter_map(|edge| edge.to) {
        all.entry(to.module).or_default().insert(to.address);
    }
    all
}

/// The loops of an event.
struct Loops {
    code: Code,
    shapes: Vec<LoopShape>,
    by_edge: HashMap<(ModuleAddress, ModuleAddress), usize>,
    found: Vec<LoopSum>,
}

impl Loops {
    fn new(sums: &Sums, mut code: Code) -> Self {
        let edges: BTreeSet<&Edge> = sums.edges.keys().collect();
        let both = edges.into_iter().filter_map(|edge| Some((edge.from?, edge.to?)));
        let mut by_edge = HashMap::new();
        let mut shapes = Vec::new();
        for (from, to) in both {
            if let Some(shape) = code.shape(from, to) {
                by_edge.insert((from, to), shapes.len());
                shapes.push(shape);
            }
        }
        let found = vec![LoopSum::default(); shapes.len()];
        Self { code, shapes, by_edge, found }
    }

    fn add(&mut self, window: &Window) {
        loops::add(window, &self.shapes, &self.by_edge, &mut self.code, &mut self.found);
    }

    fn finish(self) -> (Vec<(LoopShape, LoopSum)>, Code) {
        let mut all: Vec<_> = self.shapes.into_iter().zip(self.found).collect();
        all.sort_by(|(a, x), (b, y)| {
            y.taken.cmp(&x.taken).then((a.module, a.head, a.back).cmp(&(b.module, b.head, b.back)))
        });
        (all, self.code)
    }
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
                sum.count += found.count;
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
