//! Files with wanted functions, and their analysis, with its progress as other threads see it.

use super::unprobed::Unprobed;
use crate::facts::{Block, Function, Module, NoCode};
use crate::plan::Chosen;
use crate::process::{Image, Mapping};
use pmu::perf::Signals;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Functions per batch of a thread.
const FEW: usize = 64;

/// A function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its file.
    pub path: PathBuf,
    /// Its addresses (p_vaddr).
    pub range: Range<u64>,
}

/// A file with wanted functions.
pub struct Target {
    pub path: PathBuf,
    /// The file, or why its code cannot be probed.
    pub opened: Result<Opened, NoCode>,
    /// Its functions.
    pub functions: Vec<Member>,
}

/// A file that is read.
pub struct Opened {
    pub module: Module,
    pub image: Image,
    /// P_vaddr and file offset of some code, by which its mapping is found.
    pub anchor: (u64, u64),
}

/// A function of a file.
pub struct Member {
    /// Its number in the request.
    pub number: usize,
    /// Its facts, or why it cannot be probed.
    pub facts: Result<Function, Unprobed>,
    /// Which of its blocks are to have a probe.
    pub chosen: Chosen,
}

impl Target {
    /// Address of its anchor among the mappings of a process.
    pub fn address(&self, mappings: &[Mapping]) -> Option<u64> {
        let opened = self.opened.as_ref().ok()?;
        opened.image.find(mappings, opened.anchor.1)
    }
}

/// A target whose file is mapped in a process.
#[derive(Clone, Copy)]
pub struct MappedTarget<'a> {
    /// Its index.
    pub number: usize,
    pub target: &'a Target,
    pub opened: &'a Opened,
    /// Address of its anchor in the process.
    pub address: u64,
}

impl<'a> MappedTarget<'a> {
    /// Finds the target with this index among the mappings of a process.
    pub fn find(number: usize, target: &'a Target, mappings: &[Mapping]) -> Option<Self> {
        let (opened, address) = (target.opened.as_ref().ok()?, target.address(mappings)?);
        Some(Self { number, target, opened, address })
    }
}

impl Member {
    /// Number of its blocks.
    pub fn blocks(&self) -> usize {
        self.facts.as_ref().map_or(0, |facts| facts.blocks.len())
    }
}

/// The blocks that are counted, by function.
#[derive(Debug, Clone, Copy)]
pub enum Blocks<'a> {
    /// All.
    All,
    /// All, but hot ones whose counts follow from others have no probe: first addresses, and their samples in an earlier
    /// run.
    Sampled(&'a [Vec<(u64, u64)>]),
    /// Those that begin at these addresses of a file, and what follows from them.
    Only(&'a BTreeMap<PathBuf, BTreeSet<u64>>),
}

impl Blocks<'_> {
    /// Those of the function with this number, of a file.
    fn of(self, number: usize, path: &Path, function: &Function) -> Chosen {
        let chosen = match self {
            Self::All => None,
            Self::Sampled(all) => {
                all.get(number).map(|samples| Chosen::Sparing(of_blocks(samples, function)))
            }
            Self::Only(all) => {
                let own = all.get(path);
                let is_in = |block: &Block| own.is_some_and(|own| own.contains(&block.start));
                Some(Chosen::Only(function.blocks.iter().map(is_in).collect()))
            }
        };
        chosen.unwrap_or_default()
    }
}

/// Analyses the files of the wanted functions, until a signal comes.
pub fn targets(wanted: &[Wanted], blocks: Blocks, signals: &Signals) -> Arc<[Target]> {
    let work = Work::default();
    signals.during(|| work.cancel(), || targets_with(wanted, blocks, &work))
}

/// As [`targets`], as a part of `work`.
pub fn targets_with(wanted: &[Wanted], blocks: Blocks, work: &Work) -> Arc<[Target]> {
    let mut paths: Vec<&PathBuf> = wanted.iter().map(|w| &w.path).collect();
    paths.sort();
    paths.dedup();
    paths.into_iter().map(|path| target(path, wanted, blocks, work)).collect()
}

fn target(path: &PathBuf, wanted: &[Wanted], blocks: Blocks, work: &Work) -> Target {
    let mut own: Vec<(usize, &Range<u64>)> = wanted
        .iter()
        .enumerate()
        .filter(|(_, w)| w.path == *path)
        .map(|(number, w)| (number, &w.range))
        .collect();
    own.sort_by_key(|(_, range)| (range.start, range.end));
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut chosen = Vec::new();
    for (number, range) in own {
        let is_new = ranges.last().is_none_or(|last| last.end <= range.start);
        if is_new && range.start < range.end {
            ranges.push(range.clone());
        }
        chosen.push((number, range.clone(), is_new));
    }
    let opened = open(path, &ranges);
    let entered = opened.as_ref().map(|o| o.module.entered(&ranges)).unwrap_or_default();
    let facts = |range: Range<u64>, is_new: bool| match &opened {
        Err(why) => Err(why.clone().into()),
        Ok(_) if !is_new => Err(Unprobed::Overlaps),
        Ok(opened) => {
            work.step()?;
            Ok(Function::read(&opened.module, range, &entered)?)
        }
    };
    let member = |(number, range, is_new): &(usize, Range<u64>, bool)| {
        let facts = facts(range.clone(), *is_new);
        let chosen = facts.as_ref().map(|function| blocks.of(*number, path, function));
        Member { number: *number, chosen: chosen.unwrap_or_default(), facts }
    };
    let functions = in_parallel(&chosen, member);
    Target { path: path.clone(), opened, functions }
}

/// The samples of each block.
fn of_blocks(samples: &[(u64, u64)], function: &Function) -> Vec<u64> {
    let inside = |b: &Block| {
        samples.iter().filter(|(at, _)| (b.start..b.end).contains(at)).map(|(_, n)| n).sum()
    };
    function.blocks.iter().map(inside).collect()
}

/// `all.iter().map(with)` on all processors.
fn in_parallel<T: Sync, R: Send>(all: &[T], with: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let parts: Vec<&[T]> = all.chunks(FEW).collect();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    // Dynamic batches, since functions differ much in length.
    let work = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let own = numbers.map_while(|number| Some((number, parts.get(number)?)));
        own.map(|(number, part)| (number, part.iter().map(&with).collect())).collect()
    };
    let mut found: Vec<(usize, Vec<R>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..processors.min(parts.len())).map(|_| scope.spawn(work)).collect();
        let own: Vec<(usize, Vec<R>)> = work();
        let joined = others.into_iter().flat_map(|other| match other.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        own.into_iter().chain(joined).collect()
    });
    found.sort_unstable_by_key(|(number, _)| *number);
    found.into_iter().flat_map(|(_, part)| part).collect()
}

fn open(path: &Path, ranges: &[Range<u64>]) -> Result<Opened, NoCode> {
    let module = Module::read(path)?;
    let image = Image::new(path)?;
    let last = ranges.last().ok_or(NoCode::Lengths)?;
    // Loaders map segments in order of address: where the last one with functions is, all are.
    let executable = module.executable().filter(|(start, _)| *start <= last.start).last();
    let (segment, _) = executable.ok_or(NoCode::FirstOutside)?;
    let own = &ranges[ranges.partition_point(|range| range.start < segment)..];
    let start = own.first().unwrap_or(last).start;
    let offset = module.offset(start).ok_or(NoCode::FirstOutside)?;
    Ok(Opened { module, image, anchor: (start, offset) })
}

/// An analysis of functions, with two steps each: facts and plan.
#[derive(Debug, Default)]
pub struct Work {
    done: AtomicUsize,
    is_cancelled: AtomicBool,
}

impl Work {
    /// Adds a step.
    pub fn step(&self) -> Result<(), Unprobed> {
        self.done.fetch_add(1, Ordering::Relaxed);
        match self.is_cancelled.load(Ordering::Relaxed) {
            true => Err(Unprobed::Cancelled),
            false => Ok(()),
        }
    }

    /// Steps done.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Cancels the analysis.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}
