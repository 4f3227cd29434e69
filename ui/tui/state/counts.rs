//! Exact counts of another run, shown beside the samples.

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
    /// Sampled time of an entry in seconds, and its error as a ratio.
    pub each: Option<(f64, f64)>,
}

/// The counts of a file.
#[derive(Debug, Clone, Default, PartialEq)]
struct Module {
    /// By first address: their ends and counts.
    blocks: BTreeMap<u64, u64>,
    edges: HashMap<(u64, u64), u64>,
    loops: HashMap<u64, (u64, f64)>,
}

/// The counts of a document, by file name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    modules: HashMap<String, Module>,
    /// The command that was counted.
    pub command: String,
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
        let mut all = Self { command: document.command.join(" "), ..Self::default() };
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
        let share = |to: &u64| {
            let taken = *module.edges.get(&(*last, *to))?;
            (*left > 0).then(|| taken as f64 / *left as f64)
        };
        let each =
            entries.filter(|n| *n > 0 && own.samples > 0).zip(seconds).map(|(n, seconds)| {
                // Two standard deviations of the number of samples.
                (seconds * own.share / n as f64, 2.0 / (own.samples as f64).sqrt())
            });
        Some(BlockCounts {
            entries,
            edges: block.edges.iter().map(share).collect(),
            loops: module.loops.get(&own.start).copied(),
            each,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::documents::count::{BlockRow, EdgeRow, LoopRow, Trips};
    use profile::hot::HotBlock;

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
        assert_eq!((found.entries, found.loops), (Some(400), Some((100, 4.0))));
        // Half of 8 s for 400 entries; 2 / √100.
        assert_eq!(found.each, Some((0.01, 0.2)));
    }
}
