//! The code around sampled instructions and its accesses to memory; recorded branches → executions of loads, and
//! trips of the loops around them.

use crate::branches::rows;
use crate::trips;
use branches::stacks::{Analysis, LONGEST_RANGE, analyse};
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess};
use loads::prefetch::TripCount;
use pmu::records::format::field;
use profile::address_space::ModuleAddress;
use profile::code::Code;
use profile::event::Event;
use profile::files::SearchPaths;
use profile::hot::origin;
use profile::module::Module;
use profile::recording::Stream;
use profile::symbols::Symbols;
use report::documents::loads::{BranchRow, BranchesRow};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use tma::Result;

/// A module in several recordings: path and build-id.
pub(crate) type ModuleKey = (String, Option<Vec<u8>>);

pub(crate) fn key(module: &Module) -> ModuleKey {
    (module.path.clone(), module.build_id.clone())
}

/// Whether an event's samples may have branch stacks; of text and traces the format is not known.
pub(crate) fn may_have_stacks(event: &Event) -> bool {
    let kind = event.format.sample_type;
    kind == 0 || kind & field::BRANCH_STACK != 0
}

/// Cycles by module and range: its first and last instruction.
type CyclesOf = HashMap<ModuleKey, BTreeMap<(u64, u64), f64>>;

/// Trips of a loop.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trips {
    /// How often its back edge was taken.
    taken: u64,
    /// The mean of the trips, if known.
    pub mean: Option<f64>,
    /// The least that the mean can be, else.
    pub at_least: Option<u64>,
}

/// Sums over all branch stacks.
#[derive(Debug, Default)]
pub(crate) struct Executed {
    /// Events with branch stacks.
    pub events: Vec<BranchesRow>,
    /// Branches that are mispredicted often.
    pub hard: Vec<BranchRow>,
    /// Observed targets.
    targets: HashMap<ModuleKey, BTreeSet<u64>>,
    /// Trips by head.
    trips: HashMap<(ModuleKey, u64), Trips>,
    /// Estimated executions of loads, by event.
    executions: Vec<HashMap<(ModuleKey, u64), f64>>,
    /// Estimated cycles spent in ranges (first and last instruction), by event.
    cycles: Vec<CyclesOf>,
}

impl Executed {
    /// Adds the branch stacks of a recording whose events have the numbers from `first` on.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn add(&mut self, stream: &Stream, first: usize, search: &SearchPaths) -> Result<()> {
        if !stream.about.events.iter().any(may_have_stacks) {
            return Ok(());
        }
        // The limits of the records are stated with the loads.
        let (found, _) = analyse(stream, None, search)?;
        let of_events = found.into_iter().zip(&stream.about.events).enumerate();
        for (number, (found, event)) in of_events {
            let Some(mut found) = found else { continue };
            self.targets(&found);
            self.trips(&found);
            self.hard(&mut found, first + number);
            let symbols = Symbols::new(search.clone()).with_origin(origin(&stream.about));
            let executions = executions(&found, symbols);
            let total: f64 = executions.values().sum();
            self.events.push(BranchesRow {
                event: first + number,
                source: stream.about.source.clone(),
                name: event.name.clone(),
                samples: found.sums.samples,
                executed_loads: (total > 0.0).then_some(total),
            });
            self.executions.push(executions);
            self.cycles.push(cycles(&found));
        }
        Ok(())
    }

    fn targets(&mut self, found: &Analysis) {
        for to in found.sums.edges.keys().filter_map(|edge| edge.to) {
            let Some(module) = found.places.module(to.module) else { continue };
            self.targets.entry(key(module)).or_default().insert(to.address);
        }
    }

    fn trips(&mut self, found: &Analysis) {
        for (shape, sum) in &found.loops {
            let Some(module) = found.places.module(shape.module) else { continue };
            let own = self.trips.entry((key(module), shape.head)).or_default();
            if sum.taken > own.taken {
                let count = trips::recorded(sum, &found.sums).count();
                let (mean, at_least) = match count {
                    TripCount::AtLeast(trips) => (None, Some(trips as u64)),
                    other => (other.least(), None),
                };
                *own = Trips { taken: sum.taken, mean, at_least };
            }
        }
    }

    fn hard(&mut self, found: &mut Analysis, event: usize) {
        let hard = rows::known(found).into_iter().filter(|(_, branch)| branch.is_hard());
        let mut rows: Vec<BranchRow> = hard
            .map(|(place, branch)| BranchRow {
                event,
                module: found
                    .places
                    .module(place.module)
                    .map(|m| m.path.clone())
                    .unwrap_or_default(),
                address: place.address.into(),
                function: found.places.function(place).map(|function| function.short),
                taken: branch.marked,
                mispredicted: branch.mispredicted,
                executions: branch.executions,
                share: branch.mispredicted as f64 / branch.marked.max(1) as f64,
                share_of_executions: branch.executions.map(|_| branch.share()),
                ..BranchRow::default()
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.mispredicted));
        self.hard.extend(rows);
    }

    /// Observed targets in these modules.
    pub fn targets_in(&self, modules: &[Module]) -> HashMap<usize, BTreeSet<u64>> {
        let known = |(number, module): (usize, &Module)| {
            Some((number, self.targets.get(&key(module))?.clone()))
        };
        modules.iter().enumerate().filter_map(known).collect()
    }

    /// Trips of the loop with this head.
    pub fn trips_of(&self, module: &Module, head: u64) -> Option<Trips> {
        self.trips.get(&(key(module), head)).copied()
    }

    /// Cycles of the ranges that touch the code of a loop, in the whole run, by the first event that knows it:
    /// at least those spent in the loop.
    pub fn cycles_in(&self, module: &Module, body: &[Range<u64>]) -> Option<f64> {
        let (start, end) = (body.first()?.start, body.last()?.end);
        let from = (start.saturating_sub(LONGEST_RANGE), 0);
        let touches =
            |first: u64, last: u64| body.iter().any(|part| first < part.end && part.start <= last);
        let known = self.cycles.iter().filter_map(|all| all.get(&key(module)));
        let mut sums = known.map(|all| -> f64 {
            let near = all.range(from..(end, 0));
            near.filter(|((first, last), _)| touches(*first, *last)).map(|(_, n)| n).sum()
        });
        sums.find(|sum| *sum > 0.0)
    }

    /// Executions of a load, and of all loads: by the first event that knows it.
    pub fn executions_of(&self, module: &Module, address: u64) -> Option<(f64, f64)> {
        let wanted = (key(module), address);
        let known = self.executions.iter().zip(&self.events);
        known.into_iter().find_map(|(own, event)| Some((*own.get(&wanted)?, event.executed_loads?)))
    }
}

/// Estimated cycles in the recorded ranges, of which each has the cycles up to its last branch.
fn cycles(found: &Analysis) -> CyclesOf {
    let mut all: CyclesOf = HashMap::new();
    for (range, sum) in found.sums.ranges.iter().filter(|(_, sum)| sum.executions > 0.0) {
        let Some(module) = found.places.module(range.module) else { continue };
        let Some(mean) = sum.cycles.mean() else { continue };
        let own = all.entry(key(module)).or_default();
        *own.entry((range.first, range.last)).or_default() += sum.executions * mean;
    }
    all
}

/// Estimated executions of the loads in the recorded ranges. What lies between the first and the last
/// instruction of overlapping ranges is all code that ran, so it is decoded once.
fn executions(found: &Analysis, symbols: Symbols) -> HashMap<(ModuleKey, u64), f64> {
    let mut changes: BTreeMap<usize, BTreeMap<u64, (f64, f64)>> = BTreeMap::new();
    for (range, sum) in found.sums.ranges.iter().filter(|(_, sum)| sum.executions > 0.0) {
        let module = changes.entry(range.module).or_default();
        module.entry(range.first).or_default().0 += sum.executions;
        module.entry(range.last).or_default().1 += sum.executions;
    }
    let last = changes.keys().next_back().copied().unwrap_or(0);
    let modules = (0..=last).filter_map(|n| found.places.module(n).cloned()).collect();
    let mut code = Code::new(symbols, modules);
    let mut all = HashMap::new();
    for (module, changes) in changes {
        let Some(key) = code.modules.get(module).map(key) else { continue };
        for (first, last) in clusters(&changes) {
            let place = ModuleAddress { module, address: first };
            let Some(bytes) = code.bytes(place, last) else { continue };
            for (address, n) in loads_in(&bytes, first, last, &changes) {
                all.insert((key.clone(), address), n);
            }
        }
    }
    all
}

/// Unions of overlapping ranges: first instruction and last.
fn clusters(changes: &BTreeMap<u64, (f64, f64)>) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    let (mut open, mut first) = (0.0, None);
    for (address, (begin, end)) in changes {
        first = first.or(Some(*address));
        open += begin - end;
        // Sums of fractions do not cancel exactly.
        if open < 1e-6
            && let Some(first) = first.take()
        {
            all.push((first, *address));
        }
    }
    all
}

/// Loads with their executions.
fn loads_in(
    bytes: &[u8],
    first: u64,
    last: u64,
    changes: &BTreeMap<u64, (f64, f64)>,
) -> Vec<(u64, f64)> {
    let mut decoder = Decoder::with_ip(64, bytes, first, DecoderOptions::NONE);
    let mut info = InstructionInfoFactory::new();
    let mut pending = changes.range(first..=last).peekable();
    let (mut all, mut running) = (Vec::new(), 0.0_f64);
    while decoder.can_decode() && decoder.ip() <= last {
        let instruction = decoder.decode();
        let mut ended = 0.0;
        while let Some((_, (begin, end))) = pending.next_if(|(at, _)| **at <= instruction.ip()) {
            running += begin;
            ended += end;
        }
        if !instruction.is_invalid() && memory(&instruction, &mut info).reads {
            all.push((instruction.ip(), running));
        }
        running -= ended;
    }
    all
}

/// Memory that an instruction accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Whether it reads.
    pub reads: bool,
    /// Bytes of its largest access, if they are the same each time.
    pub bytes: Option<u8>,
}

/// The memory accesses of an instruction.
pub(crate) fn memory(instruction: &Instruction, info: &mut InstructionInfoFactory) -> Memory {
    use OpAccess::{CondRead, Read, ReadCondWrite, ReadWrite};
    let mut found = Memory::default();
    for one in info.info(instruction).used_memory() {
        found.reads |= matches!(one.access(), Read | CondRead | ReadWrite | ReadCondWrite);
        let bytes = u8::try_from(one.memory_size().size()).ok().filter(|bytes| *bytes > 0);
        found.bytes = found.bytes.max(bytes);
    }
    found
}
