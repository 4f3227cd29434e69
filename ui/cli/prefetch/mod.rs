//! `tdtool prefetch`: where a software prefetch helps, and how far ahead.

mod host;

use super::global::Global;
use super::output::print;
use super::search::SearchArgs;
use crate::message;
use bench::{Options, Profiler};
use clap::{Args, ValueEnum};
use engine::documents::prefetch::Prefetch;
use engine::documents::prefetch_plan::Plan;
use engine::files::write_whole;
use engine::prefetch::prefetch_by_probes;
use engine::render::{json, prefetch, prefetch_plan};
use host::{counts, cycles, host, known_counts};
use pmu::Command;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
pub struct PrefetchArgs {
    /// Recordings (`perf record -b`, `perf mem`), or JSON of `count --hot --loads`
    #[arg(value_name = "FILE", required_unless_present = "command")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
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
    let search = args.search.paths();
    let settings = global.settings()?;
    let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let known = known_counts(&args.files)?;
    let by_probes = known.is_some() || !args.command.is_empty();
    let mut here = String::new();
    let mut profiler = match args.measure || by_probes {
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
        Some(profiler) if by_probes => {
            // A text leaves standard output to the command, a document takes it.
            let stdout_to_stderr = file.is_none() && !beside;
            let command = Command { argv: args.command.clone(), stdout_to_stderr };
            let from_file = known.is_some();
            let (counts, code) = match known {
                Some(counts) => (counts, 0),
                None => counts(&settings, command)?,
            };
            let host = host(&settings, profiler, &counts)?;
            let mut measure = |code: &[u8]| cycles(profiler, code);
            let mut document = prefetch_by_probes(&counts, &search, &host, &mut measure)?;
            if from_file {
                document.notes.push(format!(
                    "counts, latencies and times are of the machine that counted; IC, clock and misses in flight of \
                     this one, {here}"
                ));
            }
            (document, code)
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
