//! The options of `tdtool record`.

use super::window_options::WindowArgs;
use crate::cli::measure::{MEASUREMENT, MeasureArgs, usage};
use crate::cli::options::Invalid;
use crate::config;
use clap::Args;
use engine::record::SampleAsk;
use pmu::sampling::{CallChains, FREQUENCY};
use std::ffi::OsString;
use std::path::PathBuf;
use tma::Result;

const SAMPLING: &str = "Sampling";

#[derive(Args)]
pub struct RecordArgs {
    /// Command to run and measure
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub measure: MeasureArgs,
    #[command(flatten)]
    pub sample: SampleArgs,
    #[command(flatten)]
    pub window: WindowArgs,
    /// Session file to write [default: tdtool-DATE.tds, a new one]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Report nothing but what went wrong, and the name of a file without -o
    #[arg(short, long)]
    pub quiet: bool,
    /// Write the counts every MS milliseconds; a crash loses no more than that
    #[arg(short = 'I', long, value_name = "MS", default_value = "1000", value_parser = clap::value_parser!(u64).range(10..), help_heading = MEASUREMENT)]
    pub interval: u64,
}

#[derive(Args)]
pub struct SampleArgs {
    /// Samples per second [default: 999, 99 with --every: no lockstep with timers]
    #[arg(short = 'F', long, value_name = "HZ", conflicts_with = "period", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = SAMPLING)]
    pub frequency: Option<u64>,
    /// Sample every N events instead
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(16..), help_heading = SAMPLING)]
    pub period: Option<u64>,
    /// Event to sample: perf name with modifiers, table name, or r01c2; repeatable
    #[arg(short, long, value_name = "EVENT", help_heading = SAMPLING)]
    pub event: Vec<String>,
    /// Sample the event that locates NODE, else cycles, else cpu-clock; repeatable
    #[arg(long, value_name = "NODE", help_heading = SAMPLING)]
    pub node: Vec<String>,
    /// Record the last branches before each sample (LBR), of user mode
    #[arg(short, long, help_heading = SAMPLING)]
    pub branches: bool,
    /// Sample loads that take at least N cycles, with address, origin and latency
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "0", help_heading = SAMPLING)]
    pub loads: Option<u64>,
    /// Read the counts of level 1 at each sample, for a tree per function
    #[arg(long, conflicts_with_all = ["branches", "loads"], help_heading = SAMPLING)]
    pub per_function: bool,
    /// Record callers: fp (frame pointers), lbr, dwarf or dwarf,BYTES (unwind tables)
    #[arg(short = 'g', long, value_name = "HOW", num_args = 0..=1, default_missing_value = "fp", value_parser = call_chains, help_heading = SAMPLING)]
    pub call_graph: Option<CallChains>,
    /// Record user-mode registers
    #[arg(long, help_heading = SAMPLING)]
    pub registers: bool,
    /// Ring buffer size per CPU; a larger one loses fewer samples
    #[arg(long, value_name = "KIB", default_value = "512", value_parser = clap::value_parser!(u64).range(4..=1_048_576), help_heading = SAMPLING)]
    pub buffer: u64,
    /// Count without sampling
    #[arg(long, conflicts_with_all = ["event", "node", "call_graph", "registers", "branches", "loads"], help_heading = SAMPLING)]
    pub no_samples: bool,
}

impl SampleArgs {
    /// Refuses contradictory options.
    fn check(&self) -> Result<()> {
        if self.branches && self.call_graph == Some(CallChains::Branches) {
            return Err(usage(
                "branch records hold either branches or callers",
                "--branches, or --call-graph lbr",
            ));
        }
        Ok(())
    }

    /// What they ask for.
    pub fn ask(&self) -> Option<SampleAsk> {
        (!self.no_samples).then(|| SampleAsk {
            frequency: self.frequency.unwrap_or(FREQUENCY),
            events: self.event.clone(),
            nodes: self.node.clone(),
            beside: Vec::new(),
            locate: false,
            per_function: self.per_function,
            call_chains: self.call_graph.unwrap_or_default(),
            registers: self.registers,
            branches: self.branches,
            loads: self.loads,
            period: self.period,
            ring: usize::try_from(self.buffer).unwrap_or(512) << 10,
            programs: config::kept_programs(),
            ..SampleAsk::default()
        })
    }
}

/// `fp`, `lbr`, `dwarf` or `dwarf,BYTES`, as perf has them.
fn call_chains(text: &str) -> std::result::Result<CallChains, Invalid> {
    let size = match text.split_once(',') {
        None if text == "fp" => return Ok(CallChains::FramePointers),
        None if text == "lbr" => return Ok(CallChains::Branches),
        None if text == "dwarf" => return Ok(CallChains::Stacks(CallChains::USUAL)),
        Some(("dwarf", size)) => size,
        _ => return Err(Invalid::CallChains),
    };
    let largest = CallChains::LARGEST;
    match size.parse::<u16>() {
        // The kernel copies whole words.
        Ok(bytes) if (8..=largest).contains(&bytes) => Ok(CallChains::Stacks(bytes & !7)),
        _ => Err(Invalid::Stack(largest)),
    }
}

impl RecordArgs {
    /// Refuses contradictory options.
    pub fn check(&self) -> Result<()> {
        self.measure.check()?;
        self.sample.check()?;
        let is_doubled = self.measure.targets() > 0 && !self.command.is_empty();
        self.window.check(is_doubled)?;
        let is_given = self.measure.targets() > 0 || self.window.every.is_some();
        if !is_given && self.command.is_empty() {
            return Err(usage("nothing to record", "`tdtool record -- COMMAND`, or -p PID, -a"));
        }
        Ok(())
    }
}
