//! Measures, lists or opens the blocks that the command line names.

use super::arguments::{BlockArgs, Format};
use super::predicted::predicted;
use super::requests::{Request, requests};
use super::{against, current_step, judge};
use crate::cli::code::program;
use crate::cli::global::Global;
use crate::cli::output::{page, print, rows_have_a_batch};
use crate::message::note;
use crate::settings::{BlockRequest, Next, Settings, Subject};
use crate::terminal;
use bench::{Measurement, Options, Progress, Status, processors};
use engine::block::Measurer;
use engine::core_model::CoreModel;
use isa::code::{Block, Region};
use pmu::perf::Signals;
use report::documents::block::BlockReport;
use report::render::block::Style;
use report::render::{block as render, functions, json};
use std::process::ExitCode;
use tma::{Error, Result};

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
        return judge::batch(input, output, &args, &options, settings.ascii).map(Next::Exit);
    }
    if args.list {
        return list(&args, settings.ascii).map(Next::Exit);
    }
    if let Some(other) = &args.against {
        return against::run(other, &args, &options, &settings, &model).map(Next::Exit);
    }
    let ascii = settings.ascii;
    let requests = requests(&args, &options)?;
    if args.tui && terminal::is_interactive() {
        return drill_down(settings, requests);
    }
    let shown = current_step::show(&options.progress);
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
        return Ok(Next::Exit(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))));
    }
    let ran = |r: &BlockReport| matches!(r.measurement.status, Status::Ok | Status::Unstable);
    let code = if reports.iter().all(ran) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    Ok(Next::Exit(code))
}

fn measure_all(
    args: &BlockArgs,
    requests: Vec<Request>,
    model: &CoreModel,
    progress: &Progress,
) -> Result<Vec<Measurement>> {
    let several = requests.len() > 1;
    let mut reports = Vec::new();
    let mut measurer = None;
    for Request { region, options, notes } in requests {
        // Repeated and sampled blocks have their own options; all others share a sandbox.
        if args.repeat.is_some() || args.registers.is_some() {
            measurer = None;
        }
        let measurer = measurer.get_or_insert_with(|| Measurer::new(options, model));
        let mut report = measure(measurer, args, region, several)?;
        notes.enter(&mut report);
        reports.push(report);
        if progress.is_cancelled() {
            break;
        }
    }
    Ok(reports)
}

/// Measures a region. Bytes that are no code are an error, among several regions a rejected one.
fn measure(
    measurer: &mut Measurer,
    args: &BlockArgs,
    region: Region,
    several: bool,
) -> Result<Measurement> {
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
    if let Some(functions) = program::functions(given) {
        let listed = functions?;
        print(&match args.format {
            Format::Text => functions::list_text(&listed, page(None)),
            Format::Json => json::pretty(&listed)?,
            Format::Csv => functions::list_rows(&listed),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let listed = program::list(given)?;
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
