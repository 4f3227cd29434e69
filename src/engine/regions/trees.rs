//! The tree of each region, from samples of the marked run. With a PMU the samples read the counts of level 1;
//! without one, the estimate's parts are weighted by them.

use crate::estimate::{EstimateAsk, estimate};
use crate::hot::Temporary;
use crate::record::{Alone, Note, SampleAsk, words};
use crate::sampled::per_function::of_times;
use crate::topdown::LiveAsk;
use pmu::machine::Machine;
use probe::regions::Tree;
use profile::files::SearchPaths;
use profile::hot::{Filter, Profile, RegionKey, RegionSamples, Stay, Within};
use profile::session;
use report::documents::estimate::RegionParts;
use report::documents::regions::{RegionFunction, RegionTree, Regions, RegionsSampled, TreeSource};
use report::documents::{Report, Source};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tma::Result;
use tma::tables::{Library, Table};

/// Functions listed for a region.
const LISTED: usize = 3;
/// Why there is no estimate.
const NOT_ASKED: &str =
    "`tdtool report --regions --estimate -- COMMAND` estimates it in further runs";

/// By region and thread (`None`: all).
pub type Trees = BTreeMap<RegionKey, RegionTree>;
/// A time stamp counter and nanoseconds of the samples' clock.
pub(super) type Moment = (u64, u64);

/// With what trees are measured.
#[derive(Debug)]
pub struct TreesAsk<'a> {
    /// This machine.
    pub machine: &'a Machine,
    /// The tables.
    pub library: &'a Library,
    /// The measurement.
    pub live: LiveAsk,
    /// The command to estimate, without a PMU.
    pub estimate: Option<EstimateAsk>,
    /// Where programs are.
    pub search: SearchPaths,
}

/// Samples while the regions are followed.
pub(super) struct Sampling<'a> {
    ask: &'a TreesAsk<'a>,
    file: Temporary,
    alone: Alone<'a>,
}

impl<'a> Sampling<'a> {
    pub fn new(ask: &'a TreesAsk<'a>) -> Result<Self> {
        let file = Temporary::new()?;
        let sample = SampleAsk { per_function: true, ..SampleAsk::default() };
        let alone = Alone::new(ask.machine, ask.library, &ask.live, &sample, file.path())?;
        Ok(Self { ask, file, alone })
    }

    /// Begins with a process.
    ///
    /// # Errors
    /// Nothing can be sampled.
    pub fn attach(&mut self, pid: i32) -> Result<()> {
        self.alone.attach(pid)
    }

    /// Ends it, and enters what the samples say into a document without regions. Moments are of before and after the
    /// run. The trees, and the signal that interrupted further runs.
    ///
    /// # Errors
    /// The samples cannot be read; the sandbox cannot be started.
    pub fn trees(
        self,
        tree: &Tree,
        moments: Option<(Moment, Moment)>,
        document: &mut Regions,
    ) -> Result<(Trees, Option<i32>)> {
        let Self { ask, file, alone } = self;
        let tables = alone.tables.clone();
        let (is_sampled, notes) = alone.finish();
        let (Some(moments), true) = (moments, is_sampled && session::has_samples(file.path())?)
        else {
            document.notes.extend(words(&notes));
            document.notes.push("regions have no trees: there are no samples".to_owned());
            return Ok((Trees::new(), None));
        };
        let recording = session::open(file.path(), false)?;
        let regions = Some(Arc::new(within(tree, moments)));
        let filter = Filter { regions, ..Filter::default() };
        let mut profile = Profile::new(&recording, &filter, ask.search.clone())?;
        let mut trees = plain(&profile);
        missing(tree, &mut trees);
        let mut sampled = RegionsSampled {
            event: profile.event.clone(),
            samples: profile.samples,
            ..RegionsSampled::default()
        };
        let mut interrupted = None;
        if let Some(table) = counted(&profile, &tables, &mut trees) {
            sampled.table = Some(table);
        } else if let (Some(estimate), None) = (&ask.estimate, document.interrupted) {
            (sampled.no_tree, interrupted) =
                estimated(estimate, &mut profile, &mut trees, document)?;
        } else {
            let why = notes.iter().find_map(|note| match note {
                Note::NoTree(why) => Some(why.as_str()),
                _ => None,
            });
            let why = why.unwrap_or("counts were not read at samples");
            sampled.no_tree = Some(format!("{why}; {NOT_ASKED}"));
        }
        if let Some(cut) = tree.cut() {
            let ((first, _), _) = moments;
            let (ticks, ns) = (cut.saturating_sub(first) as f64, rate(moments.0, moments.1));
            document.notes.push(format!(
                "trees are of the first {} only: too many markers to keep their times",
                report::format::seconds(ticks * ns / 1e9)
            ));
        }
        // That there is no tree is said with the samples.
        let others = notes.iter().filter(|note| matches!(note, Note::Other(_)));
        document.notes.extend(others.map(Note::to_string));
        document.sampled = Some(sampled);
        Ok((trees, interrupted))
    }
}

/// Nanoseconds a tick.
fn rate(first: Moment, last: Moment) -> f64 {
    last.1.saturating_sub(first.1) as f64 / last.0.saturating_sub(first.0).max(1) as f64
}

/// When threads were in regions, by the clock of the samples.
fn within(tree: &Tree, moments: (Moment, Moment)) -> Within {
    let ((first, from), _) = moments;
    let rate = rate(moments.0, moments.1);
    let time = |ticks: u64| from + (ticks.saturating_sub(first) as f64 * rate) as u64;
    let mut stays: HashMap<u32, Vec<Stay>> = HashMap::new();
    for (number, thread) in tree.threads.iter().enumerate() {
        let Some(tid) = thread.tid else { continue };
        let stay = |span: &probe::regions::Span| Stay {
            from: time(span.from),
            to: time(span.to),
            region: span.node,
            thread: number as u32,
        };
        stays.entry(tid as u32).or_default().extend(thread.spans().iter().map(stay));
    }
    stays.values_mut().for_each(|of| of.sort_by_key(|stay| stay.from));
    let around = tree.nodes.iter().map(|node| node.parent.map(|parent| parent as u32)).collect();
    Within { stays, around }
}

/// Regions without a sample, with the reason.
fn missing(tree: &Tree, trees: &mut Trees) {
    for (number, thread) in tree.threads.iter().enumerate() {
        for node in thread.stats.keys() {
            let reason = match thread.tid {
                Some(_) => "no sample was taken in it",
                None => "the number of its thread is not known",
            };
            for key in [(*node as u32, None), (*node as u32, Some(number as u32))] {
                trees.entry(key).or_insert_with(|| RegionTree {
                    reason: Some(reason.to_owned()),
                    ..RegionTree::default()
                });
            }
        }
    }
}

/// Samples and functions of the regions.
fn plain(profile: &Profile) -> Trees {
    let mut functions: HashMap<&str, BTreeMap<u64, usize>> = HashMap::new();
    for (index, function) in profile.functions.iter().enumerate() {
        functions.entry(&function.path).or_default().insert(function.start, index);
    }
    let all = profile.samples.max(1) as f64;
    let tree = |(key, sum): (&RegionKey, &RegionSamples)| {
        let mut own: BTreeMap<usize, u64> = BTreeMap::new();
        for (place, samples) in &sum.places {
            let Some(place) = place else { continue };
            let of = functions.get(profile.module_path(place.module));
            let found = of.and_then(|of| of.range(..=place.address).next_back());
            if let Some((_, index)) =
                found.filter(|(_, i)| place.address < profile.functions[**i].end)
            {
                *own.entry(*index).or_default() += samples;
            }
        }
        let mut own: Vec<(usize, u64)> = own.into_iter().collect();
        own.sort_by_key(|(index, samples)| (std::cmp::Reverse(*samples), *index));
        let row = |(index, samples): &(usize, u64)| RegionFunction {
            name: profile.functions[*index].name.clone(),
            module: profile.functions[*index].module.clone(),
            share: *samples as f64 / sum.samples.max(1) as f64,
        };
        let tree = RegionTree {
            samples: sum.samples,
            share: sum.samples as f64 / all,
            functions: own.iter().take(LISTED).map(row).collect(),
            ..RegionTree::default()
        };
        (*key, tree)
    };
    profile.by_region().sums.iter().map(tree).collect()
}

/// The trees of regions whose samples read the counts that level 1 of one of these tables needs, and its name;
/// `None`: they did not.
pub fn counted_trees(profile: &Profile, tables: &[Arc<Table>]) -> Option<(String, Trees)> {
    let mut trees = plain(profile);
    Some((counted(profile, tables, &mut trees)?, trees))
}

/// Enters counted trees; the table, if there are counts.
fn counted(profile: &Profile, tables: &[Arc<Table>], trees: &mut Trees) -> Option<String> {
    let sums = &profile.by_region().sums;
    let (table, found) = of_times(tables, profile.reads(), sums.values().map(|sum| &sum.reads))?;
    for (key, level_one) in sums.keys().zip(found) {
        let Some(tree) = trees.get_mut(key) else { continue };
        tree.source = TreeSource::Counted;
        (tree.nodes, tree.reason) = (level_one.nodes, level_one.reason);
    }
    Some(table)
}

/// Enters estimated trees. Why there are none, and the signal that interrupted further runs.
fn estimated(
    ask: &EstimateAsk,
    profile: &mut Profile,
    trees: &mut Trees,
    document: &mut Regions,
) -> Result<(Option<String>, Option<i32>)> {
    let mut report = Report::new(Source::NoPmu);
    (report.command, report.exit) = (Some(document.command.clone()), document.exit);
    report.duration = Some(document.duration);
    // Samples of a clock have its nanoseconds as their periods.
    report.software.insert("task_clock_ms".to_owned(), Some(profile.weight() / 1e6));
    let (estimate, interrupted) = estimate(&report, profile, ask)?;
    for RegionParts { region, thread, shared, bottleneck, parts, .. } in estimate.regions {
        let Some(tree) = trees.get_mut(&(region, thread)) else { continue };
        tree.source = TreeSource::Estimated;
        tree.reason = match &parts.unexplained {
            all if all.value == 1.0 => all.reason.as_ref().map(ToString::to_string),
            _ => None,
        };
        (tree.parts, tree.shared) = (Some(parts), Some(shared));
        tree.bottleneck = Some(bottleneck);
    }
    let is_estimated = trees.values().any(|tree| tree.source == TreeSource::Estimated);
    let why = (!is_estimated).then(|| "the estimate has no parts".to_owned());
    document.notes.extend(estimate.notes);
    Ok((why, interrupted))
}
