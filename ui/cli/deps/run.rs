//! Analyses the blocks that the command line names.

use super::arguments::{DepsArgs, Format};
use super::batch;
use super::core::CoreWindow;
use crate::cli::code::initial_values::{self, Place};
use crate::cli::code::named::{chosen, located};
use crate::cli::code::program;
use crate::cli::global::Global;
use crate::cli::output::print;
use crate::message::note;
use engine::documents::deps::{Document, Subject, document};
use engine::initial_values::set;
use engine::render::deps::{Drawing, dot, text};
use engine::render::json;
use isa::code::{Located, Location};
use isa::deps::memory::{InitialValues, Settings};
use isa::deps::{Analyser, Code};
use std::ops::Range;
use std::process::ExitCode;
use tma::Result;

pub fn run(global: &Global, args: DepsArgs) -> Result<ExitCode> {
    let core = CoreWindow::of(&global.settings()?, args.rob)?;
    if let (Some(rows), Some(output)) = (&args.batch, &args.output) {
        core.model.notes.iter().for_each(|text| note(text));
        let settings = settings(&args, &core, Vec::new());
        batch::run(rows, output, args.unmodelled.as_deref(), &core.model, &settings)?;
        return Ok(ExitCode::SUCCESS);
    }
    let regions = regions(&args)?;
    let documents: Result<Vec<Document>> =
        regions.into_iter().map(|pieces| analyse(&args, &core, pieces)).collect();
    let documents = documents?;
    let drawing = Drawing { ascii: global.ascii, every: args.arrows };
    print(&match args.format {
        Format::Text => documents.iter().map(|d| text(d, drawing)).collect::<Vec<_>>().join("\n"),
        Format::Dot => documents.iter().map(dot).collect(),
        Format::Json if documents.len() > 1 => json::pretty(&documents)?,
        Format::Json => documents.iter().map(json::pretty).collect::<Result<_>>()?,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Analyses a region of one or more blocks.
fn analyse(args: &DepsArgs, core: &CoreWindow, pieces: Vec<Located>) -> Result<Document> {
    let code = Code::of(&pieces, core.model.core.facts())?;
    let (given, seeded) = initial_values(args, addresses(&pieces))?;
    let settings = settings(args, core, given);
    let mut analyser = Analyser::new(core.model.latencies.clone());
    let analysis = analyser.analyse(&code, &settings);
    let notes = pieces.iter().flat_map(|p| p.notes.iter().cloned());
    let notes = core.model.notes.iter().cloned().chain(notes).collect();
    let names: Vec<String> = pieces.into_iter().filter_map(|p| p.name).collect();
    let subject = Subject {
        name: (!names.is_empty()).then(|| names.join("; ")),
        uarch: core.model.core.uarch().map(str::to_owned),
        window: settings.window,
        window_source: core.source.clone(),
        seeded,
        notes,
    };
    Ok(document(&code, &analysis, &settings, subject, args.all))
}

fn settings(args: &DepsArgs, core: &CoreWindow, given: Vec<InitialValues>) -> Settings {
    // Each sample gets its own run.
    let runs = args.seeds.max(given.len() as u32);
    Settings { window: core.entries, runs, initial_values: given }
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
