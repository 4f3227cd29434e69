//! The single options of `tdtool block` that replace settings of the preset and the method.

use crate::cli::code::initial_values;
use bench::{ClockSource, Init, MAX_COPIES, Options};
use clap::{Args, ValueEnum};
use std::time::Duration;

const EFFORT: &str = "Effort";
const METHOD: &str = "Method";
const VALUES: &str = "Initial values and pages";

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
    /// Keep samples despite detected contention (for emulators)
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

fn number(least: u64, most: u64) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(least..=most)
}

impl Knobs {
    /// `preset` with the method and the options that are given.
    pub fn applied_to(&self, preset: Options) -> Options {
        let options = if self.method == Method::Bhive { preset.bhive() } else { preset };
        let chosen = |knob: Option<u64>, preset: usize| knob.map_or(preset, |n| n as usize);
        Options {
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
            ..options
        }
    }
}
