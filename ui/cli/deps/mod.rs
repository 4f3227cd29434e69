//! `tdtool deps`: dependencies of a block or a path of several, and its recurrences.

mod args;
mod batch;

pub use args::DepsArgs;

use super::block::input;
use super::seeds::{self, Place};
use super::{print, to_json};
use crate::cli::Global;
use args::Format;
use engine::documents::deps::{Subject, document};
use engine::initial_values as given;
use engine::known::Known;
use engine::render::deps::{Drawing, dot, text};
use isa::code::{Located, Location};
use isa::deps::memory::{Given, Settings};
use isa::deps::{Analyser, Code, Window};
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use tma::Result;

pub fn run(global: &Global, args: DepsArgs) -> Result<ExitCode> {
    let processor = Processor::find(global, args.rob)?;
    if let (Some(rows), Some(output)) = (&args.batch, &args.output) {
        let settings = settings(&args, &processor, Vec::new());
        let unmodelled = args.unmodelled.as_deref();
        batch::run(rows, output, unmodelled, &processor, &settings)?;
        return Ok(ExitCode::SUCCESS);
    }
    let regions = regions(&args)?;
    let several = regions.len() > 1;
    let mut documents = Vec::new();
    for pieces in regions {
        let code = Code::of(&pieces, processor.known.core.facts())?;
        let (given, seeded) = seeds(&args, addresses(&pieces))?;
        let settings = settings(&args, &processor, given);
        let mut analyser = Analyser::new(processor.known.latencies.clone());
        let analysis = analyser.analyse(&code, &settings);
        let of_code = pieces.iter().flat_map(|p| p.notes.iter().cloned());
        let notes = processor.known.notes.iter().cloned().chain(of_code).collect();
        let names: Vec<String> = pieces.into_iter().filter_map(|p| p.name).collect();
        let subject = Subject {
            name: (!names.is_empty()).then(|| names.join("; ")),
            uarch: processor.known.core.uarch().map(str::to_owned),
            window: settings.window,
            window_source: processor.window_source.clone(),
            seeded,
            notes,
        };
        documents.push(document(&code, &analysis, &settings, subject, args.all));
    }
    let drawing = Drawing { ascii: global.ascii, every: args.arrows };
    print(&match args.format {
        Format::Text => documents.iter().map(|d| text(d, drawing)).collect::<Vec<_>>().join("\n"),
        Format::Dot => documents.iter().map(dot).collect(),
        Format::Json if several => to_json(&documents)?,
        Format::Json => documents.iter().map(to_json).collect::<Result<_>>()?,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What is known of the processor that is meant.
struct Processor {
    known: Known,
    window: u32,
    window_source: String,
}

impl Processor {
    /// That of `--uarch`, else this machine's.
    fn find(global: &Global, rob: Option<u32>) -> Result<Self> {
        let known = global.known()?;
        let (window, window_source) = match rob {
            Some(entries) => (entries, "as asked for".to_owned()),
            None => {
                let Window { entries, source } = Window::of(&known.core);
                (entries, source)
            }
        };
        Ok(Self { known, window, window_source })
    }
}

fn settings(args: &DepsArgs, processor: &Processor, given: Vec<Given>) -> Settings {
    // Each sample gets a run of its own.
    let runs = args.seeds.max(given.len() as u32);
    Settings { window: processor.window, runs, given }
}

/// The regions, each of one or more blocks.
fn regions(args: &DepsArgs) -> Result<Vec<Vec<Located>>> {
    // A place in a file is a path of one block.
    let place = args.block.as_deref().filter(|b| Location::parse(b).is_some());
    if let Some(path) = args.path.as_deref().or(place.filter(|_| args.region.is_none())) {
        return Ok(vec![input::path(path)?]);
    }
    let given = input::Given {
        block: args.block.as_deref(),
        asm: args.asm.as_deref(),
        asm_file: args.asm_file.as_deref(),
        att: args.att,
    };
    let all = input::chosen(input::located(&given)?, args.region.as_deref())?;
    Ok(all.into_iter().map(|one| vec![one]).collect())
}

/// Initial values of the region at `range`, and where they come from.
fn seeds(args: &DepsArgs, range: Range<u64>) -> Result<(Vec<Given>, Option<String>)> {
    let file = args.file();
    let place = Place { file: file.as_deref(), range };
    let (mut all, mut from) = seeds::registers(args.registers.as_deref(), &place)?;
    if !args.init.is_empty() {
        if all.is_empty() {
            all.push(Given::default());
        }
        for (place, value) in &args.init {
            for one in &mut all {
                given::set(one, *place, *value)?;
            }
        }
        from.push("--init".to_owned());
    }
    Ok((all, (!from.is_empty()).then(|| from.join(", "))))
}

/// The addresses of a region in one piece; of several pieces, where the first begins.
fn addresses(pieces: &[Located]) -> Range<u64> {
    let start = pieces.first().map_or(0, |p| p.start);
    match pieces {
        [one] => start..start.saturating_add(one.bytes.len() as u64),
        _ => start..start,
    }
}

impl DepsArgs {
    /// The file that the region is of, where it is named as a place in one.
    fn file(&self) -> Option<PathBuf> {
        let named = self.path.as_deref().or(self.block.as_deref())?;
        named.rsplit_once(':').map(|(file, _)| PathBuf::from(file))
    }
}
