//! Counts shown beside the samples: exact ones of another run, or those of recorded branch stacks.

use engine::documents::branches::Branches;
use engine::documents::count::Count;
use profile::hot::{AnnotatedBlock, HotFunction};
use std::collections::{BTreeMap, HashMap};

/// A block's counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlockCounts {
    /// How often it was entered.
    pub entries: Option<u64>,
    /// Share of its entries that left it for each successor, 0 to 1.
    pub edges: Vec<Option<f64>>,
    /// Of a loop that begins here: how often it was entered, and its iterations each time.
    pub loops: Option<(u64, f64)>,
    /// Of a loop of which no execution was recorded from beginning to end: it has at least so many
    /// iterations.
    pub at_least: Option<u64>,
    /// Cost of an entry.
    pub each: Option<Each>,
    /// Share of its branch's executions, where taken, that were mispredicted, 0 to 1.
    pub mispredicted: Option<f64>,
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
    /// Taken branches of blocks, and the mispredicted ones of those.
    mispredicted: HashMap<u64, (u64, u64)>,
}

/// The counts of a document, by file name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    modules: HashMap<String, Module>,
    /// Where they come from, for a line of the screen.
    pub source: String,
    /// The counted command.
    command: Vec<String>,
    /// They are samples themselves: how often something was recorded.
    pub is_recorded: bool,
}

/// The name of a file.
fn name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn address(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0)
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
            let module = all.modules.entry(name(&row.module)).or_default();
            module.blocks.insert(address(&row.start), row.count);
        }
        for row in &document.edges {
            let module = all.modules.entry(name(&row.module)).or_default();
            if let Some(count) = row.count {
                module.edges.insert((address(&row.from), address(&row.to)), count);
            }
        }
        for row in &document.loops {
            let module = all.modules.entry(name(&row.module)).or_default();
            if let (Some(entries), Some(mean)) = (row.entries, row.trips.mean) {
                module.loops.insert(address(&row.head), (entries, mean));
            }
        }
        all
    }

    /// Whether a sampled command was the counted one, so that its time may be divided by entries. Its path may
    /// differ.
    pub fn is_of(&self, command: Option<&[String]>) -> bool {
        match (self.command.split_first(), command.and_then(<[String]>::split_first)) {
            (Some((own, rest)), Some((sampled, others))) => {
                name(own) == name(sampled) && rest == others
            }
            _ => false,
        }
    }

    /// Those of the first event with branch stacks of a recording.
    pub fn recorded(document: &Branches) -> Option<Self> {
        let event = document.events.first()?;
        let source = format!("counts of recorded branches ({}, {})", event.name, event.bias);
        let mut all = Self { source, is_recorded: true, ..Self::default() };
        for row in document.blocks.iter().filter(|row| row.event == event.event) {
            let module = all.modules.entry(name(&row.module)).or_default();
            module.blocks.insert(address(&row.start), row.count);
            module.ends.insert(address(&row.start), address(&row.end));
            module.cycles.extend(row.cycles_mean.map(|mean| (address(&row.start), mean)));
        }
        for row in document.edges.iter().filter(|row| row.event == event.event) {
            let (Some(from), Some(to)) = (&row.from, &row.to) else { continue };
            let Some(module) = all.modules.get_mut(&name(&row.module)) else { continue };
            let Some(start) = module.block_at(address(from)) else { continue };
            *module.edges.entry((start, address(to))).or_default() += row.count;
            if let Some(count) = row.mispredicted {
                let sums = module.mispredicted.entry(start).or_default();
                *sums = (sums.0 + row.count, sums.1 + count);
            }
        }
        for row in document.loops.iter().filter(|row| row.event == event.event) {
            let Some(module) = all.modules.get_mut(&name(&row.module)) else { continue };
            let head = address(&row.head);
            match (row.trips.mean, row.trips.at_least) {
                (Some(mean), _) => drop(module.loops.insert(head, (row.trips.whole, mean))),
                (None, Some(least)) => drop(module.at_least.insert(head, least)),
                (None, None) => {}
            }
        }
        all.modules.values_mut().for_each(Module::fall_through);
        Some(all)
    }

    /// The counts of a block of a function; `seconds` is the time of all samples.
    pub fn of(
        &self,
        function: &HotFunction,
        block: &AnnotatedBlock,
        seconds: Option<f64>,
    ) -> Option<BlockCounts> {
        let module = self.modules.get(&name(&function.path))?;
        let own = &block.block;
        let entries = module.blocks.get(&own.start).copied();
        // It may have been counted in several parts.
        let (last, left) = module.blocks.range(own.start..own.end).next_back()?;
        // Of recorded branches the oldest of a sample has no entry of its block.
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
        let rate = |(taken, wrong): &(u64, u64)| *wrong as f64 / (*taken).max(1) as f64;
        Some(BlockCounts {
            entries,
            edges: block.edges.iter().map(share).collect(),
            loops: module.loops.get(&own.start).copied(),
            at_least: module.at_least.get(&own.start).copied(),
            each: sampled.or(module.cycles.get(&own.start).copied().map(Each::Cycles)),
            mispredicted: module.mispredicted.get(last).map(rate),
        })
    }
}

impl Module {
    /// The first address of the block with an address.
    fn block_at(&self, address: u64) -> Option<u64> {
        let (start, _) = self.blocks.range(..=address).next_back()?;
        (address < *self.ends.get(start)?).then_some(*start)
    }

    /// What was not taken went on with the next block.
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

#[cfg(test)]
mod tests {
    use super::*;
    use engine::documents::branches;
    use engine::documents::count::{BlockRow, EdgeRow, LoopRow, Trips};
    use profile::hot::HotBlock;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_block_has_its_counts_also_if_it_was_counted_in_parts() {
        let module = "/usr/bin/matmul".to_owned();
        let block = |start: &str, count| BlockRow {
            module: module.clone(),
            start: start.to_owned(),
            count,
            ..BlockRow::default()
        };
        let edge = |to: &str, count| EdgeRow {
            module: module.clone(),
            from: "0x14".to_owned(),
            to: to.to_owned(),
            count: Some(count),
        };
        let document = Count {
            blocks: vec![block("0x10", 400), block("0x14", 400)],
            edges: vec![edge("0x10", 300), edge("0x20", 100)],
            loops: vec![LoopRow {
                module: module.clone(),
                head: "0x10".to_owned(),
                entries: Some(100),
                trips: Trips { mean: Some(4.0), ..Trips::default() },
                ..LoopRow::default()
            }],
            ..Count::default()
        };
        let own =
            HotBlock { start: 0x10, end: 0x18, share: 0.5, samples: 100, ..HotBlock::default() };
        let block =
            AnnotatedBlock { block: own, edges: vec![0x10, 0x20], ..AnnotatedBlock::default() };
        let function = HotFunction { path: module, ..HotFunction::default() };
        let found = Counts::new(&document).of(&function, &block, Some(8.0)).unwrap();
        assert_eq!(found.edges, [Some(0.75), Some(0.25)]);
        let counts = Counts::new(&Count { command: words("./matmul 5"), ..document });
        let is_of = |text: &str| counts.is_of(Some(&words(text)));
        assert!(is_of("/usr/bin/matmul 5") && !is_of("./matmul 50") && !counts.is_of(None));
        assert_eq!((found.entries, found.loops), (Some(400), Some((100, 4.0))));
        // Half of 8 s for 400 entries; 2 / √100.
        assert_eq!(found.each, Some(Each::Seconds(0.01, 0.2)));
    }

    #[test]
    fn recorded_branches_give_shares_of_edges_cycles_and_mispredictions() {
        let text = |address: &str| Some(address.to_owned());
        let document = Branches {
            events: vec![branches::EventRow { name: "cycles".into(), ..Default::default() }],
            blocks: vec![branches::BlockRow {
                module: "/a/matmul".into(),
                start: "0x10".into(),
                end: "0x18".into(),
                count: 400,
                cycles_mean: Some(2.5),
                ..Default::default()
            }],
            edges: vec![branches::EdgeRow {
                module: "/a/matmul".into(),
                from: text("0x16"),
                to: text("0x10"),
                count: 300,
                mispredicted: Some(30),
                ..Default::default()
            }],
            loops: vec![branches::LoopRow {
                module: "/a/matmul".into(),
                head: "0x10".into(),
                trips: branches::TripsRow { at_least: Some(31), ..Default::default() },
                ..Default::default()
            }],
            ..Branches::default()
        };
        let own =
            HotBlock { start: 0x10, end: 0x18, share: 0.5, samples: 9, ..HotBlock::default() };
        let block =
            AnnotatedBlock { block: own, edges: vec![0x10, 0x18], ..AnnotatedBlock::default() };
        let function = HotFunction { path: "/b/matmul".into(), ..HotFunction::default() };
        let counts = Counts::recorded(&document).unwrap();
        let found = counts.of(&function, &block, Some(8.0)).unwrap();
        assert_eq!(found.edges, [Some(0.75), Some(0.25)], "what is not taken falls through");
        assert_eq!((found.entries, found.at_least), (Some(400), Some(31)));
        assert_eq!((found.each, found.mispredicted), (Some(Each::Cycles(2.5)), Some(0.1)));
    }
}
