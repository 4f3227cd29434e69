//! The options of `tdtool block`.

use crate::cli::Global;
use bench::{ClockSource, Init, Options, Pmu};
use clap::{Args, ValueEnum};
use engine::known::Known;
use engine::topdown::required as required_pmu;
use pmu::machine::Machine;
use std::path::PathBuf;
use std::time::Duration;
use tma::{Error, Result};

const INPUT: &str = "Which block";
const BATCH: &str = "Many blocks";
const EFFORT: &str = "How thoroughly";
const METHOD: &str = "How";
const VALUES: &str = "Initial values and pages";

#[derive(Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("input").required(true))]
pub struct BlockArgs {
    /// Hexadecimal bytes; FILE:START..END, FILE:0xADDRESS, FILE:FUNCTION[+N] or a FILE with IACA markers; `-`: code on standard input
    #[arg(group = "input", help_heading = INPUT)]
    pub block: Option<String>,
    /// Assembly, Intel syntax, one instruction per line or `;` (needs `as`)
    #[arg(long, group = "input", value_name = "TEXT", help_heading = INPUT)]
    pub asm: Option<String>,
    /// Assembly file (`-`: standard input), such as gcc -S writes; LLVM-MCA, OSACA or IACA markers choose regions
    #[arg(long, group = "input", value_name = "FILE", help_heading = INPUT)]
    pub asm_file: Option<PathBuf>,
    /// The assembly is in AT&T syntax; of a file that is told from the file
    #[arg(long, conflicts_with_all = ["block", "batch", "repeat"], help_heading = INPUT)]
    pub att: bool,
    /// The block of a JSON report, with exactly its initial values and pages
    #[arg(long, group = "input", value_name = "FILE", conflicts_with_all = ["init", "value_sets", "no_mapping"], help_heading = INPUT)]
    pub repeat: Option<PathBuf>,
    /// Of several regions, only this one: its name, or its number from 0
    #[arg(long, value_name = "NAME", conflicts_with_all = ["asm", "batch"], help_heading = INPUT)]
    pub region: Option<String>,
    /// List the blocks of the function instead: FILE:FUNCTION, or FILE:0xADDRESS in it
    #[arg(long, conflicts_with_all = ["asm", "asm_file", "repeat", "batch", "region", "tui", "what_if"], help_heading = INPUT)]
    pub list: bool,

    /// Measure every block of FILE (`-`: standard input): first column of a CSV, or one per line
    #[arg(long, group = "input", value_name = "FILE", requires = "output", help_heading = BATCH)]
    pub batch: Option<PathBuf>,
    /// Where a batch's rows go
    #[arg(short, long, value_name = "FILE", requires = "batch", help_heading = BATCH)]
    pub output: Option<PathBuf>,
    /// Go on behind the last whole row of the output file
    #[arg(long, requires = "batch", help_heading = BATCH)]
    pub resume: bool,
    /// Blocks measured at once, at most one on each physical core [default: one on each]
    #[arg(long, value_name = "N", requires = "batch", value_parser = clap::value_parser!(u16).range(1..), help_heading = BATCH)]
    pub jobs: Option<u16>,

    /// Screening: 16 samples, no loop form
    #[arg(long, conflicts_with = "thorough", help_heading = EFFORT)]
    pub quick: bool,
    /// More placements, passes and samples
    #[arg(long, help_heading = EFFORT)]
    pub thorough: bool,
    /// Tell, too, what lowers the time: chains broken, instructions left out, measured again
    #[arg(long, conflicts_with_all = ["batch", "quick"], help_heading = EFFORT)]
    pub what_if: bool,
    /// Tell only how long it takes, not why
    #[arg(long, conflicts_with = "what_if", help_heading = EFFORT)]
    pub no_explain: bool,
    #[command(flatten)]
    pub knobs: Knobs,
    /// Start with the registers of FILE (lines `rax=0x1`), or those that samples have at the block's first instruction: snapshot:RECORDING
    #[arg(long, value_name = "FILE", conflicts_with_all = ["batch", "repeat"], help_heading = VALUES)]
    pub registers: Option<String>,

    /// Look at the report interactively (on a terminal)
    #[arg(long, conflicts_with_all = ["batch", "format"])]
    pub tui: bool,
    /// Measure on this processor
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
    /// How to write the report
    #[arg(long, value_enum, default_value = "text", conflicts_with = "batch")]
    pub format: Format,
    /// Tell of every assumption how it is known
    #[arg(short, long, conflicts_with = "batch")]
    pub verbose: bool,
}

/// Single settings; each replaces what the preset and the method say.
#[derive(Args)]
pub struct Knobs {
    /// Passes over all placements, apart in time
    #[arg(long, value_name = "N", value_parser = number(1, 100), help_heading = EFFORT)]
    passes: Option<u64>,
    /// Places in memory that the code is run at
    #[arg(long, value_name = "N", value_parser = number(1, 6), help_heading = EFFORT)]
    placements: Option<u64>,
    /// Samples for each pass and placement
    #[arg(long, value_name = "N", value_parser = number(4, 254), help_heading = EFFORT)]
    rounds: Option<u64>,
    /// Passes repeated because the core was shared
    #[arg(long, value_name = "N", value_parser = number(0, 1000), help_heading = EFFORT)]
    retries: Option<u64>,
    /// How long a block may wait for a core that nothing else uses, in milliseconds
    #[arg(long, value_name = "MS", value_parser = number(1, 3_600_000), help_heading = EFFORT)]
    budget: Option<u64>,

    /// `bhive`: one physical page, one set of initial values, plain unrolling
    #[arg(long, value_enum, default_value = "full", help_heading = METHOD)]
    method: Method,
    /// Most copies in the unrolled form
    #[arg(long, value_name = "N", value_parser = number(2, 480), help_heading = METHOD)]
    copies: Option<u64>,
    /// Start the code N bytes behind a line of 64
    #[arg(long, value_name = "N", value_parser = number(0, 63), help_heading = METHOD)]
    align: Option<u64>,
    /// Throughput is cycles(u)/u, not the difference of two unroll factors
    #[arg(long, help_heading = METHOD)]
    single_factor: bool,
    /// Always restore registers and memory between repetitions of the copies
    #[arg(long, help_heading = METHOD)]
    straight: bool,
    /// Compute with subnormals: leave FTZ and DAZ off
    #[arg(long, help_heading = METHOD)]
    gradual_underflow: bool,
    /// Leave out the loop form
    #[arg(long, help_heading = METHOD)]
    no_loop: bool,
    /// Where core cycles come from: the PMU where there is one, else the time-stamp counter
    #[arg(long, value_enum, default_value = "auto", help_heading = METHOD)]
    clock: Clock,
    /// Fail with status 3 where there is no core PMU to count with
    #[arg(long, help_heading = METHOD)]
    require_pmu: bool,
    /// Count no misses and no top-down tree, PMU or not
    #[arg(long, help_heading = METHOD)]
    no_counts: bool,
    /// Keep samples although something else seems to use the core (for emulators)
    #[arg(long, help_heading = METHOD)]
    no_sentinel: bool,

    /// Start with this value; REG is a 64-bit register, mem or vec. May be repeated
    #[arg(long, value_name = "REG=VALUE", value_parser = init, help_heading = VALUES)]
    init: Vec<(Init, u64)>,
    /// Sets of initial values that are tried
    #[arg(long, value_name = "N", value_parser = number(1, 1000), help_heading = VALUES)]
    value_sets: Option<u64>,
    /// Do not set overwritten address registers again before each copy
    #[arg(long, help_heading = VALUES)]
    no_reseed: bool,
    /// A page fault fails the block
    #[arg(long, help_heading = VALUES)]
    no_mapping: bool,
    /// Pages that a block may touch
    #[arg(long, value_name = "N", value_parser = number(1, 256), help_heading = VALUES)]
    page_limit: Option<u64>,
    /// Distinct physical pages behind them
    #[arg(long, value_name = "N", value_parser = number(1, 16), help_heading = VALUES)]
    physical_pages: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Csv,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    Full,
    Bhive,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Clock {
    Auto,
    Tsc,
    Pmu,
}

fn number(least: u64, most: u64) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(least..=most)
}

/// `--init` as the engine reads it; its remedy becomes part of the message.
fn init(text: &str) -> std::result::Result<(Init, u64), String> {
    Init::parse(text).map_err(|e| match e.remedy() {
        Some(remedy) => format!("{e}; {remedy}"),
        None => e.to_string(),
    })
}

impl BlockArgs {
    /// Preset, then method, then single settings; with this machine's PMU.
    pub fn options(&self, global: &Global, known: &Known) -> Result<Options> {
        let options = Options { core: known.core.clone(), ..self.chosen() };
        let required = self.knobs.require_pmu || options.clock == ClockSource::Pmu;
        if options.clock == ClockSource::Pmu && !options.two_factors {
            return Err(Error::usage("--clock pmu needs both unroll factors")
                .because("counts of one run hold all that is around the block")
                .hint("leave out --single-factor, or --clock"));
        }
        if !required && !options.counts && options.clock == ClockSource::Tsc {
            return Ok(options);
        }
        let (machine, library) = (Machine::detect(), global.library()?);
        let found = Pmu::find(&machine, &library, global.uarch.as_deref(), options.cpu)?;
        let pmu = match found {
            Ok(pmu) => pmu,
            Err(finding) if required => return Err(required_pmu(&finding)),
            Err(finding) => Pmu::Absent(finding.cause.unwrap_or(finding.what)),
        };
        Ok(Options { pmu, ..options })
    }

    fn chosen(&self) -> Options {
        let preset = match (self.quick, self.thorough) {
            (true, _) => Options::quick(),
            (_, true) => Options::thorough(),
            _ => Options::default(),
        };
        let options = self.knobs.over(preset);
        Options { cpu: self.cpu, explain: options.explain && !self.no_explain, ..options }
    }
}

impl Knobs {
    fn over(&self, preset: Options) -> Options {
        let options = if self.method == Method::Bhive { preset.bhive() } else { preset };
        let chosen = |knob: Option<u64>, preset: usize| knob.map_or(preset, |n| n as usize);
        Options {
            passes: chosen(self.passes, options.passes),
            placements: chosen(self.placements, options.placements),
            rounds: chosen(self.rounds, options.rounds),
            retries: chosen(self.retries, options.retries),
            budget: self.budget.map_or(options.budget, Duration::from_millis),
            copies: self.copies.map(|n| n as usize),
            align: self.align.map(|n| n as usize),
            two_factors: options.two_factors && !self.single_factor,
            straight: options.straight || self.straight,
            gradual_underflow: self.gradual_underflow,
            loop_form: options.loop_form && !self.no_loop,
            clock: match self.clock {
                Clock::Auto => ClockSource::Auto,
                Clock::Tsc => ClockSource::Tsc,
                Clock::Pmu => ClockSource::Pmu,
            },
            counts: options.counts && !self.no_counts,
            sentinel: options.sentinel && !self.no_sentinel,
            mapping: options.mapping && !self.no_mapping,
            physical_pages: chosen(self.physical_pages, options.physical_pages),
            page_limit: chosen(self.page_limit, options.page_limit),
            value_sets: chosen(self.value_sets, options.value_sets),
            reseed: options.reseed && !self.no_reseed,
            init: self.init.clone(),
            ..options
        }
    }
}
