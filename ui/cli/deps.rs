//! `tdtool deps`: data dependencies of a block, or of several that run in sequence as a loop.

use super::code::initial_values::{self, Place};
use super::code::{self, Named, chosen, located};
use super::files::{self, page, print, rows_have_a_batch};
use super::measure::exit_code;
use super::options::Global;
use crate::message::note;
use bench::Init;
use bench::batch::rows;
use clap::{Args, ValueEnum};
use engine::deps::{DepsAnalyser, DepsAsk};
use engine::initial_values::set;
use isa::deps::memory::InitialValues;
use isa::program::{Located, Location};
use pmu::perf::Signals;
use report::documents::deps::{Census, Document};
use report::files::{check_output, write_whole};
use report::render::deps::{Drawing, HEADER, dot, text};
use report::render::{deps, json};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tma::Result;

const INPUT: &str = "Input";
const BATCH: &str = "Batch";
const ANALYSIS: &str = "Analysis";
const OUTPUT: &str = "Output";

#[derive(Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("code").required(true))]
#[command(after_help = super::code::INPUTS)]
pub struct DepsArgs {
    /// Block to analyse; see Blocks below
    #[arg(group = "code", help_heading = INPUT)]
    pub block: Option<String>,
    /// Assembly in Intel syntax, separated by newlines or `;` (needs `as`)
    #[arg(long, group = "code", value_name = "TEXT", help_heading = INPUT)]
    pub asm: Option<String>,
    /// Assembly file, such as from gcc -S (-: standard input)
    #[arg(long, group = "code", value_name = "FILE", help_heading = INPUT)]
    pub asm_file: Option<PathBuf>,
    /// Blocks that run in sequence as a loop: FILE:FUNCTION+3,4,6 or FILE:START..END,…
    #[arg(long, group = "code", value_name = "BLOCKS", help_heading = INPUT)]
    pub path: Option<String>,
    /// The assembly is in AT&T syntax; autodetected for files
    #[arg(long, conflicts_with_all = ["block", "batch", "path"], help_heading = INPUT)]
    pub att: bool,
    /// Analyse only this region: its name, or its number from 0
    #[arg(long, value_name = "NAME", conflicts_with_all = ["asm", "batch", "path"], help_heading = INPUT)]
    pub region: Option<String>,

    /// Analyse all blocks in FILE: one per line, or a CSV's first column (-: stdin)
    #[arg(long, group = "code", value_name = "FILE", requires = "output", conflicts_with_all = ["registers", "init", "all", "arrows", "format"], help_heading = BATCH)]
    pub batch: Option<PathBuf>,
    /// CSV file for the results of a batch
    #[arg(short, long, value_name = "FILE", requires = "batch", help_heading = BATCH)]
    pub output: Option<PathBuf>,
    /// CSV file for the unmodelled instructions of a batch and their counts
    #[arg(long, value_name = "FILE", requires = "batch", help_heading = BATCH)]
    pub unmodelled: Option<PathBuf>,

    /// Initial values: FILE of `rax=0x1` or `[0x1000]=0x2` lines, or snapshot:RECORDING
    #[arg(long, value_name = "FILE", help_heading = ANALYSIS)]
    pub registers: Option<String>,
    /// Initial value; REG is a 64-bit register or mem; repeatable
    #[arg(long, value_name = "REG=VALUE", value_parser = initial_values::parse, help_heading = ANALYSIS)]
    pub init: Vec<(Init, u64)>,
    /// Runs with different random values that must agree
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = ANALYSIS)]
    pub seeds: u32,
    /// Reorder buffer entries [default: the processor's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384), help_heading = ANALYSIS)]
    pub rob: Option<u32>,

    /// Include false dependencies (write after read, write after write)
    #[arg(long, help_heading = OUTPUT)]
    pub all: bool,
    /// Draw every dependency, not only memory's and the slowest loop-carried one
    #[arg(long, help_heading = OUTPUT)]
    pub arrows: bool,
    /// Output format; dot: a graph for Graphviz
    #[arg(long, value_enum, default_value = "text", help_heading = OUTPUT)]
    pub format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    Text,
    Dot,
    Json,
}

impl DepsArgs {
    /// The arguments that name the block.
    pub fn named(&self) -> Named<'_> {
        Named {
            block: self.block.as_deref(),
            asm: self.asm.as_deref(),
            asm_file: self.asm_file.as_deref(),
            att: self.att,
        }
    }

    /// The program of the block, if it is named by its place in one.
    pub fn program(&self) -> Option<PathBuf> {
        let named = self.path.as_deref().or(self.block.as_deref())?;
        isa::program::split_location(named).map(|(file, _)| PathBuf::from(file))
    }
}

pub fn run(global: &Global, args: DepsArgs) -> Result<ExitCode> {
    rows_have_a_batch(args.batch.is_some(), args.output.as_deref())?;
    let mut analyser = DepsAnalyser::new(global.settings()?.core_model()?, args.rob);
    if let (Some(rows), Some(output)) = (&args.batch, &args.output) {
        analyser.notes().iter().for_each(|text| note(text));
        let unmodelled = args.unmodelled.as_deref();
        return analyse_rows(rows, output, unmodelled, &mut analyser, args.seeds);
    }
    let analyse = |pieces: Vec<Located>| {
        let (initial_values, seeded) = initial_values(&args, addresses(&pieces))?;
        let ask = DepsAsk { seeds: args.seeds, initial_values, seeded, all: args.all };
        analyser.document(&pieces, ask)
    };
    let documents: Result<Vec<Document>> = regions(&args)?.into_iter().map(analyse).collect();
    let documents = documents?;
    let drawing = Drawing { ascii: global.ascii, every: args.arrows, page: page(None) };
    print(&match args.format {
        Format::Text => documents.iter().map(|d| text(d, drawing)).collect::<Vec<_>>().join("\n"),
        Format::Dot => documents.iter().map(dot).collect(),
        Format::Json if documents.len() > 1 => json::pretty(&documents)?,
        Format::Json => documents.iter().map(json::pretty).collect::<Result<_>>()?,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The regions, each of one or more blocks.
fn regions(args: &DepsArgs) -> Result<Vec<Vec<Located>>> {
    // A place in a program is a path of one block.
    let place = args.block.as_deref().filter(|b| Location::parse(b).is_some());
    if let Some(path) = args.path.as_deref().or(place.filter(|_| args.region.is_none())) {
        return Ok(vec![code::blocks_of_path(path)?]);
    }
    let all = chosen(located(&args.named())?, args.region.as_deref())?;
    Ok(all.into_iter().map(|one| vec![one]).collect())
}

/// Initial values of the region at `range`, and their sources.
fn initial_values(
    args: &DepsArgs,
    range: Range<u64>,
) -> Result<(Vec<InitialValues>, Option<String>)> {
    let file = args.program();
    let place = Place { file: file.as_deref(), range };
    let (mut all, mut sources) = initial_values::registers(args.registers.as_deref(), &place)?;
    if !args.init.is_empty() {
        if all.is_empty() {
            all.push(InitialValues::default());
        }
        for (place, value) in &args.init {
            for one in &mut all {
                set(one, *place, *value)?;
            }
        }
        sources.push("--init".to_owned());
    }
    Ok((all, (!sources.is_empty()).then(|| sources.join(", "))))
}

/// The addresses of a region in one piece; for several pieces, where the first begins.
fn addresses(pieces: &[Located]) -> Range<u64> {
    let start = pieces.first().map_or(0, |p| p.start);
    match pieces {
        [one] => start..start.saturating_add(one.bytes.len() as u64),
        _ => start..start,
    }
}

/// Analyses all rows of `path`; those until then if it is interrupted.
pub fn analyse_rows(
    path: &Path,
    output: &Path,
    unmodelled: Option<&Path>,
    analyser: &mut DepsAnalyser,
    seeds: u32,
) -> Result<ExitCode> {
    check_output(output, &[path.to_owned()], "--output")?;
    let rows = rows::read(&files::read_rows(path, output)?)?.rows;
    let mut out = format!("{HEADER}\n");
    let mut counted = Census::default();
    let signals = Signals::catch()?;
    let (mut done, mut interrupted) = (0, None);
    for one in &rows {
        interrupted = signals.next().map(|(number, _)| number);
        if interrupted.is_some() {
            break;
        }
        let line = analyser.row(one, seeds, &mut counted);
        let _ = writeln!(out, "{line}");
        done += 1;
    }
    write_whole(output, out.as_bytes(), &[path.to_owned()], "--output")?;
    if let Some(path) = unmodelled {
        write_whole(path, deps::census(&counted).as_bytes(), &[], "--unmodelled")?;
    }
    let Some(signal) = interrupted else { return Ok(ExitCode::SUCCESS) };
    note(&format!("interrupted: {done} of {} rows written", rows.len()));
    Ok(exit_code(128 + signal))
}
