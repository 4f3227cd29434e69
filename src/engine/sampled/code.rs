//! Adds the hot functions and blocks of a recording to a report, with the reasons for code that is missing.

use super::annotated::{annotated, callees, callers, hottest};
use super::entries::{self, CountAsk};
use super::located::{Located, Outputs, estimated, stacks};
use super::per_function::{breakdown, per_function};
use super::with_values::{Loops, measured};
use crate::block::Measurer;
use crate::core_model::CoreModel;
use crate::estimate::{EstimateAsk, estimate};
use crate::hot::hottest::kernel_share;
use crate::notes::add_new;
use crate::record::Note;
use crate::wall_time;
use bench::Options;
use pmu::Command;
use profile::files::{Gap, SearchPaths};
use profile::hot::{Filter, HotBlock, HotFunction, Profile};
use report::documents::Report;
use report::documents::diff::timed::shape;
use report::documents::report_code::{BlockRow, EventPart, FunctionRow, LoopRow, Sampled};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tma::Result;
use tma::text::several;

/// Which functions and blocks to report.
#[derive(Debug, Clone)]
pub struct CodeAsk {
    /// Most functions.
    pub functions: usize,
    /// Most blocks.
    pub blocks: usize,
    /// The function whose callers are listed.
    pub callers: Option<String>,
    /// The function whose callees are listed.
    pub callees: Option<String>,
    /// Which samples.
    pub filter: Filter,
    /// Where programs are.
    pub search: SearchPaths,
    /// The core to measure the hottest blocks on, if they are to be measured in isolation.
    pub measure: Option<CoreModel>,
    /// The command whose values the loops around them are measured with, in further runs.
    pub command: Option<Command>,
    /// Where to count the entries of the hottest blocks, if at all.
    pub count: Option<CountAsk>,
    /// The command to estimate the top-down tree of, in further runs.
    pub estimate: Option<EstimateAsk>,
    /// Where folded stacks go; `-` is standard output.
    pub folded: Option<PathBuf>,
    /// Whether the last frame of a folded stack is the node that its time goes to.
    pub folded_nodes: bool,
    /// Where a flame graph goes.
    pub flame_graph: Option<PathBuf>,
    /// Where a profile of pprof goes.
    pub pprof: Option<PathBuf>,
    /// Where costs in callgrind's format go.
    pub callgrind: Option<PathBuf>,
    /// Whether the report becomes a page, with call stacks and the source of the hottest functions.
    pub page: bool,
    /// The function whose source lines are shown.
    pub annotate: Option<String>,
    /// A sampled event, or a node that one locates: functions and blocks are those of its samples.
    pub by: Option<String>,
    /// Whether a tree per function is asked for.
    pub per_function: bool,
    /// Processors that others kept busy while the command ran, on average, if that is known.
    pub others: Option<f64>,
}

impl Default for CodeAsk {
    fn default() -> Self {
        Self {
            functions: 10,
            blocks: 5,
            callers: None,
            callees: None,
            filter: Filter::default(),
            search: SearchPaths::default(),
            measure: None,
            command: None,
            count: None,
            estimate: None,
            folded: None,
            folded_nodes: false,
            flame_graph: None,
            pprof: None,
            callgrind: None,
            page: false,
            annotate: None,
            by: None,
            per_function: false,
            others: None,
        }
    }
}

impl CodeAsk {
    /// Whether files are written for other tools, which take samples of one event.
    pub(crate) fn exports(&self) -> bool {
        let files = [&self.folded, &self.flame_graph, &self.pprof, &self.callgrind];
        self.filter.timeline || files.iter().any(|path| path.is_some())
    }

    /// An option that only samples can answer.
    pub(crate) fn needs_samples(&self) -> Option<&'static str> {
        let plain = Filter {
            chains: self.filter.chains,
            entries: self.filter.entries,
            timeline: self.filter.timeline,
            omit_inlined: self.filter.omit_inlined,
            ..Filter::default()
        };
        let all = [
            ("--callers", self.callers.is_some()),
            ("--callees", self.callees.is_some()),
            ("--measure", self.measure.is_some()),
            ("--folded", self.folded.is_some()),
            ("--flamegraph", self.flame_graph.is_some()),
            ("--pprof", self.pprof.is_some()),
            ("--callgrind", self.callgrind.is_some()),
            ("--annotate", self.annotate.is_some()),
            ("--by", self.by.is_some()),
            ("--per-function", self.per_function),
            ("--thread, --time or --event-number", self.filter != plain),
        ];
        all.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
    }
}

/// Why callers are not known.
const CUT: &str = "most call chains end after one caller: functions keep no frame pointers; record with `tdtool record \
                   --call-graph dwarf -o FILE -- COMMAND`, or compile with -fno-omit-frame-pointer \
                   -mno-omit-leaf-frame-pointer";
/// The name of a caller that is not known.
const UNKNOWN: &str = "[unknown]";

/// How long a block may wait for a core that nothing else uses.
const BUDGET: Duration = Duration::from_secs(2);

/// Enters functions, blocks and callers into a report. `progress` gets the number of measured
/// blocks and of all. The signal that interrupted the counting of entries, if one did.
///
/// # Errors
/// The sandbox cannot be started; callers are asked for and there are no call chains, or no such
/// function.
pub(crate) fn enter(
    report: &mut Report,
    profile: &mut Profile,
    ask: &CodeAsk,
    located: &Located,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Option<i32>> {
    let mut interrupted = None;
    report.sampled = Some(Sampled {
        event: profile.event.clone(),
        skid: profile.skid.explain().to_owned(),
        samples: profile.samples,
        effective: Some(profile.effective()).filter(|of| (of - profile.samples as f64).abs() > 0.5),
        lost: profile.lost,
        notes: profile.notes.clone(),
        functions: profile.functions.len(),
        kernel: (!excludes_kernel(&profile.event)).then(|| kernel_share(profile)),
        running: None,
    });
    if ask.filter.entries {
        wall_time::enter(report, profile, ask.others);
    }
    let shows_stacks = ask.page || ask.exports();
    if (ask.callers.is_some() || ask.callees.is_some() || shows_stacks) && profile.chains_are_cut()
    {
        report.notes.push(CUT.to_owned());
    }
    if let Some((from, to)) = ask.filter.time {
        let seconds = |ns: u64| {
            if ns == u64::MAX { "the end".to_owned() } else { format!("{} s", ns as f64 / 1e9) }
        };
        let (from, to) = (seconds(from), seconds(to));
        report.notes.push(format!("only samples from {from} to {to}; counts are of the whole run"));
    }
    report.functions =
        profile.functions.iter().take(ask.functions).map(FunctionRow::from).collect();
    report.notes.extend(not_here(&profile.functions));
    report.notes.extend(compiled(profile));
    let blocks = profile.blocks(ask.blocks);
    report.blocks =
        blocks.iter().map(|b| BlockRow::new(b, &profile.functions[b.function])).collect();
    for (row, block) in report.blocks.iter_mut().zip(&blocks) {
        row.shape = shape_of(profile, block);
    }
    let loops = profile.loops(ask.blocks);
    report.loops =
        loops.iter().map(|l| LoopRow::new(l, &profile.functions[l.whole.function])).collect();
    report.notes.extend(without_blocks(profile, &blocks).filter(|_| ask.blocks > 0));
    report.events = located.rows(profile);
    let trees = per_function(profile, located);
    let told = |note: &String| matches!(Note::parse(note), Note::NoTree(_));
    if trees.is_none() && ask.per_function && !profile.notes.iter().any(told) {
        report.notes.push(no_trees(profile).to_string());
    }
    report.per_function = trees.clone().map(|mut trees| {
        trees.functions.truncate(ask.functions);
        trees
    });
    for (index, row) in report.functions.iter_mut().enumerate() {
        row.events = parts(profile, index, 0..u64::MAX);
    }
    for (row, block) in report.blocks.iter_mut().zip(&blocks) {
        row.events = parts(profile, block.function, block.start..block.end);
    }
    measure(report, profile, &blocks, ask, progress)?;
    if let Some(count) = &ask.count {
        interrupted = entries::enter(report, profile, &blocks, count, progress)?;
    }
    if ask.estimate.is_some() && report.nodes.iter().any(|node| node.value.is_some()) {
        report.notes.push("not estimated: the tree was counted".to_owned());
    } else if let (Some(ask), None) = (&ask.estimate, interrupted) {
        let found = estimate(report, profile, ask)?;
        report.estimate = Some(found.0);
        interrupted = found.1;
    }
    if let Some(name) = &ask.annotate {
        report.annotated = Some(annotated(profile, name, &ask.search)?);
    }
    if ask.page {
        report.sources = hottest(profile, &ask.search);
    }
    if shows_stacks {
        let breakdown = match (&trees, &report.estimate) {
            (Some(trees), _) => breakdown(trees),
            (None, Some(estimate)) => estimated(estimate),
            (None, None) => located.breakdown(report, profile),
        };
        let to = Outputs {
            folded: ask.folded.as_deref(),
            nodes: ask.folded_nodes,
            flame_graph: ask.flame_graph.as_deref(),
            pprof: ask.pprof.as_deref(),
            callgrind: ask.callgrind.as_deref(),
            timeline: ask.filter.timeline,
            page: ask.page,
        };
        stacks(report, profile, &to, &breakdown)?;
    }
    if let Some(name) = &ask.callers {
        let found = callers(profile, name)?;
        let unknown = found.tree.iter().filter(|node| node.name == UNKNOWN);
        if unknown.map(|node| node.share).sum::<f64>() > 0.5 {
            add_new(&mut report.notes, [CUT.to_owned()]);
        }
        report.callers = Some(found);
    }
    if let Some(name) = &ask.callees {
        report.callees = Some(callees(profile, name)?);
    }
    Ok(interrupted)
}

/// Whether an event's modifiers leave out the kernel, as in `cycles:u` and `cpu_core/cycles/u`.
fn excludes_kernel(event: &str) -> bool {
    let modifiers = event.rsplit([':', '/']).next().filter(|last| last.len() < event.len());
    modifiers.is_some_and(|of| {
        of.contains('u') && !of.contains('k') && of.chars().all(|c| "ukhpPSDGHWeIb".contains(c))
    })
}

/// Measures the hottest blocks in isolation, if asked for, and the loops around them with the command's values if there is one.
fn measure(
    report: &mut Report,
    profile: &mut Profile,
    blocks: &[HotBlock],
    ask: &CodeAsk,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<()> {
    let Some(model) = &ask.measure else { return Ok(()) };
    let options = Options { budget: BUDGET, ..Options::default() };
    let mut measurer = Measurer::new(options, model);
    let of = |command| Loops::new(model, command, report.duration);
    let mut loops = ask.command.as_ref().map(of);
    for (number, block) in blocks.iter().enumerate() {
        progress(number, blocks.len());
        let row = &mut report.blocks[number];
        row.measured = Some(measured(&mut measurer, profile, block)?);
        if let Some(loops) = &mut loops {
            row.with_values = loops.measured(Path::new(&row.code.path), block)?;
        }
    }
    if let Some(runs @ 1..) = loops.map(|loops| loops.runs) {
        report.notes.push(format!(
            "values of loops are of {} of the command, ended there",
            several(runs, "further run")
        ));
    }
    progress(blocks.len(), blocks.len());
    add_new(&mut report.notes, model.notes.clone());
    Ok(())
}

/// The instructions of a block without addresses; `None` where its code is not here.
fn shape_of(profile: &mut Profile, block: &HotBlock) -> Option<String> {
    let bytes = profile.code(block).ok()?;
    let block = isa::code::Block::decode(&bytes).ok()?;
    Some(shape(block.instructions.iter().map(|one| one.text.as_str())))
}

/// The share of each event in addresses of a function, if there are several events.
fn parts(profile: &Profile, function: usize, range: Range<u64>) -> Vec<EventPart> {
    profile.event_shares(function, &[range]).into_iter().map(EventPart::from).collect()
}

/// Share of the samples from which a missing program is noted.
const WORTH_A_NOTE: f64 = 0.01;

/// Why the hottest function of a file has no blocks, if so: it is for another processor, say.
fn without_blocks(profile: &mut Profile, blocks: &[HotBlock]) -> Option<String> {
    let first = profile.functions.first()?;
    let is_file = first.gap.is_none() && first.path.starts_with('/');
    if !is_file || blocks.iter().any(|block| block.function == 0) {
        return None;
    }
    let name = first.short.clone();
    let found = profile.annotate(0);
    let why = found.notes.first().filter(|_| found.blocks.is_empty())?;
    Some(format!("{name} has no blocks: {why}"))
}

/// Advice for programs that are not where they were recorded.
fn not_here(functions: &[HotFunction]) -> Option<String> {
    let is_away = |row: &&HotFunction| {
        let is_gone = matches!(row.gap, Some(Gap::NoFile(_)));
        row.share >= WORTH_A_NOTE && is_gone && !is_compiled(&row.path)
    };
    let first = functions.iter().find(is_away)?;
    Some(format!(
        "{} has {:.1} % of the samples and is not here: --symfs DIR looks for it under DIR, --binary FILE \
         is it",
        first.module,
        100.0 * first.share
    ))
}

/// Advice for code without names that was compiled while the program ran.
fn compiled(profile: &Profile) -> Option<String> {
    let is_nameless = |of: &&HotFunction| is_compiled(&of.path) && of.gap.is_some();
    let share: f64 = profile.functions.iter().filter(is_nameless).map(|of| of.share).sum();
    (share >= WORTH_A_NOTE).then(|| {
        format!(
            "{:.1} % of the samples is in code compiled at run time, without names: node --perf-basic-prof, java \
             -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (running: `jcmd PID Compiler.perfmap`) and python3 \
             -X perf name it; then measure again",
            100.0 * share
        )
    })
}

/// Whether a mapping is one of memory without a file, as compilers at run time make it.
fn is_compiled(path: &str) -> bool {
    ["//anon", "[anon", "/memfd:", "/dev/zero"].iter().any(|begin| path.starts_with(begin))
}

/// Why there is no tree per function; recording notes it, too.
fn no_trees(profile: &Profile) -> Note {
    Note::NoTree(match profile.reads().events.is_empty() {
        true => "the samples hold no counts".to_owned(),
        false => {
            let events = profile.reads().events.join(", ");
            format!("level 1 cannot be computed from {events}")
        }
    })
}
