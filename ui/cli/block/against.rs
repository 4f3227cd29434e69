//! `tdtool block A --against B`: two blocks measured in one run.

use super::arguments::{BlockArgs, Format};
use super::predicted::predicted;
use super::requests::{Request, requests};
use crate::cli::code::named::{Named, located};
use crate::cli::code::program::{one_block, without_exit};
use crate::cli::output::{page, print};
use crate::settings::Settings;
use bench::Options;
use engine::block::{Notes, compare};
use engine::core_model::CoreModel;
use isa::code::{Block, Region};
use isa::program::Location;
use report::documents::block::{BlockPair, PAIR_SCHEMA};
use report::render::{block as render, json};
use std::process::ExitCode;
use tma::{Error, Result};

/// Measures the block of `args` and `other`, which is written in the same way.
pub fn run(
    other: &str,
    args: &BlockArgs,
    options: &Options,
    settings: &Settings,
    model: &CoreModel,
) -> Result<ExitCode> {
    let mut first = requests(args, options)?;
    let (Some(request), true) = (first.pop(), first.is_empty()) else {
        return Err(several("the first input"));
    };
    let own = if starts_alike(args) { &request.options } else { options };
    let against = second(other, args, own)?;
    let (a, b) = (Block::decode(&request.region.bytes)?, Block::decode(&against.region.bytes)?);
    let both = [&request.options, &against.options];
    let (mut one, mut two, difference) = compare(both, model, &a, &b)?;
    for (measurement, request) in [(&mut one, request), (&mut two, against)] {
        measurement.block.name = request.region.name;
        request.notes.enter(measurement);
    }
    let mut reports = predicted(args, settings, model, vec![one, two])?.into_iter();
    let (Some(a), Some(b)) = (reports.next(), reports.next()) else {
        return Err(Error::failed("a measurement is missing"));
    };
    let (difference, reason) = match difference {
        Ok(difference) => (Some(difference), None),
        Err(why) => (None, Some(why.to_string())),
    };
    let compared = difference.is_some();
    let pair = BlockPair { schema: PAIR_SCHEMA, a, b, difference, reason };
    print(&match args.format {
        Format::Json => json::pretty(&pair)?,
        Format::Csv => {
            let rows = [&pair.a, &pair.b].map(|r| render::row(&r.measurement) + "\n");
            format!("{}\n{}", render::HEADER, rows.concat())
        }
        Format::Text => text(&pair, args, settings.ascii),
    })?;
    Ok(if compared { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(pair: &BlockPair, args: &BlockArgs, ascii: bool) -> String {
    let mut text = render::pair(pair, ascii, page(None));
    for (name, report) in [("A", &pair.a), ("B", &pair.b)] {
        let shown = report.predictions.iter().filter(|p| args.ports || !p.measured_core);
        let shown: Vec<_> = shown.cloned().collect();
        if !shown.is_empty() {
            text += &format!("\n{name}{}", render::predictions(&shown, ascii, page(None)));
        }
    }
    text
}

/// Whether both blocks start with the registers that were given for the first one.
fn starts_alike(args: &BlockArgs) -> bool {
    args.registers.is_some() && !args.is_run()
}

/// The block of `--against`: assembly if the first one is; of a program that is run, with its values, too.
fn second(other: &str, args: &BlockArgs, options: &Options) -> Result<Request> {
    let is_placed = args.asm.is_none() && Location::parse(other).is_some();
    if is_placed && !starts_alike(args) {
        let mut both = requests(&args.of_other(other), options)?;
        return match (both.pop(), both.is_empty()) {
            (Some(request), true) => Ok(request),
            _ => Err(several("--against")),
        };
    }
    let named = match args.asm {
        Some(_) => Named { asm: Some(other), att: args.att, ..Named::default() },
        None => Named { block: Some(other), ..Named::default() },
    };
    let mut all = located(&named)?;
    let (Some(mut block), true) = (all.pop(), all.is_empty()) else {
        return Err(several("--against"));
    };
    one_block(&block)?;
    if is_placed {
        without_exit(&mut block);
    }
    // Not that of the first block, whose options these are.
    let address = is_placed.then_some(block.start);
    Ok(Request {
        region: Region { name: block.name, bytes: block.bytes },
        options: Options { address, ..options.clone() },
        notes: Notes { origin: block.notes, ..Notes::default() },
    })
}

fn several(input: &str) -> Error {
    Error::usage(format!("{input} has several blocks, and one is needed"))
        .hint("name one: FILE:START..END, FILE:FUNCTION+N or its machine code")
}
