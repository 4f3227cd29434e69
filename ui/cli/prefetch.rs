//! `tdtool prefetch`: where a software prefetch helps, and how far ahead.

use super::global::Global;
use super::output::print;
use super::progress::Progress;
use crate::message;
use crate::settings::Settings;
use bench::{Options, Profiler};
use clap::{Args, ValueEnum};
use engine::count::{CountAsk, counted};
use engine::documents::count::Count;
use engine::documents::prefetch::Prefetch;
use engine::documents::prefetch_plan::Plan;
use engine::files::write_whole;
use engine::hot::hottest::hottest;
use engine::prefetch::{Cycles, prefetch_by_probes};
use engine::render::{json, prefetch, prefetch_plan};
use isa::code::Block;
use pmu::Command;
use profile::files::SearchPaths;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use tma::{Error, Result};

#[derive(Args)]
pub struct PrefetchArgs {
    /// Recordings of branches and of loads (`perf record -b`, `perf mem`)
    #[arg(value_name = "FILE", required_unless_present = "command")]
    files: Vec<PathBuf>,
    /// Look for the recorded binaries under DIR first; repeatable
    #[arg(long, value_name = "DIR")]
    symfs: Vec<PathBuf>,
    /// A recorded program, known by its build-id or file name; repeatable
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Show N loads as text
    #[arg(short, value_name = "N", default_value = "10")]
    n: usize,
    /// Measure loops whose iterations all miss, as blocks in isolation
    #[arg(long)]
    measure: bool,
    /// Write the prefetches with known distance and loop to FILE
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Format of the plan: json, PC,delta,type, or a profile for llc
    #[arg(long, value_enum, default_value = "json", requires = "plan")]
    plan_format: PlanFormat,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write to FILE instead
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A command instead, without a PMU: run four times, its output repeated
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["files", "measure"])]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlanFormat {
    Json,
    /// Strides as lines `PC,delta,type`
    Hints,
    /// Strides as `llc -prefetch-hints-file` reads them
    Llvm,
}

pub fn run(global: &Global, args: &PrefetchArgs) -> Result<ExitCode> {
    let search = SearchPaths {
        roots: args.symfs.clone(),
        programs: args.binary.clone(),
        ..SearchPaths::default()
    };
    let settings = global.settings()?;
    let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let mut here = String::new();
    let mut profiler = match args.measure || !args.command.is_empty() {
        true => {
            let core = settings.own_core_model()?.core.clone();
            here = core.cpu.name.clone();
            if let Some(uarch) = core.uarch() {
                here += &format!(" ({uarch})");
            }
            Some(Profiler::new(Options { core, ..Options::quick() }))
        }
        false => None,
    };
    let beside = file.is_none() && args.format == Format::Text && !args.command.is_empty();
    let (document, code) = match &mut profiler {
        Some(profiler) if !args.command.is_empty() => {
            // A text leaves standard output to the command, a document takes it.
            let stdout_to_stderr = file.is_none() && !beside;
            let command = Command { argv: args.command.clone(), stdout_to_stderr };
            let (counts, code) = counts(&settings, command)?;
            let ghz = cycles_per_ns(profiler, &counts)?;
            let mut measure = |code: &[u8]| cycles(profiler, code);
            (prefetch_by_probes(&counts, &search, ghz, &mut measure)?, code)
        }
        profiler => {
            let mut measure =
                profiler.as_mut().map(|profiler| move |code: &[u8]| cycles(profiler, code));
            let measure =
                measure.as_mut().map(|own| (own as engine::prefetch::Measure<'_>, here.as_str()));
            (engine::prefetch::prefetch(&args.files, &search, measure)?, 0)
        }
    };
    if let Some(path) = &args.plan {
        let plan = Plan::of(&document);
        if plan.prefetches.is_empty() {
            message::note(&empty(&document));
        }
        write_whole(path, written(&plan, args.plan_format)?.as_bytes(), &args.files, "--plan")?;
    }
    let text = match args.format {
        Format::Text => prefetch::text(&document, args.n, settings.ascii),
        Format::Json => json::pretty(&document)?,
        Format::Csv => prefetch::csv(&document),
    };
    match file {
        Some(path) => write_whole(path, text.as_bytes(), &args.files, "--output")?,
        None if beside => message::plain(&text),
        None => print(&text)?,
    }
    Ok(ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)))
}

/// Share of the samples that the functions hold whose loads are looked at.
const HOT: f64 = 0.9;

/// Runs a command once sampled, and three times with probes: counts, addresses and latencies of its loads.
fn counts(settings: &Settings, command: Command) -> Result<(Count, i32)> {
    let live = super::count::live(settings, &command)?;
    let ask = CountAsk {
        hot: Some(hottest(settings.machine(), settings.library, &live, HOT)?),
        command,
        process: None,
        modules: Vec::new(),
        functions: Vec::new(),
        plain: false,
        loads: true,
        values: None,
        branches: None,
    };
    let mut progress = Progress::new("analysing the code");
    let found = counted(&ask, &mut |done, all| progress.show(done, all))?;
    progress.end();
    Ok(found)
}

/// How often the core clock is looked at until nothing else runs.
const LOOKS: usize = 20;

/// Core cycles in a nanosecond.
fn cycles_per_ns(profiler: &mut Profiler, counts: &Count) -> Result<f64> {
    let Some(timer) = &counts.timer else {
        let why = counts.notes.join("; ");
        return Err(Error::not_possible("latencies of loads are not known here").because(why));
    };
    for _ in 0..LOOKS {
        if let Some(ratio) = profiler.cycles_per_tick()? {
            return Ok(ratio * timer.ticks_per_ns);
        }
    }
    Err(Error::failed("the core clock is not known")
        .because("other programs use the processor all the time")
        .hint("try again on a quieter machine"))
}

/// Why a plan has no prefetch.
fn empty(document: &Prefetch) -> String {
    let refused = document.advice.iter().filter(|row| row.refused.is_some()).count();
    let unknown = document.advice.len() - refused;
    format!(
        "the plan is empty: a prefetch cannot help {refused} loads, and distance or loop are not known of {unknown}"
    )
}

fn written(plan: &Plan, format: PlanFormat) -> Result<String> {
    Ok(match format {
        PlanFormat::Json => json::pretty(plan)?,
        PlanFormat::Hints => prefetch_plan::hints(plan),
        PlanFormat::Llvm => prefetch_plan::llvm(plan),
    })
}

/// How often a block is measured: what it takes may differ from one placement to the next.
const MEASURED: usize = 3;

/// Core cycles of a block in isolation: the median, and the range of all passes.
fn cycles(profiler: &mut Profiler, code: &[u8]) -> std::result::Result<Cycles, String> {
    let block = Block::decode(code).map_err(|e| e.to_string())?;
    let (mut all, mut range) = (Vec::new(), (f64::INFINITY, 0.0_f64));
    for _ in 0..MEASURED {
        let measured = profiler.measure(&block).map_err(|e| e.to_string())?;
        let why = measured.reason.unwrap_or_else(|| "no result".to_owned());
        let found = measured.throughput.ok_or(why)?;
        range = (range.0.min(found.low), range.1.max(found.high));
        all.push(found.cycles);
    }
    all.sort_by(f64::total_cmp);
    let cycles = all.get(MEASURED / 2).copied().ok_or("no result")?;
    Ok(Cycles { cycles, range })
}
