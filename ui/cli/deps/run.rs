//! Analyses the blocks that the command line names.

use super::arguments::{DepsArgs, Format};
use super::batch;
use crate::cli::code::initial_values::{self, Place};
use crate::cli::code::named::{chosen, located};
use crate::cli::code::program;
use crate::cli::global::Global;
use crate::cli::output::{page, print, rows_have_a_batch};
use crate::message::note;
use engine::deps::{DepsAnalyser, DepsAsk};
use engine::initial_values::set;
use isa::deps::memory::InitialValues;
use isa::program::{Located, Location};
use report::documents::deps::Document;
use report::render::deps::{Drawing, dot, text};
use report::render::json;
use std::ops::Range;
use std::process::ExitCode;
use tma::Result;

pub fn run(global: &Global, args: DepsArgs) -> Result<ExitCode> {
    rows_have_a_batch(args.batch.is_some(), args.output.as_deref())?;
    let mut analyser = DepsAnalyser::new(global.settings()?.core_model()?, args.rob);
    if let (Some(rows), Some(output)) = (&args.batch, &args.output) {
        analyser.notes().iter().for_each(|text| note(text));
        let unmodelled = args.unmodelled.as_deref();
        return batch::run(rows, output, unmodelled, &mut analyser, args.seeds);
    }
    let analyse = |pieces: Vec<Located>| {
        let (initial_values, seeded) = initial_values(&args, addresses(&pieces))?;
        let ask = DepsAsk { seeds: args.seeds, initial_values, seeded, all: args.all };
        analyser.document(&pieces, ask)
    };
    let documents: Result<Vec<Document>> = regions(&args)?.into_iter().map(analyse).collect();
    let documents = documents?;
    let drawing = Drawing { ascii: global.ascii, every: args.arrows, page: page(None) };
    print(&match args.format {
        Format::Text => documents.iter().map(|d| text(d, drawing)).collect::<Vec<_>>().join("\n"),
        Format::Dot => documents.iter().map(dot).collect(),
        Format::Json if documents.len() > 1 => json::pretty(&documents)?,
        Format::Json => documents.iter().map(json::pretty).collect::<Result<_>>()?,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The regions, each of one or more blocks.
fn regions(args: &DepsArgs) -> Result<Vec<Vec<Located>>> {
    // A place in a program is a path of one block.
    let place = args.block.as_deref().filter(|b| Location::parse(b).is_some());
    if let Some(path) = args.path.as_deref().or(place.filter(|_| args.region.is_none())) {
        return Ok(vec![program::path(path)?]);
    }
    let all = chosen(located(&args.named())?, args.region.as_deref())?;
    Ok(all.into_iter().map(|one| vec![one]).collect())
}

/// Initial values of the region at `range`, and their sources.
fn initial_values(
    args: &DepsArgs,
    range: Range<u64>,
) -> Result<(Vec<InitialValues>, Option<String>)> {
    let file = args.program();
    let place = Place { file: file.as_deref(), range };
    let (mut all, mut sources) = initial_values::registers(args.registers.as_deref(), &place)?;
    if !args.init.is_empty() {
        if all.is_empty() {
            all.push(InitialValues::default());
        }
        for (place, value) in &args.init {
            for one in &mut all {
                set(one, *place, *value)?;
            }
        }
        sources.push("--init".to_owned());
    }
    Ok((all, (!sources.is_empty()).then(|| sources.join(", "))))
}

/// The addresses of a region in one piece; for several pieces, where the first begins.
fn addresses(pieces: &[Located]) -> Range<u64> {
    let start = pieces.first().map_or(0, |p| p.start);
    match pieces {
        [one] => start..start.saturating_add(one.bytes.len() as u64),
        _ => start..start,
    }
}
