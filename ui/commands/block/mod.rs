//! `tdtool block`: measure one basic block, several regions, or a file of blocks.

mod args;
mod batch;
pub mod input;
mod output;
mod progress;

pub use args::BlockArgs;

use super::{print, to_json};
use crate::cli::Global;
use crate::tui::{self, Source};
use args::Format;
use std::process::ExitCode;
use tdtool::block::{self, Options, Profiler, Report, Status, processors, rejected};
use tdtool::code::{Block, Region};
use tdtool::{Error, Result};

pub fn run(global: &Global, args: BlockArgs) -> Result<ExitCode> {
    let options = args.options(global)?;
    check(&options)?;
    if let (Some(input), Some(output)) = (&args.batch, &args.output) {
        // Rows have no place for counts.
        let options = Options { counts: false, ..options };
        return batch::run(input, output, &args, &options, global.ascii);
    }
    let blocks = input::blocks(&args, &options)?;
    if args.tui && super::drill::is_interactive() {
        return interactive(global, blocks);
    }
    let several = blocks.len() > 1;
    let mut reports = Vec::new();
    let mut profiler = None;
    for (region, own) in blocks {
        // Repeated blocks have options of their own; all others share a sandbox.
        if args.repeat.is_some() || profiler.is_none() {
            profiler = Some(Profiler::new(own));
        }
        if let Some(profiler) = &mut profiler {
            reports.push(measure(profiler, region, several)?);
        }
    }
    print(&match args.format {
        Format::Text => text(&reports),
        Format::Json if several => to_json(&reports)?,
        Format::Json => reports.iter().map(to_json).collect::<Result<_>>()?,
        Format::Csv => {
            let rows: Vec<_> = reports.iter().map(|r| block::row(r) + "\n").collect();
            format!("{}\n{}", block::HEADER, rows.concat())
        }
    })?;
    let ran = |r: &Report| matches!(r.status, Status::Ok | Status::Unstable);
    Ok(if reports.iter().all(ran) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One block on the terminal.
fn interactive(global: &Global, mut blocks: Vec<(Region, Options)>) -> Result<ExitCode> {
    match (blocks.pop(), blocks.is_empty()) {
        (Some((region, options)), true) => {
            Block::decode(&region.bytes)?;
            let name = region.name.map_or("block".to_owned(), |n| format!("block {n}"));
            tui::run(global, &Source::Block(name, region.bytes, Box::new(options)))
        }
        _ => Err(Error::usage("--tui shows one block, and there are several")
            .hint("choose one with --region NAME")),
    }
}

/// One of several that is no code is rejected; one by itself is an error.
fn measure(profiler: &mut Profiler, region: Region, several: bool) -> Result<Report> {
    let mut report = match Block::decode(&region.bytes) {
        Ok(block) => profiler.measure(&block)?,
        Err(error) if several => {
            let hex: String = region.bytes.iter().map(|b| format!("{b:02x}")).collect();
            rejected(&hex, error.to_string())
        }
        Err(error) => return Err(error),
    };
    report.block.name = region.name;
    Ok(report)
}

/// Reports one below the other; a heading where there are several, or names.
fn text(reports: &[Report]) -> String {
    let mut all = Vec::new();
    for (number, report) in reports.iter().enumerate() {
        let heading = match &report.block.name {
            Some(name) if reports.len() == 1 => format!("{name}\n"),
            Some(name) => format!("region {number} `{name}`\n"),
            None if reports.len() > 1 => format!("region {number}\n"),
            None => String::new(),
        };
        all.push(heading + &block::render(report));
    }
    all.join("\n")
}

fn check(options: &Options) -> Result<()> {
    match options.cpu {
        Some(cpu) if !processors::may_use(cpu) => {
            Err(Error::usage(format!("this process may not run on processor {cpu}"))
                .because("it is offline, or outside of the process's affinity mask")
                .hint("`taskset -p $$` and `nproc` tell what is allowed"))
        }
        _ => Ok(()),
    }
}
