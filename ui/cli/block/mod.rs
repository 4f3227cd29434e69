//! `tdtool block`: measure one basic block, several regions, or a file of blocks.

mod args;
mod batch;
pub mod input;
mod output;
mod progress;
mod steps;

pub use args::BlockArgs;

use super::{print, to_json};
use crate::cli::Global;
use crate::failure;
use crate::tui::{self, Source};
use args::Format;
use bench::{Options, Report, Status, processors};
use engine::block::Measurer;
use engine::render::block as render;
use input::Asked;
use isa::code::{Block, Location, Region};
use std::process::ExitCode;
use tma::{Error, Result};

pub fn run(global: &Global, args: BlockArgs) -> Result<ExitCode> {
    let known = global.known()?;
    let options = args.options(global, &known)?;
    check(&options)?;
    if let (Some(input), Some(output)) = (&args.batch, &args.output) {
        // Rows have no place for counts.
        let options = Options { counts: false, ..options };
        return batch::run(input, output, &args, &options, global.ascii);
    }
    if args.list {
        return list(&args, global.ascii);
    }
    let blocks = input::blocks(&args, &options)?;
    if args.tui && super::drill::is_interactive() {
        return interactive(global, blocks);
    }
    let several = blocks.len() > 1;
    let mut reports = Vec::new();
    let mut measurer = None;
    let steps = steps::show(&options.watch);
    for Asked { region, options: own, notes } in blocks {
        // Repeated blocks and sampled ones have options of their own; all others share a sandbox.
        if args.repeat.is_some() || args.registers.is_some() {
            measurer = None;
        }
        let measurer = measurer.get_or_insert_with(|| Measurer::new(own, &known));
        let mut report = measure(measurer, &args, region, several)?;
        report.notes.splice(0..0, notes);
        reports.push(report);
    }
    drop(steps);
    print(&match args.format {
        Format::Text => text(&reports, args.verbose),
        Format::Json if several => to_json(&reports)?,
        Format::Json => reports.iter().map(to_json).collect::<Result<_>>()?,
        Format::Csv => {
            let rows: Vec<_> = reports.iter().map(|r| render::row(r) + "\n").collect();
            format!("{}\n{}", render::HEADER, rows.concat())
        }
    })?;
    let ran = |r: &Report| matches!(r.status, Status::Ok | Status::Unstable);
    Ok(if reports.iter().all(ran) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One block on the terminal.
fn interactive(global: &Global, mut blocks: Vec<Asked>) -> Result<ExitCode> {
    match (blocks.pop(), blocks.is_empty()) {
        (Some(Asked { region, options, .. }), true) => {
            Block::decode(&region.bytes)?;
            let name = region.name.map_or("block".to_owned(), |n| format!("block {n}"));
            tui::run(global, &Source::Block(name, region.bytes, Box::new(options)))
        }
        _ => Err(Error::usage("--tui shows one block, and there are several")
            .hint("choose one with --region NAME")),
    }
}

/// The blocks of a function.
fn list(args: &BlockArgs, ascii: bool) -> Result<ExitCode> {
    let listed = input::list(args.block.as_deref().unwrap_or_default())?;
    print(&match args.format {
        Format::Text => listed.render(ascii),
        Format::Json => to_json(&listed)?,
        Format::Csv => listed.csv(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The only block of an input as the first argument of `tdtool block` takes it, as it is measured.
pub fn one(given: &str) -> Result<Block> {
    let given_block = input::Given { block: Some(given), ..input::Given::default() };
    let mut all = input::located(&given_block)?;
    match (all.pop(), all.is_empty()) {
        (Some(mut located), true) => {
            if Location::parse(given).is_some() {
                input::stay(&mut located);
            }
            for note in &located.notes {
                failure::tell("note", note, None, None);
            }
            Block::decode(&located.bytes)
        }
        _ => Err(Error::usage(format!("{given} holds several blocks, and one is wanted"))
            .hint("give one of them by FILE:START..END")),
    }
}

/// One of several that is no code is rejected; one by itself is an error.
fn measure(
    measurer: &mut Measurer,
    args: &BlockArgs,
    region: Region,
    several: bool,
) -> Result<Report> {
    let mut report = match Block::decode(&region.bytes) {
        Ok(block) => measurer.measure(&block, args.what_if)?,
        Err(error) if several => {
            let hex: String = region.bytes.iter().map(|b| format!("{b:02x}")).collect();
            measurer.rejected(&hex, error.to_string())
        }
        Err(error) => return Err(error),
    };
    report.block.name = region.name;
    Ok(report)
}

/// Reports one below the other; a heading where there are several, or names.
fn text(reports: &[Report], verbose: bool) -> String {
    let render = if verbose { render::render_in_full } else { render::render };
    let mut all = Vec::new();
    for (number, report) in reports.iter().enumerate() {
        let heading = match &report.block.name {
            Some(name) if reports.len() == 1 => format!("{name}\n"),
            Some(name) => format!("region {number} `{name}`\n"),
            None if reports.len() > 1 => format!("region {number}\n"),
            None => String::new(),
        };
        all.push(heading + &render(report));
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
