//! `tdtool prefetch`: where a software prefetch helps, and how far ahead.

use super::global::Global;
use super::output::print;
use bench::{Options, Profiler};
use clap::{Args, ValueEnum};
use engine::documents::prefetch::Prefetch;
use engine::documents::prefetch_plan::Plan;
use engine::render::{json, prefetch, prefetch_plan};
use isa::code::Block;
use profile::files::SearchPaths;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tma::{Error, Result};

#[derive(Args)]
pub struct PrefetchArgs {
    /// Recordings of branches and of loads (`perf record -b`, `perf mem`)
    #[arg(value_name = "FILE", required = true)]
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
    let mut profiler = match args.measure {
        true => {
            let core = settings.own_core_model()?.core.clone();
            Some(Profiler::new(Options { core, ..Options::quick() }))
        }
        false => None,
    };
    let mut measure = profiler.as_mut().map(|profiler| move |code: &[u8]| cycles(profiler, code));
    let measure = measure.as_mut().map(|own| own as engine::prefetch::Measure<'_>);
    let document = engine::prefetch::prefetch(&args.files, &search, measure)?;
    if let Some(path) = &args.plan {
        write(path, &plan(&document, args.plan_format)?, "--plan")?;
    }
    let text = match args.format {
        Format::Text => prefetch::text(&document, args.n, settings.ascii),
        Format::Json => json::pretty(&document)?,
        Format::Csv => prefetch::csv(&document),
    };
    match args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        Some(path) => write(path, &text, "--output")?,
        None => print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str, option: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| {
        Error::failed(format!("cannot write {}", path.display()))
            .because(e)
            .hint(format!("choose another place with {option}"))
    })
}

fn plan(document: &Prefetch, format: PlanFormat) -> Result<String> {
    let plan = Plan::of(document);
    Ok(match format {
        PlanFormat::Json => json::pretty(&plan)?,
        PlanFormat::Hints => prefetch_plan::hints(&plan),
        PlanFormat::Llvm => prefetch_plan::llvm(&plan),
    })
}

/// Core cycles of a block in isolation.
fn cycles(profiler: &mut Profiler, code: &[u8]) -> std::result::Result<f64, String> {
    let measured = Block::decode(code)
        .and_then(|block| profiler.measure(&block))
        .map_err(|e| e.to_string())?;
    let why = measured.reason.unwrap_or_else(|| "no result".to_owned());
    measured.throughput.map(|throughput| throughput.cycles).ok_or(why)
}
