//! `tdtool prefetch`: where a software prefetch helps, and how far ahead.

mod host;

use super::global::Global;
use super::output::{error_page, page, print};
use super::present::present;
use super::progress::Clock;
use super::reading::reading;
use super::search::SearchArgs;
use crate::message;
use crate::settings::Settings;
use bench::{BlockMeasurer, Options};
use clap::{Args, ValueEnum};
use engine::prefetch::prefetch_by_probes;
use host::{counts, cycles_of_hits, host, known_counts};
use pmu::Command;
use report::documents::count::Count;
use report::documents::prefetch::Plan;
use report::documents::prefetch::Prefetch;
use report::files::{check_place, write_whole};
use report::render::width::Page;
use report::render::{count, json, prefetch, prefetch_plan};
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
    present(&args.files, "without a recording: `tdtool prefetch -- COMMAND`")?;
    match args.command.is_empty() {
        true => reading(&args.files, || advise(global, args)),
        false => advise(global, args),
    }
}

fn advise(global: &Global, args: &PrefetchArgs) -> Result<ExitCode> {
    for (path, option) in [(args.file(), "--output"), (args.plan.as_ref(), "--plan")] {
        path.map_or(Ok(()), |path| check_place(path, &args.files, option))?;
    }
    let settings = global.settings()?;
    let known = known_counts(&args.files)?;
    let (document, code) = match (known, args.command.is_empty()) {
        (Some(counts), _) => (by_probes(&settings, args, &counts)?, 0),
        (None, true) => (by_recordings(&settings, args)?, 0),
        (None, false) => {
            // A text leaves standard output to the command, a document takes it.
            let stdout_to_stderr = args.file().is_none() && !args.is_beside();
            let command = Command { argv: args.command.clone(), stdout_to_stderr };
            let (counts, code) = counts(&settings, command)?;
            if counts.interrupted.is_some() {
                message::note("interrupted: no advice; what was counted until then:");
                let text = match args.format {
                    Format::Text => count::text(&counts, args.page(), false),
                    Format::Json | Format::Csv => json::pretty(&counts)?,
                };
                args.write(&text)?;
                return Ok(status(code));
            }
            (by_probes(&settings, args, &counts)?, code)
        }
    };
    if let Some(path) = &args.plan {
        let plan = Plan::of(&document);
        if plan.prefetches.is_empty() {
            message::note(&empty(&document));
        }
        write_whole(path, written(&plan, args.plan_format)?.as_bytes(), &args.files, "--plan")?;
    }
    if matches!(args.format, Format::Csv) {
        // They may say that a recording is damaged.
        document.notes.iter().for_each(|text| message::note(text));
    }
    args.write(&match args.format {
        Format::Text => prefetch::text(&document, args.n, settings.ascii, args.page()),
        Format::Json => json::pretty(&document)?,
        Format::Csv => prefetch::csv(&document),
    })?;
    Ok(status(code))
}

fn status(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1))
}

impl PrefetchArgs {
    fn file(&self) -> Option<&PathBuf> {
        self.output.as_ref().filter(|path| path.as_os_str() != "-")
    }

    /// Whether the text goes to standard error, beside the output of the command.
    fn is_beside(&self) -> bool {
        self.file().is_none() && self.format == Format::Text && !self.command.is_empty()
    }

    fn page(&self) -> Page {
        if self.is_beside() { error_page() } else { page(self.output.as_deref()) }
    }

    fn write(&self, text: &str) -> Result<()> {
        match self.file() {
            Some(path) => write_whole(path, text.as_bytes(), &self.files, "--output"),
            None if self.is_beside() => {
                message::plain(&tma::text::lines(text));
                Ok(())
            }
            None => print(text),
        }
    }
}

/// A measurer of blocks, and the name of this processor.
fn measurer(settings: &Settings) -> Result<(BlockMeasurer, String)> {
    let core = settings.core_model()?.core.clone();
    let mut here = core.cpu.name.clone();
    if let Some(uarch) = core.uarch() {
        here += &format!(" ({uarch})");
    }
    Ok((BlockMeasurer::new(Options { core, ..Options::quick() }), here))
}

fn by_probes(settings: &Settings, args: &PrefetchArgs, counts: &Count) -> Result<Prefetch> {
    let _clock = Clock::start("measuring this host and hot loops", None, false);
    let (mut measurer, here) = measurer(settings)?;
    let host = host(settings, &mut measurer, counts)?;
    let mut measure = |code: &[u8]| cycles_of_hits(&mut measurer, code);
    let mut document = prefetch_by_probes(counts, &args.search.paths()?, &host, &mut measure)?;
    if args.command.is_empty() {
        document.notes.push(format!(
            "counts, latencies and times are of the machine that counted; IC, clock and misses in flight of this one, {here}"
        ));
    }
    Ok(document)
}

fn by_recordings(settings: &Settings, args: &PrefetchArgs) -> Result<Prefetch> {
    let search = args.search.paths()?;
    if !args.measure {
        return engine::prefetch::prefetch(&args.files, &search, None);
    }
    let (mut measurer, here) = measurer(settings)?;
    let mut measure = |code: &[u8]| cycles_of_hits(&mut measurer, code);
    engine::prefetch::prefetch(&args.files, &search, Some((&mut measure, &here)))
}

/// Why a plan has no prefetch.
fn empty(document: &Prefetch) -> String {
    let undecided = document.advice.iter().filter(|row| row.undecided).count();
    let refused = document.advice.iter().filter(|row| row.refused.is_some()).count() - undecided;
    let unknown = document.advice.len() - refused - undecided;
    format!(
        "the plan is empty: a prefetch cannot help {refused} loads, distance or loop are not known of {unknown}, and \
         {undecided} are not decided"
    )
}

fn written(plan: &Plan, format: PlanFormat) -> Result<String> {
    Ok(match format {
        PlanFormat::Json => json::pretty(plan)?,
        PlanFormat::Hints => prefetch_plan::hints(plan),
        PlanFormat::Llvm => prefetch_plan::llvm(plan),
    })
}
