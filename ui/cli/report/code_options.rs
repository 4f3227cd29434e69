//! The options of `tdtool report` about code: functions, blocks, callers.

use crate::cli::files::picture;
use crate::cli::measure::usage;
use crate::cli::options::Invalid;
use crate::cli::recordings::SearchArgs;
use crate::settings::Settings;
use clap::Args;
use engine::sampled::code::CodeAsk;
use profile::hot::Filter;
use std::path::PathBuf;
use tma::Result;

const CODE: &str = "Samples and code";

#[derive(Args)]
pub struct CodeArgs {
    /// Show the N hottest functions [default: 10, from 0.5 % of the time on]
    #[arg(long, value_name = "N", value_parser = functions, help_heading = CODE)]
    pub functions: Option<usize>,
    /// Show the N hottest loops and basic blocks [default: 5 loops]
    #[arg(long, value_name = "N", value_parser = blocks, help_heading = CODE)]
    pub blocks: Option<usize>,
    /// Show the callers of FUNCTION, and theirs (needs call chains: record -g)
    #[arg(long, value_name = "FUNCTION", help_heading = CODE)]
    pub callers: Option<String>,
    /// Show what FUNCTION calls, and what that calls (needs call chains: record -g)
    #[arg(long, value_name = "FUNCTION", help_heading = CODE)]
    pub callees: Option<String>,
    /// Leave inlined functions out of call chains: faster with much debug information
    #[arg(long, help_heading = CODE)]
    pub no_inline: bool,
    /// Measure hot blocks in isolation, loops with values of further runs (output too)
    #[arg(long, help_heading = CODE)]
    pub measure: bool,
    /// Count entries of the hottest blocks by probes: a further run, output repeated
    #[arg(long, conflicts_with_all = ["thread", "time"], help_heading = CODE)]
    pub counts: bool,
    /// Estimate the tree without a PMU: runs it again, or once with --duration
    #[arg(long, conflicts_with_all = ["thread", "time", "event_number", "repeat", "no_multiplex", "drilldown", "interval"], help_heading = CODE)]
    pub estimate: bool,
    /// With --estimate: after counting, start no run that would end after S seconds
    #[arg(long, value_name = "S", requires = "estimate", conflicts_with = "regions", help_heading = CODE)]
    pub budget: Option<f64>,
    /// Keep in FILE all that the estimate is computed from (.gz: compressed)
    #[arg(long, value_name = "FILE", requires = "estimate", conflicts_with = "regions", help_heading = CODE)]
    pub evidence: Option<PathBuf>,
    /// With --evidence: placeholders for paths, symbols and arguments
    #[arg(long, requires = "evidence", help_heading = CODE)]
    pub redact: bool,
    /// Only samples of this thread or process (ID or thread name); repeatable
    #[arg(long, value_name = "ID|NAME", help_heading = CODE)]
    pub thread: Vec<String>,
    /// Only samples between these seconds after the first sample
    #[arg(long, value_name = "FROM..TO", help_heading = CODE)]
    pub time: Option<String>,
    /// Number of the sampled event to show, from 0
    #[arg(long, value_name = "N", help_heading = CODE)]
    pub event_number: Option<usize>,
    #[command(flatten, next_help_heading = CODE)]
    pub search: SearchArgs,
    /// List code by a sampled event or a node that one locates (sampled if live)
    #[arg(long = "by", value_name = "NODE|EVENT", conflicts_with = "event_number", help_heading = CODE)]
    pub order: Option<String>,
    /// Sample events that locate the nodes of the tree beside cycles (live)
    #[arg(long, help_heading = CODE)]
    pub locate: bool,
    /// Level 1 of each function: samples read its counts (needs a PMU if live)
    #[arg(long, help_heading = CODE)]
    pub per_function: bool,
    /// Write folded stacks (flame graphs) to FILE (-: stdout) instead of a report
    #[arg(long, value_name = "FILE", help_heading = CODE)]
    pub folded: Option<PathBuf>,
    /// End each folded stack in the node that its time goes to, where known
    #[arg(long, requires = "folded", help_heading = CODE)]
    pub folded_nodes: bool,
    /// Write a flame graph to FILE (.svg or .html), by node where known; no report
    #[arg(long, value_name = "FILE", value_parser = picture, help_heading = CODE)]
    pub flamegraph: Option<PathBuf>,
    /// Write a profile for pprof to FILE, a sample type per node where known; no report
    #[arg(long, value_name = "FILE", help_heading = CODE)]
    pub pprof: Option<PathBuf>,
    /// Write samples to FILE for callgrind_annotate and kcachegrind; no report
    #[arg(long, value_name = "FILE", help_heading = CODE)]
    pub callgrind: Option<PathBuf>,
    /// Show the source lines of FUNCTION with their samples and assembly
    #[arg(long, value_name = "FUNCTION", help_heading = CODE)]
    pub annotate: Option<String>,
    /// Show no functions and blocks; do not sample a live measurement
    #[arg(long, conflicts_with_all = ["callers", "callees", "measure", "counts", "estimate", "folded", "flamegraph", "pprof", "callgrind", "annotate", "order", "locate", "per_function"], help_heading = CODE)]
    pub no_code: bool,
}

impl CodeArgs {
    /// Whether a live measurement needs call chains.
    pub fn wants_chains(&self) -> bool {
        self.callers.is_some()
            || self.callees.is_some()
            || self.folded.is_some()
            || self.flamegraph.is_some()
            || self.pprof.is_some()
            || self.callgrind.is_some()
    }

    /// The functions and blocks they ask for, for a page with their stacks and source; `None` with `--no-code`.
    /// With `timeline` samples keep their times.
    pub fn ask(&self, settings: &Settings, page: bool, timeline: bool) -> Result<Option<CodeAsk>> {
        if self.no_code {
            return Ok(None);
        }
        let filter = Filter {
            event: self.event_number,
            threads: self.thread.iter().map(|word| word.as_str().into()).collect(),
            time: self.time.as_deref().map(nanoseconds).transpose()?,
            chains: page || timeline || self.wants_chains(),
            timeline,
            entries: false,
            omit_inlined: self.no_inline,
            regions: None,
        };
        Ok(Some(CodeAsk {
            functions: self.functions.unwrap_or(10),
            blocks: self.blocks.unwrap_or(5),
            callers: self.callers.clone(),
            callees: self.callees.clone(),
            filter,
            search: self.search.paths()?,
            measure: self.measure.then(|| settings.core_model()).transpose()?,
            command: None,
            count: None,
            estimate: None,
            folded: self.folded.clone(),
            folded_nodes: self.folded_nodes,
            flame_graph: self.flamegraph.clone(),
            pprof: self.pprof.clone(),
            callgrind: self.callgrind.clone(),
            page,
            annotate: self.annotate.clone(),
            by: self.order.clone(),
            per_function: self.per_function,
            others: None,
        }))
    }
}

/// A value of `--functions`: how many, where `tdtool count` takes names.
fn functions(text: &str) -> std::result::Result<usize, Invalid> {
    text.parse().map_err(|_| Invalid::Functions(text.to_owned()))
}

/// A value of `--blocks`.
fn blocks(text: &str) -> std::result::Result<usize, Invalid> {
    text.parse().map_err(|_| Invalid::Blocks)
}

/// `1.5..3`, `..2`, `4..` in seconds.
fn nanoseconds(text: &str) -> Result<(u64, u64)> {
    let bad = || usage(&format!("--time {text} is not a range"), "--time 1.5..3, ..2 or 4..");
    let (from, to) = text.split_once("..").ok_or_else(bad)?;
    let read = |part: &str, other: f64| -> Result<u64> {
        let seconds = if part.is_empty() { other } else { part.parse().map_err(|_| bad())? };
        // A cast of a float saturates.
        if seconds >= 0.0 { Ok((seconds * 1e9) as u64) } else { Err(bad()) }
    };
    let range = (read(from, 0.0)?, read(to, f64::INFINITY)?);
    if range.0 < range.1 { Ok(range) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_seconds_are_read_and_nonsense_is_not() {
        assert_eq!(nanoseconds("1.5..3").unwrap(), (1_500_000_000, 3_000_000_000));
        assert_eq!(nanoseconds("..2").unwrap(), (0, 2_000_000_000));
        assert_eq!(nanoseconds("4..").unwrap(), (4_000_000_000, u64::MAX));
        for bad in ["", "3", "3..1", "-1..2", "a..b", "NaN..1"] {
            assert!(nanoseconds(bad).is_err(), "{bad}");
        }
    }
}
