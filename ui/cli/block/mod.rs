//! `tdtool block`: measures, lists or opens the blocks that the command line names, with predictions beside the
//! measurements, or compares two of them.

mod arguments;
mod batch;
mod progress;
mod requests;

pub use arguments::BlockArgs;

use super::code::{self, Named, located, one_block, without_exit};
use super::files::{page, print, rows_have_a_batch};
use super::measure::exit_code;
use super::options::Global;
use crate::message::note;
use crate::settings::{BlockRequest, Next, Settings, Subject};
use crate::terminal;
use arguments::Format;
use bench::{Measurement, Options, Progress, Status, processors};
use engine::block::{Measurer, Notes, compare};
use engine::core_model::CoreModel;
use engine::predict::Predictor;
use isa::code::{Block, Region};
use isa::program::Location;
use pmu::perf::Signals;
use report::documents::block::{BlockPair, BlockReport, PAIR_SCHEMA};
use report::render::block::Style;
use report::render::{block as render, functions, json};
use requests::{Request, requests};
use std::process::ExitCode;
use std::sync::Arc;
use tma::{Core, Error, Result};

pub fn run(global: &Global, args: BlockArgs) -> Result<Next> {
    rows_have_a_batch(args.batch.is_some(), args.output.as_deref())?;
    let settings = global.settings()?;
    let model = settings.core_model()?;
    let options = args.options(&settings, &model)?;
    check_cpu(&options)?;
    if let (Some(input), Some(output)) = (&args.batch, &args.output) {
        model.notes.iter().for_each(|text| note(text));
        // Rows have no columns for counts.
        let options = Options { counts: false, ..options };
        return batch::measure_and_judge(input, output, &args, &options, settings.ascii)
            .map(Next::Exit);
    }
    if args.list {
        return list(&args, settings.ascii).map(Next::Exit);
    }
    if let Some(other) = &args.against {
        return compare_with(other, &args, &options, &settings, &model).map(Next::Exit);
    }
    let ascii = settings.ascii;
    let requests = requests(&args, &options)?;
    if args.tui && terminal::is_interactive() {
        return drill_down(settings, requests);
    }
    let shown = progress::show_step(&options.progress);
    let signals = Signals::catch()?;
    let progress = options.progress.clone();
    let stop = || progress.cancel();
    let reports = signals.during(stop, || measure_all(&args, requests, &model, &progress));
    drop(shown);
    let interrupted = signals.next().map(|(number, _)| number);
    drop(signals);
    let reports = predicted(&args, &settings, &model, reports?)?;
    print(&text(&args, &reports, ascii)?)?;
    if let Some(signal) = interrupted {
        let has_time = reports.iter().any(|r| r.measurement.throughput.is_some());
        note(match has_time {
            true => "interrupted; what was measured until then is above",
            false => "interrupted before anything was measured",
        });
        return Ok(Next::Exit(exit_code(128 + signal)));
    }
    let ran = |r: &BlockReport| matches!(r.measurement.status, Status::Ok | Status::Unstable);
    let code = if reports.iter().all(ran) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    Ok(Next::Exit(code))
}

/// A measurement of a block, or of an input that is none.
type Measured = (Measurement, Option<Block>);

fn measure_all(
    args: &BlockArgs,
    requests: Vec<Request>,
    model: &CoreModel,
    progress: &Progress,
) -> Result<Vec<Measured>> {
    let several = requests.len() > 1;
    let mut all = Vec::new();
    let mut measurer = None;
    for Request { region, options, notes } in requests {
        // Repeated and sampled blocks have their own options; all others share a sandbox.
        if args.repeat.is_some() || args.registers.is_some() {
            measurer = None;
        }
        let measurer = measurer.get_or_insert_with(|| Measurer::new(options, model));
        let (mut measurement, block) = measure(measurer, args, region, several)?;
        notes.enter(&mut measurement);
        all.push((measurement, block));
        if progress.is_cancelled() {
            break;
        }
    }
    Ok(all)
}

/// Measures a region. Bytes that are no code are an error, among several regions a rejected one.
fn measure(
    measurer: &mut Measurer,
    args: &BlockArgs,
    region: Region,
    several: bool,
) -> Result<Measured> {
    let (mut measurement, block) = match Block::decode(&region.bytes) {
        Ok(block) => (measurer.measure(&block, args.what_if)?, Some(block)),
        Err(error) if several => {
            let hex: String = region.bytes.iter().map(|b| format!("{b:02x}")).collect();
            (measurer.rejected(&hex, error.to_string()), None)
        }
        Err(error) => return Err(error),
    };
    measurement.block.name = region.name;
    Ok((measurement, block))
}

fn text(args: &BlockArgs, reports: &[BlockReport], ascii: bool) -> Result<String> {
    let style = Style { verbose: args.verbose, ascii, ..Style::default() }.on(page(None));
    Ok(match args.format {
        Format::Text => paragraphs(args, reports, &style),
        Format::Json if reports.len() > 1 => json::pretty(&reports)?,
        Format::Json => reports.iter().map(json::pretty).collect::<Result<_>>()?,
        Format::Csv => {
            let rows: Vec<_> = reports.iter().map(|r| render::row(&r.measurement) + "\n").collect();
            format!("{}\n{}", render::HEADER, rows.concat())
        }
    })
}

/// Reports one below the other; with headings if there are several, or names.
fn paragraphs(args: &BlockArgs, reports: &[BlockReport], style: &Style) -> String {
    let mut all = Vec::new();
    for (number, BlockReport { measurement: report, predictions }) in reports.iter().enumerate() {
        let heading = match &report.block.name {
            Some(name) if reports.len() == 1 => format!("{name}\n"),
            Some(name) => format!("region {number} `{name}`\n"),
            None if reports.len() > 1 => format!("region {number}\n"),
            None => String::new(),
        };
        let shown: Vec<_> =
            predictions.iter().filter(|p| args.ports || !p.measured_core).cloned().collect();
        let predicted = render::predictions(&shown, style.ascii, page(None));
        all.push(page(None).fitted(heading + &render::render(report, style)) + &predicted);
    }
    all.join("\n")
}

/// One block in the drill-down.
fn drill_down(settings: Settings, mut requests: Vec<Request>) -> Result<Next> {
    match (requests.pop(), requests.is_empty()) {
        (Some(Request { region, options, notes }), true) => {
            Block::decode(&region.bytes)?;
            let title = region.name.map_or("block".to_owned(), |n| format!("block {n}"));
            let request = BlockRequest { title, bytes: region.bytes, options, notes };
            Ok(Next::DrillDown(Box::new(settings), Subject::Block(Box::new(request))))
        }
        _ => Err(Error::usage("--tui shows one block, and there are several")
            .hint("choose one with --region NAME")),
    }
}

/// Prints the blocks of a function, or the functions of a program.
fn list(args: &BlockArgs, ascii: bool) -> Result<ExitCode> {
    let given = args.block.as_deref().unwrap_or_default();
    if let Some(functions) = code::functions_of(given) {
        let listed = functions?;
        print(&match args.format {
            Format::Text => functions::list_text(&listed, page(None)),
            Format::Json => json::pretty(&listed)?,
            Format::Csv => functions::list_rows(&listed),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let listed = code::blocks_of(given)?;
    print(&match args.format {
        Format::Text => functions::blocks_text(&listed, ascii, page(None)),
        Format::Json => json::pretty(&listed)?,
        Format::Csv => functions::blocks_rows(&listed),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn check_cpu(options: &Options) -> Result<()> {
    match options.cpu {
        Some(cpu) if !processors::may_use(cpu) => {
            Err(Error::usage(format!("this process may not run on CPU {cpu}"))
                .because("it is offline or outside the process's affinity mask")
                .hint("`taskset -p $$` and `nproc` show what is allowed"))
        }
        _ => Ok(()),
    }
}

/// The measurements with the predictions for their blocks.
fn predicted(
    args: &BlockArgs,
    settings: &Settings,
    model: &CoreModel,
    measured: Vec<Measured>,
) -> Result<Vec<BlockReport>> {
    let mut predictors = predictors(args, settings, model)?;
    let report = |(measurement, block): Measured| {
        let of = |predictor: &mut Predictor| block.as_ref().map(|block| predictor.predict(block));
        BlockReport { measurement, predictions: predictors.iter_mut().filter_map(of).collect() }
    };
    Ok(measured.into_iter().map(report).collect())
}

/// One for this core if its ports are shown, and one for each core that is named. What `--uarch` says of
/// a core that is not this one can only be predicted.
fn predictors(args: &BlockArgs, settings: &Settings, model: &CoreModel) -> Result<Vec<Predictor>> {
    let mut all = Vec::new();
    if args.ports || matches!(args.format, Format::Json) {
        let own = Predictor::new(model.clone(), true)?;
        all.extend((args.ports || own.has_ports()).then_some(own));
    }
    // Where only that table describes this machine, it is the measured core with --ports or JSON already.
    let named = settings.core()?;
    let is_new = named.foreign && (all.is_empty() || model.core.uarch() != named.uarch());
    let forced = settings.uarch.iter().filter(|name| is_new && !args.predict.contains(name));
    for name in forced.chain(&args.predict) {
        let core = Arc::new(Core::modelled(settings.library, name)?);
        let same = model.core.uarch() == core.uarch() && !model.core.foreign;
        all.push(Predictor::new(CoreModel::new(core, None)?, same)?);
    }
    Ok(all)
}

/// Measures the block of `args` and `other`, which is written in the same way.
pub fn compare_with(
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
    let both = vec![(one, Some(a)), (two, Some(b))];
    let mut reports = predicted(args, settings, model, both)?.into_iter();
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
        Format::Text => pair_text(&pair, args, settings.ascii),
    })?;
    Ok(if compared { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn pair_text(pair: &BlockPair, args: &BlockArgs, ascii: bool) -> String {
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
