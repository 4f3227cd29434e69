//! Critical loads and hard branches → the instructions that they wait for, and the longest path of latencies through
//! these.

use crate::hot::described;
use isa::deps::memory::Settings;
use isa::deps::{Analyser, Code as Region, CriticalPath, Window, critical_path};
use isa::flow::Flow;
use isa::latency::Latencies;
use isa::program::Located;
use loads::access::paths;
use profile::address_space::ModuleAddress;
use profile::code::Code;
use profile::recording::About;
use report::documents::loads::{Loads, PathRow};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use tma::{Address, Core};

/// Most paths through an iteration that are analysed.
const MOST_PATHS: usize = 8;
/// Longest one, in instructions.
const LONGEST: usize = 512;
/// Most rows of each table with a slice, those with most misses or mispredictions first.
const MOST_ROWS: usize = 50;
/// Fewer samples of a load have no average: the rare slow execution of a load that hits is sampled, too.
const LEAST_SAMPLES: u64 = 10;
/// Runs of the simulation that finds dependencies through memory.
const RUNS: u32 = 3;

/// The code of recordings, and the processor that they are of.
#[derive(Debug, Default)]
pub(super) struct Slices {
    codes: Vec<Code>,
    core: Core,
}

/// A slice: its instructions, and its longest path.
struct Found {
    slice: Vec<Address>,
    path: PathRow,
}

/// Why an instruction has no slice.
enum NoSlice {
    /// Its code is not known.
    NoCode,
    /// It is in no loop, or not in the one that is analysed.
    NoLoop,
    /// All paths through its loop have more than [`LONGEST`] instructions.
    TooLong,
}

impl fmt::Display for NoSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCode => "its code is not known",
            Self::NoLoop => "no loop of its function contains it",
            Self::TooLong => {
                return write!(
                    f,
                    "no path through an iteration has at most {LONGEST} instructions"
                );
            }
        })
    }
}

impl Slices {
    /// Adds a recording.
    pub fn add(&mut self, code: Code, about: &About) {
        self.codes.push(code);
        if self.core.uarch().is_none() {
            let library = crate::library();
            let names =
                about.cpuid.as_deref().map(|id| described(&library, id)).unwrap_or_default();
            let core = names.first().and_then(|name| Core::modelled(&library, name).ok());
            self.core = core.unwrap_or_default();
        }
    }

    /// Adds their critical paths to critical loads and hard branches. Loads in them take as long as the samples say, by
    /// the event of the load, else by any.
    pub fn fill(mut self, document: &mut Loads) {
        if document.critical.is_empty() && document.hard_branches.is_empty() {
            return;
        }
        let mut means: HashMap<(Option<usize>, String, u64), f64> = HashMap::new();
        for row in document.loads.iter().filter(|row| row.samples >= LEAST_SAMPLES) {
            let Some(mean) = row.latency_mean else { continue };
            means.insert((Some(row.event), row.module.clone(), row.address.0), mean);
            means.entry((None, row.module.clone(), row.address.0)).or_insert(mean);
        }
        let mean_of = |event: Option<usize>, module: &str| {
            let (means, module) = (&means, module.to_owned());
            move |at: u64| means.get(&(event, module.clone(), at)).copied()
        };
        for row in document.critical.iter_mut().take(MOST_ROWS) {
            let head = row.loop_head.map(|head| head.0);
            let mean = mean_of(Some(row.event), &row.module);
            match self.slice(&row.module, row.address.0, head, &mean) {
                Ok(found) => row.critical_path = Some(found.path),
                Err(why) => row.path_unknown = Some(why.to_string()),
            }
        }
        for row in document.hard_branches.iter_mut().take(MOST_ROWS) {
            let mean = mean_of(None, &row.module);
            match self.slice(&row.module, row.address.0, None, &mean) {
                Ok(found) => {
                    row.slice = Some(found.slice);
                    row.critical_path = Some(found.path);
                }
                Err(why) => row.path_unknown = Some(why.to_string()),
            }
        }
    }

    /// The slice of an instruction in the loop with this head, else in its innermost loop.
    fn slice(
        &mut self,
        module: &str,
        at: u64,
        head: Option<u64>,
        mean: &dyn Fn(u64) -> Option<f64>,
    ) -> Result<Found, NoSlice> {
        let flow = self.codes.iter_mut().find_map(|code| {
            let number = code.modules.iter().position(|own| own.path == module)?;
            code.flow(ModuleAddress { module: number, address: at })
        });
        let flow = flow.ok_or(NoSlice::NoCode)?;
        let block = flow.block_at(at).ok_or(NoSlice::NoCode)?;
        let is_wanted = |number: &usize| {
            let own = flow.loops.get(*number).and_then(|own| flow.blocks.get(own.head));
            own.is_some_and(|own| head.is_none_or(|head| own.start == head))
        };
        let parent = |number: &usize| flow.loops.get(*number).and_then(|own| own.parent);
        let innermost = flow.blocks.get(block).and_then(|block| block.innermost);
        let own = std::iter::successors(innermost, parent).find(is_wanted);
        let within = own.and_then(|own| flow.loops.get(own)).ok_or(NoSlice::NoLoop)?;
        let paths = paths(&flow, within, block);
        self.over(&flow, &paths, at, mean)
    }

    /// The slice over these paths through an iteration, and the longest of their critical paths.
    fn over(
        &self,
        flow: &Flow,
        paths: &[Vec<usize>],
        at: u64,
        mean: &dyn Fn(u64) -> Option<f64>,
    ) -> Result<Found, NoSlice> {
        let facts = self.core.facts();
        let latencies = Latencies::new(&self.core).unwrap_or_default();
        let mut analyser = Analyser::new(latencies.clone());
        let window = Window::of(&self.core).entries;
        let settings = Settings { window, runs: RUNS, initial_values: Vec::new() };
        let mut slice = BTreeSet::new();
        let mut longest: Option<(Vec<u64>, CriticalPath)> = None;
        for path in paths.iter().take(MOST_PATHS) {
            let Some(region) = region(flow, path).and_then(|all| Region::of(&all, facts).ok())
            else {
                continue;
            };
            let addresses: Vec<u64> = region.instructions.iter().map(|one| one.ip()).collect();
            let Some(root) = addresses.iter().position(|one| *one == at) else { continue };
            let analysis = analyser.analyse(&region, &settings);
            let loaded = |index: usize| mean(*addresses.get(index)?);
            let found = critical_path(&region, &analysis, &latencies, root, &loaded);
            slice.extend(found.slice.iter().filter_map(|index| addresses.get(*index)));
            let is_longer = |(_, known): &(_, CriticalPath)| found.cycles.1 > known.cycles.1;
            if longest.as_ref().is_none_or(is_longer) {
                longest = Some((addresses, found));
            }
        }
        let (addresses, found) = longest.ok_or(NoSlice::TooLong)?;
        let path = || found.path.iter().filter_map(|index| addresses.get(*index)).copied();
        let sampled = path().filter(|at| mean(*at).is_some()).map(Address).collect();
        let row = PathRow {
            instructions: path().map(Address).collect(),
            cycles: found.cycles.1,
            cycles_least: found.cycles.0,
            sampled,
            latencies: match (self.core.uarch(), found.is_assumed) {
                (Some(name), false) => name.to_owned(),
                (Some(name), true) => format!("{name}, some assumed"),
                (None, _) => "assumed: the processor is not known".to_owned(),
            },
        };
        Ok(Found { slice: slice.into_iter().map(Address).collect(), path: row })
    }
}

/// The blocks of a path; `None` if they have too many instructions.
fn region(flow: &Flow, path: &[usize]) -> Option<Vec<Located>> {
    let mut left = LONGEST;
    let mut all = Vec::new();
    for block in path {
        let block = flow.blocks.get(*block)?;
        let from = flow.instructions.partition_point(|(at, _)| *at < block.start);
        let to = flow.instructions.partition_point(|(at, _)| *at < block.end);
        let own = flow.instructions.get(from..to)?;
        left = left.checked_sub(own.len())?;
        let bytes = own.iter().flat_map(|(_, one)| one.bytes.iter().copied()).collect();
        all.push(Located { start: block.start, bytes, ..Located::default() });
    }
    Some(all)
}
