//! Counts that are shown beside the samples of code: exact ones of another run, those of recorded branch stacks,
//! and recorded samples of loads.

#[cfg(test)]
mod tests;

use profile::hot::{AnnotatedBlock, HotFunction};
use report::documents::branches::{Branches, EventRow};
use report::documents::count::{Count, LoadClass, LoadRow};
use report::documents::loads::{self, Shares};
use report::format;
use std::collections::{BTreeMap, HashMap};

/// A block's counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlockCounts {
    /// How often it was entered.
    pub entries: Option<u64>,
    /// Share of its entries that left it for each successor, 0 to 1.
    pub edges: Vec<Option<f64>>,
    /// Entries of the loop that begins here, and its iterations of each.
    pub loops: Option<(u64, f64)>,
    /// Least iterations of a loop of which no execution was recorded from beginning to end.
    pub at_least: Option<u64>,
    /// Cost of an entry.
    pub each: Option<Each>,
    /// Mispredictions of its branch.
    pub mispredicted: Option<Mispredicted>,
}

/// Mispredictions of a branch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mispredicted {
    /// Executions that were taken.
    pub taken: u64,
    /// Mispredicted ones of those.
    pub wrong: u64,
    /// Whether it is hard to predict.
    pub hard: bool,
}

/// Cost of an entry of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Each {
    /// Sampled time in seconds, and its error as a ratio.
    Seconds(f64, f64),
    /// Recorded cycles: their mean.
    Cycles(f64),
}

/// The counts of a file.
#[derive(Debug, Clone, Default, PartialEq)]
struct Module {
    /// By first address.
    blocks: BTreeMap<u64, u64>,
    /// Their ends, where known.
    ends: HashMap<u64, u64>,
    edges: HashMap<(u64, u64), u64>,
    loops: HashMap<u64, (u64, f64)>,
    /// Fewest possible iterations of loops of which no whole execution was recorded.
    at_least: HashMap<u64, u64>,
    /// Mean cycles, by first address of blocks.
    cycles: HashMap<u64, f64>,
    /// Mispredictions of the branches that end blocks.
    mispredicted: HashMap<u64, Mispredicted>,
    /// Loads in words, by address.
    loads: HashMap<u64, String>,
}

/// The counts of a document, by file name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    modules: HashMap<String, Module>,
    /// Source, for a line of the screen.
    pub source: String,
    /// The counted command.
    command: Vec<String>,
    /// Whether they are samples: how often something was recorded.
    pub is_recorded: bool,
}

/// The name of a file.
fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// `4,096 executions, mean 9.1 ns, e->next, 97 % malloc in build, list.c:14, L1 90 %, DRAM 10 %, pointer chase`: what it
/// reads comes before the levels, which are cut first where the row ends.
fn load(document: &Count, row: &LoadRow) -> String {
    let mut parts = Vec::new();
    parts.extend(row.executions.map(|n| format!("{} executions", format::count(n as f64))));
    parts.extend(row.latency.as_ref().map(|latency| format!("mean {:.1} ns", latency.mean)));
    parts.extend(row.field.clone());
    parts.extend(document.memory_of(row));
    let levels = row.levels.iter().filter(|level| level.share >= 0.005);
    parts.extend(levels.map(|level| format!("{} {:.0} %", level.level, 100.0 * level.share)));
    parts.extend(row.class.as_ref().map(LoadClass::words));
    parts.join(", ")
}

impl Counts {
    /// The counts of a document.
    pub fn new(document: &Count) -> Self {
        let source = match document.process {
            Some(pid) => format!("counts of a window of process {pid}"),
            None => format!("counts of another run: {}", document.command.join(" ")),
        };
        let command = document.command.clone();
        let mut all = Self { source, command, ..Self::default() };
        for row in &document.blocks {
            let module = all.modules.entry(file_name(&row.module)).or_default();
            module.blocks.insert(row.start.0, row.count);
        }
        for row in &document.edges {
            let module = all.modules.entry(file_name(&row.module)).or_default();
            if let Some(count) = row.count {
                module.edges.insert((row.from.0, row.to.0), count);
            }
        }
        for row in &document.loops {
            let module = all.modules.entry(file_name(&row.module)).or_default();
            if let (Some(entries), Some(mean)) = (row.entries, row.trips.mean) {
                module.loops.insert(row.head.0, (entries, mean));
            }
        }
        for row in &document.loads {
            let module = all.modules.entry(file_name(&row.module)).or_default();
            module.loads.insert(row.address.0, load(document, row));
        }
        all
    }

    /// The load at an address of a function, in words.
    pub fn load_at(&self, function: &HotFunction, address: u64) -> Option<&str> {
        Some(self.modules.get(&file_name(&function.path))?.loads.get(&address)?)
    }

    /// Whether a sampled command was the counted one, so that its time may be divided by entries. Its path may
    /// differ.
    pub fn is_of(&self, command: Option<&[String]>) -> bool {
        match (self.command.split_first(), command.and_then(<[String]>::split_first)) {
            (Some((own, rest)), Some((sampled, others))) => {
                file_name(own) == file_name(sampled) && rest == others
            }
            _ => false,
        }
    }

    /// Counts of a recording's events with branch stacks, each with its number.
    pub fn of_events(document: &Branches) -> Vec<(usize, Self)> {
        document.events.iter().map(|event| (event.event, Self::recorded(document, event))).collect()
    }

    fn recorded(document: &Branches, event: &EventRow) -> Self {
        let source = format!("counts of recorded branches ({}, {})", event.name, event.bias);
        let mut all = Self { source, is_recorded: true, ..Self::default() };
        for row in document.blocks.iter().filter(|row| row.event == event.event) {
            let module = all.modules.entry(file_name(&row.module)).or_default();
            module.blocks.insert(row.start.0, row.count);
            module.ends.insert(row.start.0, row.end.0);
            module.cycles.extend(row.cycles_mean.map(|mean| (row.start.0, mean)));
        }
        for row in document.edges.iter().filter(|row| row.event == event.event) {
            let (Some(from), Some(to)) = (row.from, row.to) else { continue };
            let Some(module) = all.modules.get_mut(&file_name(&row.module)) else { continue };
            let Some(start) = module.block_at(from.0) else { continue };
            let taken = module.edges.entry((start, to.0)).or_default();
            *taken = taken.saturating_add(row.count);
            if let Some(count) = row.mispredicted {
                let own = module.mispredicted.entry(start).or_default();
                own.taken = own.taken.saturating_add(row.marked);
                own.wrong = own.wrong.saturating_add(count);
                own.hard |= row.hard;
            }
        }
        for row in document.loops.iter().filter(|row| row.event == event.event) {
            let Some(module) = all.modules.get_mut(&file_name(&row.module)) else { continue };
            let head = row.head.0;
            // The first of several branches back is the most frequent one and shows most.
            if let Some(mean) = row.trips.mean.filter(|_| row.trips.mean_at_least.is_none()) {
                module.loops.entry(head).or_insert((row.trips.whole, mean));
            }
            let least = row.trips.mean_at_least.map(|least| least as u64);
            if let Some(least) = least.or(row.trips.at_least) {
                let most = module.at_least.entry(head).or_default();
                *most = least.max(*most);
            }
        }
        all.modules.values_mut().for_each(Module::fall_through);
        all
    }

    /// The counts of a block of a function; `seconds` is the time of all samples.
    pub fn of(
        &self,
        function: &HotFunction,
        block: &AnnotatedBlock,
        seconds: Option<f64>,
    ) -> Option<BlockCounts> {
        let module = self.modules.get(&file_name(&function.path))?;
        let own = &block.block;
        let entries = module.blocks.get(&own.start).copied();
        // It may have been counted in several parts.
        let (last, left) = module.blocks.range(own.start..own.end).next_back()?;
        // A sample's oldest branch has no entry of its block.
        let all: u64 = block.edges.iter().filter_map(|to| module.edges.get(&(*last, *to))).sum();
        let share = |to: &u64| {
            let taken = *module.edges.get(&(*last, *to))?;
            (*left > 0).then(|| taken as f64 / all.max(*left) as f64)
        };
        let sampled = entries.filter(|n| *n > 0 && own.samples > 0 && !self.is_recorded);
        let sampled = sampled.zip(seconds).map(|(n, seconds)| {
            // Two standard deviations of the number of samples.
            Each::Seconds(seconds * own.share / n as f64, 2.0 / (own.samples as f64).sqrt())
        });
        Some(BlockCounts {
            entries,
            edges: block.edges.iter().map(share).collect(),
            loops: module.loops.get(&own.start).copied(),
            at_least: module.at_least.get(&own.start).copied(),
            each: sampled.or(module.cycles.get(&own.start).copied().map(Each::Cycles)),
            mispredicted: module.mispredicted.get(last).copied(),
        })
    }
}

impl Module {
    /// The first address of the block with an address.
    fn block_at(&self, address: u64) -> Option<u64> {
        let (start, _) = self.blocks.range(..=address).next_back()?;
        (address < *self.ends.get(start)?).then_some(*start)
    }

    /// Branches that were not taken go on with the next block.
    fn fall_through(&mut self) {
        for (start, count) in &self.blocks {
            let Some(end) = self.ends.get(start) else { continue };
            let taken: u64 = self
                .edges
                .iter()
                .filter(|((from, to), _)| from == start && to != end)
                .map(|(_, n)| n)
                .sum();
            if let Some(rest) = count.checked_sub(taken) {
                self.edges.entry((*start, *end)).or_insert(rest);
            }
        }
    }
}

/// The samples of a load, or of several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadSamples {
    /// Share of all loads, 0 to 1.
    pub share: f64,
    pub samples: u64,
    /// Σ latency in cycles, and samples with one.
    cycles: f64,
    timed: f64,
    /// Samples by what served them.
    levels: [u64; LEVELS.len()],
    /// Operand of a single load in the source and the variables that it reads, as far as known.
    data: Vec<String>,
    /// How its addresses are made.
    class: Option<String>,
}

/// Names of levels, as in the tables of `tdtool loads`.
const LEVELS: [&str; 8] = ["LFB", "L1", "L2", "L3", "DRAM", "remote DRAM", "remote cache", "other"];

/// The loads of a recording, by file name and address.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loads {
    modules: HashMap<String, BTreeMap<u64, LoadSamples>>,
    /// Source, for a line of the screen.
    pub source: String,
}

impl Loads {
    /// Loads of a recording's events, each with its number.
    pub fn of_events(document: &loads::Loads) -> Vec<(usize, Self)> {
        let with_loads = document.events.iter().filter(|event| event.loads > 0);
        with_loads.map(|event| (event.event, Self::recorded(document, event))).collect()
    }

    fn recorded(document: &loads::Loads, event: &loads::EventRow) -> Self {
        let of = if event.shares == Shares::Latency { "latency × period" } else { "period" };
        let limit = event.least_latency.map_or(String::new(), |n| format!(", from {n} cycles on"));
        let source = format!(
            "loads: {} samples of {}{limit}, shares weighted by {of}",
            event.loads, event.name
        );
        let mut all = Self { modules: HashMap::new(), source };
        for row in document.loads.iter().filter(|row| row.event == event.event) {
            let module = all.modules.entry(file_name(&row.module)).or_default();
            module.insert(row.address.0, LoadSamples::of(row));
        }
        all
    }

    /// The load at an address of a function.
    pub fn at(&self, function: &HotFunction, address: u64) -> Option<&LoadSamples> {
        self.modules.get(&file_name(&function.path))?.get(&address)
    }

    /// The loads between two addresses of a function's module.
    pub fn between(&self, function: &HotFunction, start: u64, end: u64) -> Option<LoadSamples> {
        let module = self.modules.get(&file_name(&function.path)).filter(|_| start < end)?;
        let mut own = module.range(start..end).map(|(_, load)| load).peekable();
        own.peek()?;
        Some(own.fold(LoadSamples::default(), LoadSamples::plus))
    }
}

impl LoadSamples {
    fn of(row: &loads::LoadRow) -> Self {
        let own = &row.levels;
        let timed = if row.latency_mean.is_some() { row.samples as f64 } else { 0.0 };
        Self {
            share: row.share,
            samples: row.samples,
            cycles: row.latency_mean.unwrap_or(0.0) * timed,
            timed,
            levels: [
                own.lfb,
                own.l1,
                own.l2,
                own.l3,
                own.ram,
                own.remote_ram,
                own.remote_cache,
                own.other,
            ],
            data: row
                .operand()
                .filter(|_| row.field.is_some())
                .into_iter()
                .chain(row.data())
                .collect(),
            class: row.pattern.clone().or(row.class.map(|class| class.to_string())),
        }
    }

    fn plus(mut self, other: &Self) -> Self {
        self.share += other.share;
        self.samples += other.samples;
        self.cycles += other.cycles;
        self.timed += other.timed;
        for (own, more) in self.levels.iter_mut().zip(other.levels) {
            *own += more;
        }
        self
    }

    /// `62.2 % of loads, 50 cycles, L3 83 %, DRAM 17 %`; of a single load also what it reads, before the levels, which
    /// are cut first where the row ends.
    pub fn text(&self) -> String {
        let mut parts = vec![format!("{:.1} % of loads", 100.0 * self.share)];
        parts.extend(self.mean().map(|mean| format!("{mean:.0} cycles")));
        parts.extend(self.data.iter().cloned());
        let all: u64 = self.levels.iter().sum();
        let share = |n: u64| 100.0 * n as f64 / all.max(1) as f64;
        let served = LEVELS.iter().zip(self.levels).filter(|(_, n)| share(*n) >= 0.5);
        parts.extend(served.map(|(level, n)| format!("{level} {:.0} %", share(n))));
        parts.extend(self.class.iter().cloned());
        parts.join(", ")
    }

    /// Mean latency in cycles.
    pub fn mean(&self) -> Option<f64> {
        (self.timed > 0.0).then(|| self.cycles / self.timed)
    }
}
