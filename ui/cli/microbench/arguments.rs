//! The options of `tdtool microbench`.

use bench::Options;
use bench::microbench::{self, Bench};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::sync::Arc;
use tma::Core;

const EFFORT: &str = "Effort";
const CALIBRATION: &str = "Calibration";

#[derive(Args)]
#[command(subcommand_negates_reqs = true)]
pub struct MicrobenchArgs {
    /// Instruction forms that run together: FORM*COUNT, …
    #[arg(value_name = "FORMS", required_unless_present_any = ["from", "calibrate"])]
    pub forms: Option<String>,
    /// Use the forms of a block: hexadecimal, FILE:START..END or FILE:FUNCTION[+N]
    #[arg(long, value_name = "BLOCK", conflicts_with = "forms")]
    pub from: Option<String>,
    /// Measure common forms and store their latencies for `tdtool deps`
    #[arg(long, conflicts_with_all = ["forms", "from"], help_heading = CALIBRATION)]
    pub calibrate: bool,
    /// File for the latencies [default: in the user's cache directory]
    #[arg(long, value_name = "FILE", requires = "calibrate", help_heading = CALIBRATION)]
    pub output: Option<PathBuf>,
    /// Stop after this time; rerun to resume
    #[arg(long, value_name = "SECONDS", requires = "calibrate", default_value = "600", help_heading = CALIBRATION)]
    pub time_limit: u64,
    #[command(flatten)]
    pub effort: Effort,
    #[command(subcommand)]
    pub command: Option<What>,
}

#[derive(Args)]
pub struct Effort {
    /// Approximate number of instructions in the unrolled code
    #[arg(long, global = true, value_name = "N", default_value = "60", value_parser = number(1, 480), help_heading = EFFORT)]
    unroll_size: u64,
    /// Minimum dynamic instructions of the long run, as far as the sandbox allows
    #[arg(long, global = true, value_name = "N", default_value = "10000", value_parser = number(1, 1_000_000), help_heading = EFFORT)]
    total_insn: u64,
    /// Samples, over all passes and placements
    #[arg(long, global = true, value_name = "N", default_value = "192", value_parser = number(4, 3000), help_heading = EFFORT)]
    measures: u64,
    /// Output format
    #[arg(long, global = true, value_enum, default_value = "text")]
    pub format: Format,
    /// Measure on this CPU
    #[arg(long, global = true, value_name = "N", help_heading = EFFORT)]
    cpu: Option<usize>,
}

#[derive(Subcommand)]
pub enum What {
    /// List the instruction forms of this processor
    List {
        /// Pattern for their names, with * and ?
        #[arg(default_value = "*")]
        pattern: String,
        /// Include forms that cannot be measured here, with the reason
        #[arg(long)]
        refused: bool,
    },
    /// Measure the latency from each operand of a form to each result
    Latency {
        /// Instruction form
        form: String,
    },
    /// Measure the reciprocal throughput of a form with independent operands
    Throughput {
        /// Instruction form
        form: String,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Csv,
}

fn number(least: u64, most: u64) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(least..=most)
}

impl Effort {
    /// Microbenchmarks of this size on `core`.
    pub fn bench(&self, core: Arc<Core>) -> Bench {
        let sizes = microbench::Settings {
            unroll_size: self.unroll_size as usize,
            total_insn: self.total_insn as usize,
            measures: self.measures as usize,
            vector: None,
        };
        let options =
            Options { core, explain: false, counts: false, cpu: self.cpu, ..Options::default() };
        Bench::new(options, sizes)
    }
}
