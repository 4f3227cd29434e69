//! `tdtool prefetch`: where a software prefetch helps, and how far ahead; by recordings, or by counts of probes and
//! measurements of this host.

use super::apply::{ApplyArgs, Applying};
use super::count::live;
use super::files::{error_page, page, write_or_print};
use super::measure::exit_code;
use super::options::{Format, Global};
use super::progress::{self, Clock, Progress};
use super::recordings::{SearchArgs, present, reading};
use crate::message;
use crate::settings::Settings;
use bench::{Assumed, BlockMeasurer, Options, Outcome, Status};
use clap::{Args, ValueEnum};
use engine::count::{CountAsk, counted};
use engine::hot::hottest::hottest;
use engine::prefetch::{Cycles, Host, NoCycles, misses_in_flight, prefetch_by_probes};
use engine::steps::Callback;
use isa::code::{Block, loads_at};
use pmu::Command;
use report::documents::count::Count;
use report::documents::prefetch::{Plan, Prefetch};
use report::files::{check_place, write_whole};
use report::render::width::Page;
use report::render::{count, json, prefetch, prefetch_plan};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tma::{Error, Result};

#[derive(Args)]
pub struct PrefetchArgs {
    /// Recordings (`perf record -b`, `perf mem`), or JSON of `count --hot --loads`
    #[arg(value_name = "FILE", required_unless_present = "command")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
    /// Show N loads as text
    #[arg(short, value_name = "N", default_value = "10")]
    n: usize,
    /// Measure loops whose iterations all miss, as blocks in isolation
    #[arg(long)]
    measure: bool,
    /// Write the prefetches with known distance and loop to FILE
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Format of the plan: json, PC,delta,type, or a profile for llc
    #[arg(long, value_enum, default_value = "json", requires = "plan")]
    plan_format: PlanFormat,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write to FILE instead
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    applying: ApplyArgs,
    /// A command instead, without a PMU: run four times, its output repeated
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["files", "measure"])]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlanFormat {
    Json,
    /// Strides as lines `PC,delta,type`
    Hints,
    /// Strides as `llc -prefetch-hints-file` reads them
    Llvm,
}

pub fn run(global: &Global, args: &PrefetchArgs) -> Result<ExitCode> {
    present(&args.files, "without a recording: `tdtool prefetch -- COMMAND`")?;
    match args.command.is_empty() {
        true => reading(&args.files, || advise(global, args)),
        false => advise(global, args),
    }
}

fn advise(global: &Global, args: &PrefetchArgs) -> Result<ExitCode> {
    for (path, option) in [(args.file(), "--output"), (args.plan.as_ref(), "--plan")] {
        path.map_or(Ok(()), |path| check_place(path, &args.files, option))?;
    }
    args.applying.check()?;
    let settings = global.settings()?;
    let applying = match args.applying.apply.then(|| Applying::begin(&settings, &args.applying)) {
        Some(begun) => match begun? {
            Ok(applying) => Some(applying),
            Err(signal) => return Ok(exit_code(128 + signal)),
        },
        None => None,
    };
    let command = args.run();
    let known = known_counts(&args.files)?;
    let (mut document, mut code) = match (known, args.command.is_empty()) {
        (Some(counts), _) => (by_probes(&settings, args, &counts)?, 0),
        (None, true) => (by_recordings(&settings, args)?, 0),
        (None, false) => match by_command(&settings, args, &command)? {
            Ok(found) => found,
            Err(interrupted) => return Ok(exit_code(interrupted)),
        },
    };
    if let Some(applying) = applying {
        let signal = applying.end(&command, args.n, &mut document)?;
        code = signal.map_or(code, |signal| 128 + signal);
    }
    if let Some(path) = &args.plan {
        let plan = Plan::of(&document);
        if plan.prefetches.is_empty() {
            message::note(&empty(&document));
        }
        write_whole(path, written(&plan, args.plan_format)?.as_bytes(), &args.files, "--plan")?;
    }
    if matches!(args.format, Format::Csv) {
        // They may say that a recording is damaged.
        document.notes.iter().for_each(|text| message::note(text));
    }
    args.write(&match args.format {
        Format::Text => prefetch::text(&document, args.n, settings.ascii, args.page()),
        Format::Json => json::pretty(&document)?,
        Format::Csv => prefetch::csv(&document),
    })?;
    let is_advised = document.advice.iter().any(|row| row.refused.is_none());
    if is_advised && args.is_beside() && !args.applying.apply {
        let words = tma::shell::quoted(&args.command);
        message::remedy(&format!("to try it: `tdtool prefetch --apply --build 'make' -- {words}`"));
    }
    Ok(exit_code(code))
}

impl PrefetchArgs {
    fn file(&self) -> Option<&PathBuf> {
        self.output.as_ref().filter(|path| path.as_os_str() != "-")
    }

    /// Whether the text goes to standard error, beside the output of the command.
    fn is_beside(&self) -> bool {
        self.file().is_none() && self.format == Format::Text && !self.command.is_empty()
    }

    /// The command, whose output a text leaves on standard output; a document takes that.
    fn run(&self) -> Command {
        if self.command.is_empty() {
            return Command::default();
        }
        let stdout = pmu::Stdout::beside(self.file().is_none() && !self.is_beside());
        Command { argv: self.command.clone(), stdout, ..Command::default() }.run_again()
    }

    fn page(&self) -> Page {
        if self.is_beside() { error_page() } else { page(self.output.as_deref()) }
    }

    fn write(&self, text: &str) -> Result<()> {
        if self.is_beside() {
            message::plain(&tma::text::lines(text));
            return Ok(());
        }
        write_or_print(self.output.as_deref(), text, &self.files)
    }
}

/// A measurer of blocks, and the name of this processor.
fn measurer(settings: &Settings) -> Result<(BlockMeasurer, String)> {
    let core = settings.core_model()?.core.clone();
    let mut here = core.cpu.name.clone();
    if let Some(uarch) = core.uarch() {
        here += &format!(" ({uarch})");
    }
    Ok((BlockMeasurer::new(Options { core, ..Options::quick() }), here))
}

fn by_probes(settings: &Settings, args: &PrefetchArgs, counts: &Count) -> Result<Prefetch> {
    let _clock = Clock::start("measuring this host and hot loops", None, false);
    let (mut measurer, here) = measurer(settings)?;
    let host = host(settings, &mut measurer, counts)?;
    let mut measure = |code: &[u8]| cycles_of_hits(&mut measurer, code);
    let mut document = prefetch_by_probes(counts, &args.search.paths()?, &host, &mut measure)?;
    if args.command.is_empty() {
        document.notes.push(format!(
            "counts, latencies and times are of the machine that counted; IC, clock and misses in flight of this one, {here}"
        ));
    }
    Ok(document)
}

/// Advice on a command, and its status; only that if it was interrupted.
fn by_command(
    settings: &Settings,
    args: &PrefetchArgs,
    command: &Command,
) -> Result<std::result::Result<(Prefetch, i32), i32>> {
    let (counts, code) = counts(settings, command.clone())?;
    if counts.interrupted.is_none() {
        return Ok(Ok((by_probes(settings, args, &counts)?, code)));
    }
    message::note("interrupted: no advice; what was counted until then:");
    args.write(&match args.format {
        Format::Text => count::text(&counts, args.page(), false),
        Format::Json | Format::Csv => json::pretty(&counts)?,
    })?;
    Ok(Err(code))
}

fn by_recordings(settings: &Settings, args: &PrefetchArgs) -> Result<Prefetch> {
    let search = args.search.paths()?;
    if !args.measure {
        return engine::prefetch::prefetch(&args.files, &search, None);
    }
    let (mut measurer, here) = measurer(settings)?;
    let mut measure = |code: &[u8]| cycles_of_hits(&mut measurer, code);
    engine::prefetch::prefetch(&args.files, &search, Some((&mut measure, &here)))
}

/// Why a plan has no prefetch.
fn empty(document: &Prefetch) -> String {
    let undecided = document.advice.iter().filter(|row| row.undecided).count();
    let refused = document.advice.iter().filter(|row| row.refused.is_some()).count() - undecided;
    let unknown = document.advice.len() - refused - undecided;
    format!(
        "the plan is empty: a prefetch cannot help {refused} loads, distance or loop are not known of {unknown}, and \
         {undecided} are not decided"
    )
}

fn written(plan: &Plan, format: PlanFormat) -> Result<String> {
    Ok(match format {
        PlanFormat::Json => json::pretty(plan)?,
        PlanFormat::Hints => prefetch_plan::hints(plan),
        PlanFormat::Llvm => prefetch_plan::llvm(plan),
    })
}

/// Share of the samples that the functions hold whose loads are looked at.
const HOT: f64 = 0.9;

/// Runs a command once sampled, and three times with probes: counts, addresses and latencies of its loads.
pub fn counts(settings: &Settings, command: Command) -> Result<(Count, i32)> {
    let live = live(settings, &command, None)?;
    let mut ask = CountAsk {
        windows: false,
        hot: None,
        command,
        process: None,
        modules: Vec::new(),
        functions: Vec::new(),
        plain: false,
        loads: true,
        loads_of: None,
        branches_of: None,
        rarest: 0.0,
        values: None,
        branches: None,
        only: None,
        watch: Some(Callback::new(|step| _ = progress::step(&step))),
    };
    ask.begin_sampling();
    ask.hot = Some(hottest(settings.machine(), settings.library, &live, HOT)?);
    let mut progress = Progress::new("analysing the code");
    let found = counted(&ask, &mut |done, all| progress.show(done, all))?;
    progress.end();
    Ok(found)
}

/// The document of `tdtool count --loads`, if the file is one.
pub fn known_counts(files: &[PathBuf]) -> Result<Option<Count>> {
    let is_json = |path: &&PathBuf| {
        let mut begin = [0; 64];
        let read = tma::files::open(path).and_then(|mut file| file.read(&mut begin));
        let text = begin.get(..read.unwrap_or(0)).unwrap_or_default();
        text.trim_ascii_start().starts_with(b"{")
    };
    match (files, files.iter().find(is_json)) {
        (_, None) => Ok(None),
        ([only], Some(_)) => Count::read(only).map(Some),
        (_, Some(path)) => {
            Err(Error::usage(format!("{} is not a recording", tma::files::name(path)))
                .hint("give a document of `tdtool count --hot --loads` on its own"))
        }
    }
}

/// Measurements of this host for the advice.
pub fn host(settings: &Settings, measurer: &mut BlockMeasurer, counts: &Count) -> Result<Host> {
    let cpu = &settings.core_model()?.core.cpu;
    let in_flight = misses_in_flight(cpu, settings.cache.as_deref());
    Ok(Host { cycles_per_ns: cycles_per_ns(measurer, counts)?, in_flight })
}

/// How often the core clock is looked at until nothing else runs.
const LOOKS: usize = 20;

/// Core cycles in a nanosecond.
fn cycles_per_ns(measurer: &mut BlockMeasurer, counts: &Count) -> Result<f64> {
    let Some(timer) = &counts.timer else {
        let why = counts.notes.join("; ");
        return Err(Error::not_possible("latencies of loads are not known here").because(why));
    };
    for _ in 0..LOOKS {
        if let Some(ratio) = measurer.cycles_per_tick()? {
            return Ok(ratio * timer.ticks_per_ns);
        }
    }
    Err(Error::failed("the core clock is not known")
        .because("other programs use the processor all the time")
        .hint("try again on a quieter machine"))
}

/// How often a block is measured: what it takes may differ from one placement to the next.
const MEASURED: usize = 3;

/// Where all loads are from, if they miss the first cache otherwise: no initial value is near.
const ONE_ADDRESS: u32 = 0x3000_0000;
/// Passes that are tried for [`MEASURED`] that are stable.
const TRIED: usize = 2 * MEASURED;
/// Assumptions without which a measured block has misses.
const HITS: [Assumed; 3] = [Assumed::L1Data, Assumed::DataTlb, Assumed::PageAliasing];

/// Core cycles of a block in isolation whose loads all hit the first cache: if they do not as they are (a stride over
/// more lines of one set than it has ways), with all of them from one address.
pub fn cycles_of_hits(
    measurer: &mut BlockMeasurer,
    code: &[u8],
) -> std::result::Result<Cycles, NoCycles> {
    let block = Block::decode(code)?;
    let why = match stable(measurer, &block) {
        Ok(found) => return Ok(found),
        Err(why) => why,
    };
    let other = loads_at(&block, ONE_ADDRESS).and_then(|code| Block::decode(&code));
    let other = other.map_err(|_| why.clone())?;
    let found = stable(measurer, &other);
    found
        .map(|found| Cycles { at_one_address: true, ..found })
        .map_err(|again| if again == why { why } else { NoCycles::Both(why.into(), again.into()) })
}

/// The median and the range of passes that are stable and without misses.
fn stable(measurer: &mut BlockMeasurer, block: &Block) -> std::result::Result<Cycles, NoCycles> {
    let (mut all, mut range) = (Vec::new(), (f64::INFINITY, 0.0_f64));
    let mut unstable = None;
    for _ in 0..TRIED {
        let measured = measurer.measure(block)?;
        let violated = measured
            .assumptions
            .iter()
            .find(|one| one.outcome == Outcome::Violated && HITS.contains(&one.name));
        if let Some(one) = violated {
            return Err(NoCycles::Misses { assumption: one.name, how: one.how.clone() });
        }
        match (measured.throughput, measured.status) {
            (Some(found), Status::Ok) => {
                range = (range.0.min(found.low), range.1.max(found.high));
                all.push(found.cycles);
            }
            _ => unstable = measured.reason.or(unstable),
        }
        if all.len() == MEASURED {
            break;
        }
    }
    all.sort_by(f64::total_cmp);
    match all.get(all.len() / 2) {
        Some(cycles) if all.len() == MEASURED => {
            Ok(Cycles { cycles: *cycles, range, at_one_address: false })
        }
        _ => Err(NoCycles::Unstable(TRIED, unstable)),
    }
}
