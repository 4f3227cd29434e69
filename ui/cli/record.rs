//! `tdtool record`: measure and sample, and keep both in a session file.

use crate::cli::Global;
use crate::commands::measure::{MeasureArgs, status, tell_blocked, usage};
use clap::Args;
use engine::record::{SampleAsk, Sampled, record};
use engine::render::report::text::{Style, render};
use engine::topdown::{LiveAsk, Update};
use pmu::machine::Machine;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tma::Result;

#[derive(Args)]
pub struct RecordArgs {
    /// The command to run and measure
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub measure: MeasureArgs,
    #[command(flatten)]
    pub sample: SampleArgs,
    /// The session file
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Write what was counted every MS milliseconds: a crash loses no more than that
    #[arg(short = 'I', long, value_name = "MS", default_value = "1000", value_parser = clap::value_parser!(u64).range(10..), help_heading = "How to measure")]
    pub interval: u64,
}

#[derive(Args)]
pub struct SampleArgs {
    /// Samples a second; 999 and not 1000, so as not to be in step with timers
    #[arg(short = 'F', long, value_name = "HZ", default_value = "999", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "What to sample")]
    pub frequency: u64,
    /// Sample this event (perf's name with its modifiers, the table's, or r01c2); repeatable
    #[arg(short, long, value_name = "EVENT", help_heading = "What to sample")]
    pub event: Vec<String>,
    /// Sample the event that locates this node, else cycles, else cpu-clock; repeatable
    #[arg(long, value_name = "NODE", help_heading = "What to sample")]
    pub node: Vec<String>,
    /// Record call chains
    #[arg(short = 'g', long, help_heading = "What to sample")]
    pub call_graph: bool,
    /// Record user registers
    #[arg(long, help_heading = "What to sample")]
    pub registers: bool,
    /// Size of the ring of each CPU; a larger one loses fewer samples
    #[arg(long, value_name = "KIB", default_value = "512", value_parser = clap::value_parser!(u64).range(4..=1_048_576), help_heading = "What to sample")]
    pub ring: u64,
    /// Count only
    #[arg(long, conflicts_with_all = ["event", "node", "call_graph", "registers"], help_heading = "What to sample")]
    pub no_samples: bool,
}

impl SampleArgs {
    fn ask(&self) -> Option<SampleAsk> {
        (!self.no_samples).then(|| SampleAsk {
            frequency: self.frequency,
            events: self.event.clone(),
            nodes: self.node.clone(),
            call_chains: self.call_graph,
            registers: self.registers,
            ring: usize::try_from(self.ring).unwrap_or(512) << 10,
        })
    }
}

#[allow(clippy::print_stderr)]
pub fn run(global: &Global, args: RecordArgs) -> Result<ExitCode> {
    args.measure.check()?;
    if args.measure.targets() == 0 && args.command.is_empty() {
        return Err(usage("nothing to record", "tdtool record -o FILE -- COMMAND, or -p PID, -a"));
    }
    let library = global.library()?;
    let machine = Machine::detect();
    let ask = LiveAsk {
        interval: Some(Duration::from_millis(args.interval)),
        ..args.measure.live(global, &args.command, false)?
    };
    let sample = args.sample.ask();
    let told = &mut |update| {
        if let Update::Interrupted(_) = update {
            eprintln!("note:  interrupted; what was measured is kept");
        }
    };
    let recorded = record(&machine, &library, &ask, sample.as_ref(), &args.output, told)?;
    let outcome = recorded.outcome;
    tell_blocked(&outcome);
    for note in &recorded.notes {
        eprintln!("note:  {note}");
    }
    if let Some(sampled) = &recorded.sampled {
        tell_sampled(sampled);
    }
    let file = args.output.display();
    match recorded.failed {
        None => {
            eprintln!("note:  the session is in {file}; `tdtool report {file}` shows it");
            Ok(ExitCode::from(status(&outcome)))
        }
        Some(error) => {
            // The session lacks it, so it is shown here.
            let style = Style { ascii: global.ascii, ..Style::default() };
            super::print(&render(&outcome.report, &style))?;
            Err(error)
        }
    }
}

/// How many samples there are, how many are not, and what they cost.
#[allow(clippy::print_stderr)]
fn tell_sampled(sampled: &Sampled) {
    let Sampled { events, frequency, summary } = sampled;
    let (events, samples) = (events.join(", "), summary.samples);
    let kib = summary.bytes as f64 / 1024.0;
    eprintln!(
        "note:  {samples} samples of {events}, {frequency} a second; {kib:.0} KiB of records"
    );
    if summary.lost > 0 {
        let lost = summary.lost;
        eprintln!("note:  {lost} records lost: a ring was full; try a larger --ring or a lower -F");
    }
    if summary.throttled > 0 {
        let times = summary.throttled;
        eprintln!("note:  the kernel held samples back {times} times: too many a second");
    }
    if let Some(share) = summary.overhead() {
        let (cpu, wall) = (summary.cpu.as_secs_f64() * 1e3, summary.wall.as_secs_f64());
        eprintln!(
            "note:  recording took {cpu:.0} ms of CPU time in {wall:.1} s ({:.2} % of a CPU), \
             interrupts in the kernel aside",
            share * 100.0
        );
    }
}
