//! The options of `tdtool block`.

use crate::cli::code::{Named, initial_values};
use crate::cli::options::number;
use crate::settings::Settings;
use bench::{ClockSource, Init, MAX_COPIES, Options, Pmu};
use clap::{Args, ValueEnum};
use engine::core_model::CoreModel;
use engine::topdown::required as required_pmu;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tma::{Error, Result};

const INPUT: &str = "Input";
const BATCH: &str = "Batch";
const EFFORT: &str = "Effort";
const METHOD: &str = "Method";
const VALUES: &str = "Initial values and pages";
const OUTPUT: &str = "Output";

/// Options that name no block of a program, or give it other values.
const NOT_CAPTURED: [&str; 6] = ["asm", "asm_file", "repeat", "batch", "list", "registers"];

#[derive(Clone, Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("input").required(true))]
#[command(after_help = crate::cli::code::INPUTS)]
pub struct BlockArgs {
    /// Block to measure; see Blocks below
    #[arg(group = "input", help_heading = INPUT)]
    pub block: Option<String>,
    /// Assembly in Intel syntax, separated by newlines or `;` (needs `as`)
    #[arg(long, group = "input", value_name = "TEXT", help_heading = INPUT)]
    pub asm: Option<String>,
    /// Assembly file, such as from gcc -S (-: standard input)
    #[arg(long, group = "input", value_name = "FILE", help_heading = INPUT)]
    pub asm_file: Option<PathBuf>,
    /// The assembly is in AT&T syntax; autodetected for files
    #[arg(long, conflicts_with_all = ["block", "batch", "repeat"], help_heading = INPUT)]
    pub att: bool,
    /// Measure the block of a JSON report again, with its values and pages
    #[arg(long, group = "input", value_name = "FILE", conflicts_with_all = ["init", "value_sets", "no_mapping"], help_heading = INPUT)]
    pub repeat: Option<PathBuf>,
    /// Measure only this region: its name, or its number from 0
    #[arg(long, value_name = "NAME", conflicts_with_all = ["asm", "batch"], help_heading = INPUT)]
    pub region: Option<String>,
    /// Only list the blocks of FILE:FUNCTION or FILE:0xADDRESS, or FILE's functions
    #[arg(long, conflicts_with_all = ["asm", "asm_file", "repeat", "batch", "region", "tui", "what_if"], help_heading = INPUT)]
    pub list: bool,

    /// Compare with another block; with --batch, judge predictions (hex,cycles CSV)
    #[arg(long, value_name = "BLOCK|CSV", conflicts_with_all = ["list", "tui", "repeat", "what_if", "region"], help_heading = INPUT)]
    pub against: Option<String>,
    /// Measure all blocks in FILE: one per line, or a CSV's first column (-: stdin)
    #[arg(long, group = "input", value_name = "FILE", requires = "output", help_heading = BATCH)]
    pub batch: Option<PathBuf>,
    /// CSV file for the results of a batch
    #[arg(short, long, value_name = "FILE", requires = "batch", help_heading = BATCH)]
    pub output: Option<PathBuf>,
    /// Continue after the last complete row of the output file
    #[arg(long, requires = "batch", help_heading = BATCH)]
    pub resume: bool,
    /// Replace the output file if it has rows already
    #[arg(long, requires = "batch", conflicts_with = "resume", help_heading = BATCH)]
    pub force: bool,
    /// Measure N blocks in parallel, one per physical core [default: on all cores]
    #[arg(long, value_name = "N", requires = "batch", value_parser = clap::value_parser!(u16).range(1..), help_heading = BATCH)]
    pub jobs: Option<u16>,

    /// Screen quickly: 16 rounds, no loop form
    #[arg(long, conflicts_with = "thorough", help_heading = EFFORT)]
    pub quick: bool,
    /// Use more placements, passes and rounds
    #[arg(long, help_heading = EFFORT)]
    pub thorough: bool,
    /// Also re-measure with dependencies broken or instructions removed
    #[arg(long, conflicts_with_all = ["batch", "quick"], help_heading = EFFORT)]
    pub what_if: bool,
    /// Measure the time without explaining it
    #[arg(long, conflicts_with = "what_if", help_heading = EFFORT)]
    pub no_explain: bool,
    /// Show the port pressure of each instruction, predicted from tables
    #[arg(long, conflicts_with_all = ["batch", "list", "tui"], help_heading = OUTPUT)]
    pub ports: bool,
    /// Also predict the block on another core, from tables (see `tdtool tables list`)
    #[arg(long, value_name = "UARCH", value_delimiter = ',', conflicts_with_all = ["batch", "list", "tui"], help_heading = OUTPUT)]
    pub predict: Vec<String>,
    #[command(flatten)]
    pub knobs: Knobs,
    /// Initial registers: FILE of lines rax=0x1 or saved values; snapshot:RECORDING
    #[arg(long, value_name = "FILE", conflicts_with_all = ["batch", "repeat"], help_heading = VALUES)]
    pub registers: Option<String>,
    /// Run the program and start with its values at the N-th entry of the block
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = NOT_CAPTURED, help_heading = VALUES)]
    pub entry: Option<u64>,
    /// Capture up to N executions of the loop, of which the headline is the mean
    #[arg(long, value_name = "N", default_value_t = 8, conflicts_with = "entry", help_heading = VALUES)]
    pub executions: usize,
    /// Run the program twice before, to capture an execution with the median of trips
    #[arg(long, conflicts_with = "entry", conflicts_with_all = NOT_CAPTURED, help_heading = VALUES)]
    pub typical: bool,
    /// Run FILE's program without arguments and use the values it has there
    #[arg(long, conflicts_with = "arguments", conflicts_with_all = NOT_CAPTURED, help_heading = VALUES)]
    pub run: bool,
    /// Keep the captured values in FILE, for --registers
    #[arg(long, value_name = "FILE", conflicts_with_all = NOT_CAPTURED, help_heading = VALUES)]
    pub save_values: Option<PathBuf>,
    /// Run FILE's program (of a library: this command) and use the values it has there
    #[arg(last = true, value_name = "ARGS", conflicts_with_all = NOT_CAPTURED)]
    pub arguments: Vec<OsString>,

    /// Show the report interactively (on a terminal)
    #[arg(long, conflicts_with_all = ["batch", "format"], help_heading = OUTPUT)]
    pub tui: bool,
    /// Measure on this CPU
    #[arg(long, value_name = "N", help_heading = EFFORT)]
    pub cpu: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value = "text", help_heading = OUTPUT)]
    pub format: Format,
    /// Show the evidence for each assumption
    #[arg(short, long, conflicts_with = "batch", help_heading = OUTPUT)]
    pub verbose: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Csv,
}

impl BlockArgs {
    /// The arguments that name the block.
    pub fn named(&self) -> Named<'_> {
        Named {
            block: self.block.as_deref(),
            asm: self.asm.as_deref(),
            asm_file: self.asm_file.as_deref(),
            att: self.att,
        }
    }

    /// Arguments for another block of a program, whose values are not saved.
    pub fn of_other(&self, block: &str) -> Self {
        let block = Some(block.to_owned());
        let (against, asm_file, save_values) = (None, None, None);
        Self { block, against, asm_file, save_values, ..self.clone() }
    }

    /// Whether the program is to be run for its values.
    pub fn is_run(&self) -> bool {
        // A program without arguments: clap does not tell an empty `--` from none.
        let separated = || std::env::args_os().any(|word| word == "--");
        let named = self.run || self.entry.is_some() || self.typical || self.save_values.is_some();
        named || !self.arguments.is_empty() || separated()
    }

    /// How to measure: a preset, changed by the method, changed by single options; with this
    /// machine's PMU.
    pub fn options(&self, settings: &Settings, model: &CoreModel) -> Result<Options> {
        let options = Options { core: model.core.clone(), ..self.chosen() };
        let required = self.knobs.require_pmu || options.clock == ClockSource::Pmu;
        if options.clock == ClockSource::Pmu && !options.two_factors {
            return Err(Error::usage("--clock pmu needs both unroll factors")
                .because("the counts of a single run include the code around the block")
                .hint("leave out --single-factor or --clock"));
        }
        if !required && !options.counts && options.clock == ClockSource::Tsc {
            return Ok(options);
        }
        // Counted is the core that is measured, whatever is predicted.
        let is_own = |name: &&str| model.core.uarch().is_some_and(|u| u.eq_ignore_ascii_case(name));
        let uarch = settings.uarch.as_deref().filter(is_own);
        let pmu = match Pmu::find(settings.machine(), settings.library, uarch, options.cpu)? {
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
        let options = self.knobs.applied_to(preset);
        Options { cpu: self.cpu, explain: options.explain && !self.no_explain, ..options }
    }
}

#[derive(Clone, Args)]
pub struct Knobs {
    /// Passes over all placements, separated in time
    #[arg(long, value_name = "N", value_parser = number(1, 100), help_heading = EFFORT)]
    passes: Option<u64>,
    /// Number of code placements to try
    #[arg(long, value_name = "N", value_parser = number(1, 6), help_heading = EFFORT)]
    placements: Option<u64>,
    /// Samples per pass and placement
    #[arg(long, value_name = "N", value_parser = number(4, 254), help_heading = EFFORT)]
    rounds: Option<u64>,
    /// Passes that may be repeated because of contention for the core
    #[arg(long, value_name = "N", value_parser = number(0, 1000), help_heading = EFFORT)]
    retries: Option<u64>,
    /// Longest wait for an uncontended core in milliseconds; ends a block 2 s after
    #[arg(long, value_name = "MS", value_parser = number(1, 3_600_000), help_heading = EFFORT)]
    budget: Option<u64>,

    /// Method; bhive: one physical page, one set of values, plain unrolling
    #[arg(long, value_enum, default_value = "full", help_heading = METHOD)]
    method: Method,
    /// Maximum number of copies in the unrolled form
    #[arg(long, value_name = "N", value_parser = number(2, MAX_COPIES as u64), help_heading = METHOD)]
    copies: Option<u64>,
    /// Start the code at offset N within a 64-byte cache line
    #[arg(long, value_name = "N", value_parser = number(0, 63), help_heading = METHOD)]
    align: Option<u64>,
    /// Compute cycles(u)/u instead of the difference of two unroll factors
    #[arg(long, help_heading = METHOD)]
    single_factor: bool,
    /// Always restore registers and memory between repetitions of the copies
    #[arg(long, help_heading = METHOD)]
    straight: bool,
    /// Compute with subnormals: leave FTZ and DAZ off
    #[arg(long, help_heading = METHOD)]
    gradual_underflow: bool,
    /// Skip the loop form
    #[arg(long, help_heading = METHOD)]
    no_loop: bool,
    /// Source of core cycles; auto: the PMU if there is one, else the TSC
    #[arg(long, value_enum, default_value = "auto", help_heading = METHOD)]
    clock: Clock,
    /// Exit with status 3 if there is no core PMU to count with
    #[arg(long, help_heading = METHOD)]
    pub require_pmu: bool,
    /// Do not count misses and the top-down tree
    #[arg(long, help_heading = METHOD)]
    no_counts: bool,
    /// Keep rounds despite detected contention (for emulators)
    #[arg(long, help_heading = METHOD)]
    no_sentinel: bool,

    /// Initial value; REG is a 64-bit register, mem or vec; repeatable
    #[arg(long, value_name = "REG=VALUE", value_parser = initial_values::parse, help_heading = VALUES)]
    init: Vec<(Init, u64)>,
    /// Number of sets of initial values to try
    #[arg(long, value_name = "N", value_parser = number(1, 1000), help_heading = VALUES)]
    value_sets: Option<u64>,
    /// Do not restore overwritten address registers before each copy
    #[arg(long, help_heading = VALUES)]
    no_reseed: bool,
    /// Fail on a page fault instead of mapping the page
    #[arg(long, help_heading = VALUES)]
    no_mapping: bool,
    /// Maximum number of pages that a block may access
    #[arg(long, value_name = "N", value_parser = number(1, 256), help_heading = VALUES)]
    page_limit: Option<u64>,
    /// Number of physical pages that back them
    #[arg(long, value_name = "N", value_parser = number(1, 16), help_heading = VALUES)]
    physical_pages: Option<u64>,
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

impl Knobs {
    /// `preset` with the method and the options that are given.
    pub fn applied_to(&self, preset: Options) -> Options {
        let options = if self.method == Method::Bhive { preset.bhive() } else { preset };
        let chosen = |knob: Option<u64>, preset: usize| knob.map_or(preset, |n| n as usize);
        let changed = Options {
            passes: chosen(self.passes, options.passes),
            placements: chosen(self.placements, options.placements),
            rounds: chosen(self.rounds, options.rounds),
            retries: chosen(self.retries, options.retries),
            budget: self.budget.map_or(options.budget, Duration::from_millis),
            is_limited: self.budget.is_some(),
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
            ..options.clone()
        };
        let samples = |o: &Options| (o.passes, o.placements, o.rounds);
        let pages = |o: &Options| (o.physical_pages, o.value_sets);
        let is_method = pages(&changed) == pages(&options);
        Options {
            preset: options.preset.filter(|_| samples(&changed) == samples(&options)),
            method: if is_method { options.method } else { bench::Method::Tdtool },
            ..changed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::Preset;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Given {
        #[command(flatten)]
        knobs: Knobs,
    }

    #[test]
    fn presets_and_the_paper_s_method_are_named_and_changed_ones_are_not() {
        let of = |words: &[&str], preset: Options| {
            let given = Given::parse_from([&["block"], words].concat());
            let options = given.knobs.applied_to(preset);
            (options.preset, options.method)
        };
        let (full, paper) = (bench::Method::Tdtool, bench::Method::Bhive);
        assert_eq!(of(&[], Options::quick()), (Some(Preset::Quick), full));
        assert_eq!(of(&["--retries", "9"], Options::default()), (Some(Preset::Default), full));
        assert_eq!(of(&["--passes", "7"], Options::thorough()), (None, full));
        assert_eq!(of(&["--passes", "5"], Options::thorough()), (Some(Preset::Thorough), full));
        let bhive = ["--method", "bhive"];
        assert_eq!(of(&bhive, Options::default()), (Some(Preset::Default), paper));
        let more = [&bhive[..], &["--value-sets", "4"]].concat();
        assert_eq!(of(&more, Options::default()).1, full);
    }
}
