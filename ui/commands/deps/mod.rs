//! `tdtool deps`: dependencies of a block or a path of several, and its recurrences.

mod args;
mod batch;

pub use args::DepsArgs;

use super::block::input;
use super::known::Known;
use super::{print, to_json};
use crate::cli::Global;
use args::Format;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tdtool::analysis::given;
use tdtool::code::{Located, Location};
use tdtool::deps::latency::Latencies;
use tdtool::deps::memory::{Given, Settings};
use tdtool::deps::{Analyser, Code, Drawing, Subject, document, dot, text, window};
use tdtool::{Error, Result};

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
        let code = Code::of(&pieces, processor.uarch.as_deref())?;
        let (given, seeded) = seeds(&args, code.address(0))?;
        let settings = settings(&args, &processor, given);
        let mut analyser = Analyser::new(processor.latencies.clone());
        let analysis = analyser.analyse(&code, &settings);
        let names: Vec<String> = pieces.into_iter().filter_map(|p| p.name).collect();
        let subject = Subject {
            name: (!names.is_empty()).then(|| names.join("; ")),
            uarch: processor.uarch.clone(),
            window: settings.window,
            window_source: processor.window_source.clone(),
            seeded,
            notes: processor.notes.clone(),
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
    uarch: Option<String>,
    window: u32,
    window_source: String,
    latencies: Latencies,
    notes: Vec<String>,
}

impl Processor {
    /// That of `--uarch`, else this machine's.
    fn find(global: &Global, rob: Option<u32>) -> Result<Self> {
        let mut notes = Vec::new();
        let Known { uarch, latencies } = Known::find(global, &mut notes)?;
        let known = window(uarch.as_deref());
        let (window, window_source) = match rob {
            Some(entries) => (entries, "as asked for".to_owned()),
            None => (known.entries, known.source.to_owned()),
        };
        Ok(Self { uarch, window, window_source, latencies, notes })
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
    let mut all = input::located(&given)?;
    if let Some(name) = &args.region {
        let region =
            |l: &Located| tdtool::code::Region { name: l.name.clone(), bytes: l.bytes.clone() };
        let chosen = tdtool::code::Region::choose(all.iter().map(region).collect(), name)?;
        all.retain(|l| region(l) == chosen);
        all.truncate(1);
    }
    Ok(all.into_iter().map(|one| vec![one]).collect())
}

/// Initial values, and where they come from. `first` is the address of the first instruction.
fn seeds(args: &DepsArgs, first: u64) -> Result<(Vec<Given>, Option<String>)> {
    let mut all = Vec::new();
    let mut from = Vec::new();
    match args.registers.as_deref() {
        Some(named) if named.starts_with("snapshot:") => {
            let path = Path::new(&named["snapshot:".len()..]);
            all = given::snapshot(path, args.file().as_deref(), first)?;
            from.push(format!("{} samples of {} at {first:#x}", all.len(), path.display()));
        }
        Some(path) => {
            let text = input::text(Path::new(path), given::LONGEST)?;
            let one = given::parse(&text).map_err(|e| {
                let hint = e.remedy().unwrap_or_default().to_owned();
                Error::usage(format!("cannot read {path}")).because(e).hint(hint)
            })?;
            all.push(one);
            from.push(path.to_owned());
        }
        None => {}
    }
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

impl DepsArgs {
    /// The file that the region is of, where it is named as a place in one.
    fn file(&self) -> Option<PathBuf> {
        let named = self.path.as_deref().or(self.block.as_deref())?;
        named.rsplit_once(':').map(|(file, _)| PathBuf::from(file))
    }
}
