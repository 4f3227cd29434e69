//! A recording → edges, ranges, blocks and loops of one event. A recording of moderate size is decoded once: its
//! windows are kept in memory.

use super::code::Code;
use super::sums::{Distribution, Growing, Sums};
use super::walk::{LoopShape, LoopSum, Loops};
use super::window::{Edge, Edges, Range, Step, Window, numbered};
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
    /// Modules of the addresses.
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

/// Code at the addresses of a recording.
#[derive(Debug)]
pub struct Places(Code);

impl Places {
    /// The module of this number.
    pub fn module(&self, number: usize) -> Option<&Module> {
        self.0.of.modules.get(number)
    }

    /// All modules, by number.
    pub fn modules(&self) -> &[Module] {
        &self.0.of.modules
    }

    /// The function at an address.
    pub fn function(&mut self, place: ModuleAddress) -> Option<Function> {
        self.0.of.function(place)
    }

    /// Kind of a branch; `None` where its code is not known.
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
    let spaces = || AddressSpaces::of(&stream.about, search.clone());
    let is_wanted = |event: usize| wanted.is_none_or(|wanted| wanted == event);
    let mut sums = Growing::new(stream.about.events.len());
    let (mut first, mut edges, mut saved) = (spaces(), Edges::default(), Saved::default());
    let notes = numbered(stream, &mut first, &mut edges, &mut |event, window| {
        if is_wanted(event) {
            sums.add(event, window);
            saved.add(event, window);
        }
    })?;
    let code = |sums: &Sums| {
        let symbols = Symbols::new(search.clone()).with_origin(origin(&stream.about));
        Code::new(symbols, first.modules.all.clone(), targets(sums))
    };
    let mut found: Vec<Option<(Sums, Loops, Code)>> = sums
        .finish(&edges)
        .into_iter()
        .enumerate()
        .map(|(event, sums)| {
            (sums.entries > 0).then(|| {
                let mut code = code(&sums);
                let loops = loops(&sums, &mut code, |edge| edges.number(event, edge));
                (sums, loops, code)
            })
        })
        .collect();
    // Again, now that the loops are known.
    let mut again = |event: usize, window: &Window| {
        if let Some((_, loops, code)) = found.get_mut(event).and_then(Option::as_mut) {
            loops.add(window, code);
        }
    };
    if saved.each(&edges, &mut again).is_none() {
        numbered(stream, &mut spaces(), &mut edges, &mut again)?;
    }
    let finish = |(sums, loops, mut code): (Sums, Loops, Code)| {
        let blocks = blocks(&sums, &mut code);
        let loops = loops.finish(|from, to| sums.taken(from, to));
        Analysis { sums, loops, blocks, places: Places(code) }
    };
    Ok((found.into_iter().map(|one| one.map(finish)).collect(), notes))
}

/// Analysis of counts of a program's code: without times, trips and iterations.
pub fn of_counts(counts: &Counts, program: &Program, search: &SearchPaths) -> Analysis {
    let module = Module {
        path: program.path().to_owned(),
        kind: ModuleKind::File,
        build_id: program.build_id().map(<[u8]>::to_vec),
        ..Module::default()
    };
    let sums = Sums::of_counts(counts);
    let mut code = Code::new(Symbols::new(search.clone()), vec![module], targets(&sums));
    let loops = loops(&sums, &mut code, |_| Some(0)).finish(|from, to| sums.taken(from, to));
    let blocks = blocks(&sums, &mut code);
    Analysis { sums, loops, blocks, places: Places(code) }
}

/// The loops that the recorded branches close.
fn loops(sums: &Sums, code: &mut Code, number: impl Fn(&Edge) -> Option<u32>) -> Loops {
    let edges: BTreeSet<&Edge> = sums.edges.keys().collect();
    let shapes = edges.into_iter().filter_map(|edge| {
        let shape = code.shape(edge.from?, edge.to?)?;
        Some((number(edge)?, shape))
    });
    Loops::new(shapes.collect())
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
        if let Some(function) = code.of.function(place) {
            functions.insert((range.module, function.start), function);
        }
    }
    let mut all = Vec::new();
    for ((module, _), function) in functions {
        let start = ModuleAddress { module, address: function.start };
        let Some(flow) = code.of.flow(start) else { continue };
        let at = |first| Range { module, first, last: 0 };
        // A range lies in one function, but for tail calls that fall through, which no compiler emits.
        let own = ranges.range(at(function.start)..at(function.end.max(function.start)));
        let mut entered = Entered::new(own.map(|(range, sum)| (*range, sum.count)));
        for block in &flow.blocks {
            let count = entered.at(block.start);
            if count == 0 {
                continue;
            }
            let mut cycles = Distribution::default();
            let alone = ranges.range(at(block.start)..=Range { last: u64::MAX, ..at(block.start) });
            alone
                .filter(|(range, _)| range.last < block.end)
                .for_each(|(_, sum)| cycles.add_all(&sum.cycles));
            let (start, end) = (block.start, block.end);
            let function = function.short.clone();
            all.push(BlockSum { module, function, start, end, count, cycles });
        }
    }
    all
}

/// How many of a function's ranges cover an address; addresses are asked for in ascending order.
struct Entered {
    /// Where ranges begin and where they have ended, the next ones last.
    changes: Vec<(u64, i128)>,
    now: i128,
}

impl Entered {
    fn new(ranges: impl Iterator<Item = (Range, u64)>) -> Self {
        let mut changes = Vec::new();
        for (range, count) in ranges {
            changes.push((range.first, i128::from(count)));
            changes.extend(range.last.checked_add(1).map(|after| (after, -i128::from(count))));
        }
        changes.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self { changes, now: 0 }
    }

    fn at(&mut self, address: u64) -> u64 {
        while let Some((_, change)) = self.changes.pop_if(|(at, _)| *at <= address) {
            self.now += change;
        }
        u64::try_from(self.now).unwrap_or(u64::MAX)
    }
}

/// Most branches saved: 48 MiB.
const MOST: usize = 1 << 22;

/// The windows of a recording, without places and weights.
#[derive(Debug, Default)]
pub struct Saved {
    windows: Vec<SavedWindow>,
    steps: Vec<SavedStep>,
    is_full: bool,
}

#[derive(Debug)]
struct SavedWindow {
    event: u32,
    /// The window before ends with the branch before this one's.
    continues: bool,
    is_sample: bool,
    /// Number of the step after its last.
    end: u32,
}

#[derive(Debug, Clone, Copy)]
struct SavedStep {
    edge: u32,
    cycles: Option<u16>,
    mispredicted: Option<bool>,
}

impl Saved {
    /// Saves a window with branches, if there is room for it.
    pub fn add(&mut self, event: usize, window: &Window) {
        if window.entries == 0 {
            return;
        }
        if self.is_full || window.steps.len() > MOST - self.steps.len() {
            *self = Self { is_full: true, ..Self::default() };
            return;
        }
        self.steps.extend(window.steps.iter().map(|step| SavedStep {
            edge: step.edge,
            cycles: step.cycles,
            mispredicted: step.mispredicted,
        }));
        self.windows.push(SavedWindow {
            event: event as u32,
            continues: window.previous.is_some(),
            is_sample: window.is_sample,
            end: self.steps.len() as u32,
        });
    }

    /// Calls `visit` with the event and the saved part of each window; `None` if there was no room for all.
    pub fn each(&self, edges: &Edges, visit: &mut dyn FnMut(usize, &Window)) -> Option<()> {
        let mut window = Window::default();
        let mut start = 0;
        for saved in (!self.is_full).then_some(&self.windows)? {
            let end = saved.end as usize;
            window.previous = window.steps.last().copied().filter(|_| saved.continues);
            window.is_sample = saved.is_sample;
            window.steps.clear();
            window.steps.extend(self.steps[start..end].iter().map(|step| {
                let edge = edges.get(step.edge);
                Step {
                    edge: step.edge,
                    from: edge.from,
                    to: edge.to,
                    mispredicted: step.mispredicted,
                    cycles: step.cycles,
                }
            }));
            start = end;
            visit(saved.event as usize, &window);
        }
        Some(())
    }
}
