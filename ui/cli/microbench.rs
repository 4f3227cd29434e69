//! `tdtool microbench`: microbenchmarks of instructions, and latencies of common forms, stored for `tdtool deps`.

use super::code;
use super::files::{page, print};
use super::measure::exit_code;
use super::options::{Format, Global, number};
use super::progress::until;
use crate::message;
use crate::settings::Settings;
use bench::microbench::{self, Bench, CalibrationSummary, Catalog, Multiset};
use bench::{Options, Status};
use clap::{Args, Subcommand};
use engine::core_model::{latencies, throughput};
use isa::latency::Calibration;
use pmu::perf::Signals;
use report::render::{json, microbench as render};
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tma::{Core, Error, Result};

const EFFORT: &str = "Effort";
const CALIBRATION: &str = "Calibration";

#[derive(Args)]
#[command(
    subcommand_negates_reqs = true,
    after_help = "\
Names of forms, for example IMUL_GPR64i64_GPR64i64 (no assembly: see tdtool block --asm):
  GPR64i64, VR256f64x4   a general-purpose register, a vector of four doubles
  MEM64i64[bisd]         memory; bisd: with base, index, scale and displacement
  IMMi8                  an immediate"
)]
pub struct MicrobenchArgs {
    /// Names of instruction forms (see list) that run together: FORM*COUNT, …
    #[arg(value_name = "FORMS", required_unless_present_any = ["from", "calibrate"])]
    pub forms: Option<String>,
    /// Use the forms of a block: hexadecimal, FILE:START..END or FILE:FUNCTION[+N]
    #[arg(long, value_name = "BLOCK", conflicts_with = "forms")]
    pub from: Option<String>,
    /// Measure common forms and store their latencies for `tdtool deps`
    #[arg(long, conflicts_with_all = ["forms", "from"], help_heading = CALIBRATION)]
    pub calibrate: bool,
    /// File for the latencies [default: in the user's cache directory]
    #[arg(long, value_name = "FILE", requires = "calibrate", help_heading = CALIBRATION)]
    pub output: Option<PathBuf>,
    /// Stop after this time; rerun to resume
    #[arg(long, value_name = "SECONDS", requires = "calibrate", default_value = "600", help_heading = CALIBRATION)]
    pub time_limit: u64,
    #[command(flatten)]
    pub effort: Effort,
    #[command(subcommand)]
    pub command: Option<What>,
}

#[derive(Args)]
pub struct Effort {
    /// Approximate number of instructions in the unrolled code
    #[arg(long, global = true, value_name = "N", default_value = "60", value_parser = number(1, 480), help_heading = EFFORT)]
    unroll_size: u64,
    /// Minimum dynamic instructions of the long run, as far as the sandbox allows
    #[arg(long, global = true, value_name = "N", default_value = "10000", value_parser = number(1, 1_000_000), help_heading = EFFORT)]
    total_insn: u64,
    /// Rounds, over all passes and placements
    #[arg(long, global = true, value_name = "N", default_value = "192", value_parser = number(4, 3000), help_heading = EFFORT)]
    measures: u64,
    /// Output format
    #[arg(long, global = true, value_enum, default_value = "text")]
    pub format: Format,
    /// Measure on this CPU
    #[arg(long, global = true, value_name = "N", help_heading = EFFORT)]
    cpu: Option<usize>,
}

#[derive(Subcommand)]
pub enum What {
    /// List the instruction forms of this processor
    List {
        /// Pattern for their names, with * and ?
        #[arg(default_value = "*")]
        pattern: String,
        /// Include forms that cannot be measured here, with the reason
        #[arg(long)]
        refused: bool,
    },
    /// Measure the latency from each operand of a form to each result
    Latency {
        /// Instruction form
        form: String,
    },
    /// Measure the reciprocal throughput of a form with independent operands
    Throughput {
        /// Instruction form
        form: String,
    },
}

impl Effort {
    /// Microbenchmarks of this size on `core`.
    pub fn bench(&self, core: Arc<Core>) -> Bench {
        let sizes = microbench::Settings {
            unroll_size: self.unroll_size as usize,
            total_insn: self.total_insn as usize,
            measures: self.measures as usize,
            vector: None,
        };
        let options =
            Options { core, explain: false, counts: false, cpu: self.cpu, ..Options::default() };
        Bench::new(options, sizes)
    }
}

pub fn run(global: &Global, args: MicrobenchArgs) -> Result<ExitCode> {
    let effort = &args.effort;
    // Not checked by clap, which would also refuse `--format csv` before the command.
    if args.command.is_some() && (args.forms.is_some() || args.from.is_some() || args.calibrate) {
        return Err(Error::usage("list, latency and throughput take no other forms").hint(
            "`tdtool microbench latency FORM`, `tdtool microbench throughput FORM` or `tdtool microbench FORM`",
        ));
    }
    match &args.command {
        Some(What::List { pattern, refused }) => list(pattern, *refused, effort.format),
        Some(What::Latency { form }) => run_latency(global, form, effort),
        Some(What::Throughput { form }) => run_throughput(global, &Multiset::parse(form)?, effort),
        None if args.calibrate => calibrate(&global.settings()?, &args),
        None => run_throughput(global, &multiset(&args)?, effort),
    }
}

fn multiset(args: &MicrobenchArgs) -> Result<Multiset> {
    match (&args.from, &args.forms) {
        (Some(block), _) => Multiset::of(&code::only(block)?),
        (_, Some(forms)) => Multiset::parse(forms),
        _ => Err(Error::usage("no instruction form is given")),
    }
}

fn run_throughput(global: &Global, multiset: &Multiset, effort: &Effort) -> Result<ExitCode> {
    let model = global.settings()?.core_model()?;
    let report = throughput(&mut effort.bench(model.core.clone()), &model, multiset)?;
    print(&match effort.format {
        Format::Text => page(None).fitted(render::render(&report)),
        Format::Json => json::pretty(&report)?,
        Format::Csv => format!("{}\n{}\n", render::HEADER, render::row(&report.result)),
    })?;
    Ok(code([report.result.status].into_iter()))
}

fn run_latency(global: &Global, form: &str, effort: &Effort) -> Result<ExitCode> {
    let form = Catalog::all().find(form)?;
    let model = global.settings()?.core_model()?;
    let found = latencies(&mut effort.bench(model.core.clone()), &model, form)?;
    print(&match effort.format {
        Format::Text => page(None).fitted(render::render_latencies(&found)),
        Format::Json => json::pretty(&found)?,
        Format::Csv => {
            format!("{}\n{}", render::LATENCY_HEADER, render::latency_rows(&found.result))
        }
    })?;
    Ok(code(found.result.latencies.iter().map(|l| l.status)))
}

fn list(pattern: &str, refused: bool, format: Format) -> Result<ExitCode> {
    let listed = Catalog::all().list(pattern, refused);
    if listed.is_empty() {
        let refused =
            if refused { "" } else { "; --refused adds those that cannot be measured here" };
        return Err(Error::failed(format!("no form matches `{pattern}`"))
            .hint(format!("use * in the pattern, for example 'VADDPD_*'{refused}")));
    }
    print(&match format {
        Format::Text => page(None).fitted(render::render_list(&listed)),
        Format::Json => json::pretty(&microbench::list_document(&listed))?,
        Format::Csv => render::list_rows(&listed),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Success if every measurement gave a number.
fn code(mut all: impl Iterator<Item = Status>) -> ExitCode {
    match all.all(|status| matches!(status, Status::Ok | Status::Unstable)) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Measures until all forms are done, the time limit is over, or a signal comes.
pub fn calibrate(settings: &Settings, args: &MicrobenchArgs) -> Result<ExitCode> {
    let core = settings.core()?;
    core.warning().iter().for_each(|warning| message::note(warning));
    let mut bench = args.effort.bench(core);
    let path = match &args.output {
        Some(path) => path.clone(),
        None => Calibration::path(cache_folder(settings)?, bench.core.name()),
    };
    let limit = Duration::from_secs(args.time_limit);
    let overwrites = std::io::stderr().is_terminal();
    let end = Instant::now() + limit;
    // Kinds of forwarding come before the forms, and are none of them.
    let mut first: Option<Instant> = None;
    let mut err = std::io::stderr().lock();
    let mut signals = Some(Signals::catch()?);
    let mut interrupted = None;
    let ended = microbench::calibrate(&mut bench, &path, limit, |at| {
        interrupted =
            interrupted.or_else(|| signals.as_ref().and_then(Signals::next).map(|(n, _)| n));
        if interrupted.is_some() {
            // A second interrupt ends this process without waiting for the current form.
            signals = None;
            return false;
        }
        // A failure to show progress does not end the calibration.
        let _ = match overwrites {
            true => {
                let of_limit = end.saturating_duration_since(Instant::now());
                let begun = first.filter(|_| at.done > 0).map(|first| first.elapsed());
                if at.done == 0 {
                    first = Some(Instant::now());
                }
                let left = until(begun.unwrap_or_default(), at.done, at.all, of_limit);
                write!(err, "\r{} of {}{left}: {:.40}\x1b[K", at.done, at.all, at.form)
            }
            false if at.done % 32 == 0 => writeln!(err, "{}/{} {}", at.done, at.all, at.form),
            false => Ok(()),
        };
        true
    })?;
    drop(signals);
    if overwrites {
        let _ = write!(err, "\r\x1b[K");
    }
    drop(err);
    let json = args.effort.format == Format::Json;
    print(&if json { json::pretty(&ended)? } else { calibration_text(&ended, &path) })?;
    let Some(signal) = interrupted else { return Ok(ExitCode::SUCCESS) };
    let what = format!("interrupted; results so far are in {}", path.display());
    message::print("note", &what, None, Some("rerun to resume"));
    Ok(exit_code(128 + signal))
}

fn calibration_text(ended: &CalibrationSummary, path: &Path) -> String {
    let CalibrationSummary { forms, latencies, forwarding, .. } = ended;
    let path = path.display();
    let mut text = format!(
        "{forms} forms, {latencies} latencies, {forwarding} kinds of store forwarding in {path}\n"
    );
    for failed in &ended.failed {
        text += &format!("not reproduced: {failed}\n");
    }
    if ended.left > 0 {
        text += &format!("{} forms left: rerun to resume\n", ended.left);
    }
    text
}

/// The user's cache folder.
fn cache_folder(settings: &Settings) -> Result<&PathBuf> {
    settings.cache.as_ref().ok_or_else(|| {
        Error::failed("there is no cache directory")
            .because("neither XDG_CACHE_HOME nor HOME is set")
            .hint("name a file with --output")
    })
}
