//! `tdtool kernel`: measure a multiset of instructions, or one form.

use super::{print, to_json};
use crate::cli::Global;
use bench::microbench::{self, Bench, Catalog, Multiset, Settings};
use bench::{Options, Status};
use clap::{Args, Subcommand, ValueEnum};
use engine::render::microbench as render;
use isa::latency::Calibration;
use pmu::perf::Signals;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tma::{Error, Result};

const EFFORT: &str = "How thoroughly";

#[derive(Args)]
#[command(subcommand_negates_reqs = true)]
pub struct KernelArgs {
    /// Instruction forms, `FORM*COUNT, …`
    #[arg(value_name = "FORMS", required_unless_present_any = ["from", "calibrate"])]
    forms: Option<String>,
    /// The forms of a block: its bytes in hexadecimal, or FILE:START..END, FILE:FUNCTION[+N]
    #[arg(long, value_name = "BLOCK", conflicts_with = "forms")]
    from: Option<String>,
    /// Measure the usual forms, and keep their latencies for `tdtool deps`
    #[arg(long, conflicts_with_all = ["forms", "from"])]
    calibrate: bool,
    /// Where they are kept [default: in the user's cache directory]
    #[arg(long, value_name = "FILE", requires = "calibrate")]
    output: Option<PathBuf>,
    /// Stop after so many seconds; a later run goes on from there
    #[arg(long, value_name = "SECONDS", requires = "calibrate", default_value = "600")]
    time_limit: u64,
    #[command(flatten)]
    effort: Effort,
    #[command(subcommand)]
    command: Option<What>,
}

#[derive(Args)]
struct Effort {
    /// Instructions of the straight code, about
    #[arg(long, global = true, value_name = "N", default_value = "60", value_parser = number(1, 480), help_heading = EFFORT)]
    unroll_size: u64,
    /// Instructions of a long run, at least, as far as the sandbox allows
    #[arg(long, global = true, value_name = "N", default_value = "10000", value_parser = number(1, 1_000_000), help_heading = EFFORT)]
    total_insn: u64,
    /// Samples, over all passes and placements
    #[arg(long, global = true, value_name = "N", default_value = "192", value_parser = number(4, 3000), help_heading = EFFORT)]
    measures: u64,
    /// How to write the result
    #[arg(long, global = true, value_enum, default_value = "text")]
    format: Format,
    /// Measure on this processor
    #[arg(long, global = true, value_name = "N")]
    cpu: Option<usize>,
}

#[derive(Subcommand)]
enum What {
    /// List instruction forms that this processor has
    List {
        /// Names to list, with `*` and `?`
        #[arg(default_value = "*")]
        pattern: String,
        /// Those too that cannot be measured here, with the reason
        #[arg(long)]
        refused: bool,
    },
    /// Measure how long a value takes from each operand of a form to each result
    Latency {
        /// The form
        form: String,
    },
    /// Measure how many cycles a form takes where nothing waits
    Throughput {
        /// The form
        form: String,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
}

fn number(least: u64, most: u64) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(least..=most)
}

pub fn run(global: &Global, args: KernelArgs) -> Result<ExitCode> {
    let effort = &args.effort;
    // Not by clap: it would refuse `--format csv` before the word, too.
    if args.command.is_some() && (args.forms.is_some() || args.from.is_some() || args.calibrate) {
        return Err(Error::usage(
            "one of these is too much: list, latency and throughput take no other forms",
        )
        .hint(
            "tdtool kernel latency FORM, tdtool kernel throughput FORM, or tdtool kernel FORMS",
        ));
    }
    match &args.command {
        Some(What::List { pattern, refused }) => list(pattern, *refused, effort.format),
        Some(What::Latency { form }) => latency(global, form, effort),
        Some(What::Throughput { form }) => throughput(global, Multiset::parse(form)?, effort),
        None if args.calibrate => calibrate(global, &args),
        None => throughput(global, multiset(&args)?, effort),
    }
}

fn multiset(args: &KernelArgs) -> Result<Multiset> {
    match (&args.from, &args.forms) {
        (Some(block), _) => Multiset::of(&super::block::one(block)?),
        (_, Some(forms)) => Multiset::parse(forms),
        _ => Err(Error::usage("no instruction form is given")),
    }
}

fn bench(global: &Global, effort: &Effort) -> Result<Bench> {
    let known = global.known()?;
    known
        .core
        .warning()
        .iter()
        .for_each(|warning| crate::failure::tell("note", warning, None, None));
    let settings = Settings {
        unroll_size: effort.unroll_size as usize,
        total_insn: effort.total_insn as usize,
        measures: effort.measures as usize,
    };
    let options = Options {
        core: known.core,
        explain: false,
        counts: false,
        cpu: effort.cpu,
        ..Options::default()
    };
    Ok(Bench::new(options, settings))
}

fn throughput(global: &Global, multiset: Multiset, effort: &Effort) -> Result<ExitCode> {
    let report = microbench::measure(&mut bench(global, effort)?, &multiset)?;
    print(&match effort.format {
        Format::Text => render::render(&report),
        Format::Json => to_json(&report)?,
        Format::Csv => format!("{}\n{}\n", render::HEADER, render::row(&report)),
    })?;
    Ok(code([report.status].into_iter()))
}

fn latency(global: &Global, form: &str, effort: &Effort) -> Result<ExitCode> {
    let form = Catalog::all().find(form)?;
    let mut connectors = microbench::Connectors::default();
    let found = microbench::latencies(&mut bench(global, effort)?, &mut connectors, form)?;
    print(&match effort.format {
        Format::Text => render::render_latencies(&found),
        Format::Json => to_json(&found)?,
        Format::Csv => format!("{}\n{}", render::LATENCY_HEADER, render::latency_rows(&found)),
    })?;
    Ok(code(found.latencies.iter().map(|l| l.status)))
}

fn list(pattern: &str, refused: bool, format: Format) -> Result<ExitCode> {
    let listed = Catalog::all().list(pattern, refused);
    if listed.is_empty() {
        let refused =
            if refused { "" } else { "; --refused shows those that cannot be measured here" };
        return Err(Error::failed(format!("no form is like `{pattern}`"))
            .hint(format!("write a pattern with stars, for example 'VADDPD_*'{refused}")));
    }
    print(&match format {
        Format::Text => render::render_list(&listed),
        Format::Json => to_json(&microbench::list_document(&listed))?,
        Format::Csv => render::list_rows(&listed),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn code(all: impl Iterator<Item = Status>) -> ExitCode {
    let mut all = all;
    match all.all(|status| matches!(status, Status::Ok | Status::Unstable)) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn calibrate(global: &Global, args: &KernelArgs) -> Result<ExitCode> {
    let mut bench = bench(global, &args.effort)?;
    let path = match &args.output {
        Some(path) => path.clone(),
        None => Calibration::place(&cache()?, bench.core.needs_table()?),
    };
    let limit = Duration::from_secs(args.time_limit);
    let shown = std::io::stderr().is_terminal();
    let mut err = std::io::stderr().lock();
    let mut signals = Some(Signals::catch()?);
    let mut interrupted = None;
    let ended = microbench::calibrate(&mut bench, &path, limit, |at| {
        interrupted =
            interrupted.or_else(|| signals.as_ref().and_then(Signals::next).map(|(n, _)| n));
        if interrupted.is_some() {
            // A second interrupt does not wait for the form at hand.
            signals = None;
            return false;
        }
        // Whoever closed the terminal does not want to know.
        let _ = match shown {
            true => write!(err, "\r{}/{} {:<60.60}", at.done, at.all, at.form),
            false if at.done % 32 == 0 => writeln!(err, "{}/{} {}", at.done, at.all, at.form),
            false => Ok(()),
        };
        true
    })?;
    drop(signals);
    if shown {
        let _ = write!(err, "\r{:<70}\r", "");
    }
    let mut text = format!(
        "{} forms, {} latencies, {} kinds of forwarding in {}\n",
        ended.forms,
        ended.latencies,
        ended.forwarding,
        path.display()
    );
    for failed in &ended.failed {
        text += &format!("not reproduced: {failed}\n");
    }
    if ended.left > 0 {
        text += &format!("{} forms are left: run the same command again\n", ended.left);
    }
    print(&if args.effort.format == Format::Json { to_json(&ended)? } else { text })?;
    let Some(signal) = interrupted else { return Ok(ExitCode::SUCCESS) };
    let again = Some("the same command goes on from there");
    crate::failure::tell("note", "interrupted: what was measured is kept", None, again);
    Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)))
}

/// The user's cache directory, as the XDG base directory specification has it.
fn cache() -> Result<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    named("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| named("HOME").map(|home| home.join(".cache")))
        .ok_or_else(|| {
            Error::failed("there is no cache directory")
                .because("neither XDG_CACHE_HOME nor HOME is set")
                .hint("name a file with --output")
        })
}
