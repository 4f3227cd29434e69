//! The options of `tdtool deps`.

use bench::Init;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const INPUT: &str = "Which block";
const HOW: &str = "How";

#[derive(Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("code").required(true))]
pub struct DepsArgs {
    /// Hexadecimal bytes; FILE:START..END, FILE:FUNCTION[+N] or a FILE with IACA markers; `-`: code on standard input
    #[arg(group = "code", help_heading = INPUT)]
    pub block: Option<String>,
    /// Assembly, Intel syntax, one instruction per line or `;` (needs `as`)
    #[arg(long, group = "code", value_name = "TEXT", help_heading = INPUT)]
    pub asm: Option<String>,
    /// Assembly file (`-`: standard input), such as gcc -S writes; LLVM-MCA, OSACA or IACA markers choose regions
    #[arg(long, group = "code", value_name = "FILE", help_heading = INPUT)]
    pub asm_file: Option<PathBuf>,
    /// Blocks that run one after the other, over and over: FILE:FUNCTION+3,4,6 or FILE:START..END,START..END
    #[arg(long, group = "code", value_name = "BLOCKS", help_heading = INPUT)]
    pub path: Option<String>,
    /// The assembly is in AT&T syntax; of a file that is told from the file
    #[arg(long, conflicts_with_all = ["block", "batch", "path"], help_heading = INPUT)]
    pub att: bool,
    /// Of several regions, only this one: its name, or its number from 0
    #[arg(long, value_name = "NAME", conflicts_with_all = ["asm", "batch", "path"], help_heading = INPUT)]
    pub region: Option<String>,
    /// Every block of FILE (`-`: standard input): first column of a CSV, or one per line
    #[arg(long, group = "code", value_name = "FILE", requires = "output", conflicts_with_all = ["registers", "init", "all", "arrows", "format"], help_heading = INPUT)]
    pub batch: Option<PathBuf>,
    /// With --batch: instructions that are not modelled, by name, with their counts, as CSV
    #[arg(long, value_name = "FILE", requires = "batch", help_heading = INPUT)]
    pub unmodelled: Option<PathBuf>,
    /// Where a batch's rows go
    #[arg(short, long, value_name = "FILE", requires = "batch", help_heading = INPUT)]
    pub output: Option<PathBuf>,

    /// Initial values: lines `rax=0x1` and `[0x1000]=0x2` of FILE, or snapshot:RECORDING for the registers sampled at the first instruction
    #[arg(long, value_name = "FILE", help_heading = HOW)]
    pub registers: Option<String>,
    /// Start with this value; REG is a 64-bit register or mem. May be repeated
    #[arg(long, value_name = "REG=VALUE", value_parser = init, help_heading = HOW)]
    pub init: Vec<(Init, u64)>,
    /// Runs, each with random values of its own, that must agree
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = HOW)]
    pub seeds: u32,
    /// Entries of the reorder buffer [default: the processor's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384), help_heading = HOW)]
    pub rob: Option<u32>,
    /// List false dependencies (write after read, write after write), too
    #[arg(long, help_heading = HOW)]
    pub all: bool,

    /// Arrows for all dependencies, not just memory's and the slowest recurrence's
    #[arg(long)]
    pub arrows: bool,
    /// How to write it
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    Text,
    /// A graph for Graphviz
    Dot,
    Json,
}

/// `--init` as the engine reads it; its remedy becomes part of the message.
fn init(text: &str) -> std::result::Result<(Init, u64), String> {
    Init::parse(text).map_err(|e| match e.remedy() {
        Some(remedy) => format!("{e}; {remedy}"),
        None => e.to_string(),
    })
}
