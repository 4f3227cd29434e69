//! The options of `tdtool deps`.

use crate::cli::code::initial_values;
use crate::cli::code::named::Named;
use bench::Init;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const INPUT: &str = "Input";
const BATCH: &str = "Batch";
const ANALYSIS: &str = "Analysis";
const OUTPUT: &str = "Output";

#[derive(Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("code").required(true))]
#[command(after_help = crate::cli::code::INPUTS)]
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
