//! `tdtool workload list|run`

use crate::cli::Global;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use tma::{Error, Result};
use workload::{self, DefaultSize, Options, SizeParameter, Summary, Workload};

#[derive(Args)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Names them all, or describes one
    List {
        /// Describe this one in full
        name: Option<String>,
        /// How to write it
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Runs one and prints what it did
    Run(RunArgs),
}

#[derive(Args)]
struct RunArgs {
    /// Which one; `tdtool workload list` names them
    name: String,
    /// Stop after S seconds, fractions allowed [default: 2, or none with --repeats]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// Stop after N repeats; with --seconds, whichever comes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    repeats: Option<u64>,
    /// Size in bytes (K, M, G allowed), or rows for matrices [default: see list NAME]
    #[arg(long, allow_hyphen_values = true)]
    size: Option<String>,
    /// Run the same loop without the bottleneck, to compare with
    #[arg(long)]
    control: bool,
    /// How to write the summary
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// The documents of this command.
#[derive(Serialize)]
struct Document<T> {
    schema: &'static str,
    #[serde(flatten)]
    content: T,
}

#[derive(Serialize)]
struct Listing<'a> {
    workloads: &'a [Workload],
}

pub fn run(_global: &Global, args: WorkloadArgs) -> Result<ExitCode> {
    let text = match args.action {
        Action::List { name, format } => listing(name.as_deref(), format)?,
        Action::Run(args) => {
            let size = args.size.as_deref().map(workload::parse_size).transpose()?;
            let options = Options {
                seconds: args.seconds,
                repeats: args.repeats,
                size,
                control: args.control,
            };
            let summary = workload::run(&args.name, &options)?;
            match args.format {
                Format::Json => json("tdtool.workload/1", &summary)?,
                Format::Text => sentence(&summary),
            }
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output; a reader that has seen enough is no error.
fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout().lock(), "{}", text.trim_end()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::failed("cannot write to standard output").because(e))
        }
        _ => Ok(()),
    }
}

fn json<T: Serialize>(schema: &'static str, content: &T) -> Result<String> {
    serde_json::to_string_pretty(&Document { schema, content })
        .map_err(|e| Error::failed("cannot write the JSON document").because(e))
}

fn listing(name: Option<&str>, format: Format) -> Result<String> {
    let chosen = match name {
        Some(name) => std::slice::from_ref(workload::find(name)?),
        None => workload::list(),
    };
    Ok(match (format, name) {
        (Format::Json, _) => json("tdtool.workloads/1", &Listing { workloads: chosen })?,
        (Format::Text, Some(_)) => chosen.iter().map(description).collect(),
        (Format::Text, None) => table(chosen),
    })
}

/// One line each: name, where its time should show, what it does.
fn table(workloads: &[Workload]) -> String {
    let heads = ["name", "Intel node", "AMD node"];
    let cells = |w: &Workload| [w.name, leaf(w.expected.intel), leaf(w.expected.amd)];
    let width = |column: usize| {
        let cells = workloads.iter().map(|w| cells(w)[column].len());
        cells.chain([heads[column].len()]).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let line = |[a, b, c]: [&str; 3], text: &str| {
        format!("{a:0$}  {b:1$}  {c:2$}  {text}\n", widths[0], widths[1], widths[2])
    };
    let mut text = line(heads, "what it does");
    for w in workloads {
        let absent = if w.available { "" } else { " (not on this architecture)" };
        text += &line(cells(w), &format!("{}{absent}", w.summary));
    }
    text + "\n`tdtool workload list NAME` describes one; `tdtool workload run NAME --control` runs \
            it without its bottleneck."
}

/// The most specific node.
fn leaf(nodes: &[&'static str]) -> &'static str {
    nodes.first().copied().unwrap_or("-")
}

/// Everything about one.
fn description(w: &Workload) -> String {
    let nodes = |ids: &[&str]| match ids {
        [] => "no node shows it".to_owned(),
        ids => ids.join(", else "),
    };
    let mut text = format!("{}: {}\n", w.name, w.summary);
    let mut row = |key: &str, value: &str| {
        let _ = writeln!(text, "  {key:10} {}", wrapped(value, 13));
    };
    if !w.available {
        row("here", "not on this architecture: its kernel is x86-64 assembly");
    }
    row("Intel", &nodes(w.expected.intel));
    row("AMD", &nodes(w.expected.amd));
    row("expect", w.notes);
    row("--control", w.control);
    if let Some(size) = &w.size {
        row("--size", &size_text(size));
    }
    row("--repeats", &format!("{}; no limit by default", w.repeat));
    row("--seconds", "2 by default, without --repeats");
    row("iteration", w.iteration);
    text
}

fn size_text(size: &SizeParameter) -> String {
    let default = match size.default {
        DefaultSize::Fixed(n) => amount(n, size.unit),
        DefaultSize::BeyondCaches(n) => format!(
            "{}, or four times the largest cache if that is more, as far as memory allows",
            amount(n, size.unit)
        ),
    };
    format!("{}; {default} by default, at least {}", size.meaning, amount(size.least, size.unit))
}

fn amount(n: u64, unit: &str) -> String {
    match unit {
        "bytes" if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{}M", n >> 20),
        "bytes" if n >= 1 << 10 && n.is_multiple_of(1 << 10) => format!("{}K", n >> 10),
        _ => format!("{n} {unit}"),
    }
}

/// Breaks `text` at spaces so that lines indented by `indent` stay within 90 columns.
fn wrapped(text: &str, indent: usize) -> String {
    let mut column = indent;
    let mut out = String::new();
    for word in text.split(' ') {
        if column + word.len() > 90 && column > indent {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if column > indent {
            out.push(' ');
        }
        out += word;
        column += word.len() + 1;
    }
    out
}

/// The summary line.
fn sentence(s: &Summary) -> String {
    let control = if s.control { " (control)" } else { "" };
    let size = s.size.map(|n| format!(" size {n},")).unwrap_or_default();
    let rate = s.rate.map(|r| format!(" ({:.2} {})", r.value, r.unit)).unwrap_or_default();
    let repeats = if s.repeats < 100.0 && s.repeats.fract() != 0.0 {
        format!("{:.2}", s.repeats)
    } else {
        format!("{:.0}", s.repeats)
    };
    format!(
        "{}{control}:{size} {} iterations in {:.3} s ({:.3} s CPU), {:.4} ns per {}{rate}, \
         {repeats} repeats, checksum {:#018x}",
        s.name, s.iterations, s.seconds, s.cpu_seconds, s.ns_per_iteration, s.iteration, s.checksum
    )
}
