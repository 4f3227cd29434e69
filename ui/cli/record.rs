//! `tdtool record`: counts and samples of a live measurement, in a session file.

use super::measure::{
    MEASUREMENT, MeasureArgs, note_blocked, note_interrupted, note_unused, status, usage,
};
use super::options::{Global, Invalid};
use super::progress::Clock;
use crate::message::{self, note};
use crate::{config, terminal};
use clap::Args;
use engine::record::{Note, SampleAsk, Sampled, record};
use engine::topdown::{LiveAsk, Update};
use pmu::perf::Rate;
use pmu::sampling::CallChains;
use report::render::report::{Style, render};
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tma::Result;
use tma::shell::quoted;
use tma::text::several;

const SAMPLING: &str = "Sampling";

#[derive(Args)]
pub struct RecordArgs {
    /// Command to run and measure
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub measure: MeasureArgs,
    #[command(flatten)]
    pub sample: SampleArgs,
    /// Session file to write [default: tdtool-DATE.tds, a new one]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Report nothing but what went wrong, and the name of a file without -o
    #[arg(short, long)]
    pub quiet: bool,
    /// Write the counts every MS milliseconds; a crash loses no more than that
    #[arg(short = 'I', long, value_name = "MS", default_value = "1000", value_parser = clap::value_parser!(u64).range(10..), help_heading = MEASUREMENT)]
    pub interval: u64,
}

#[derive(Args)]
pub struct SampleArgs {
    /// Samples per second; the default avoids lockstep with timers
    #[arg(short = 'F', long, value_name = "HZ", default_value = "999", conflicts_with = "period", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = SAMPLING)]
    pub frequency: u64,
    /// Sample every N events instead
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(16..), help_heading = SAMPLING)]
    pub period: Option<u64>,
    /// Event to sample: perf name with modifiers, table name, or r01c2; repeatable
    #[arg(short, long, value_name = "EVENT", help_heading = SAMPLING)]
    pub event: Vec<String>,
    /// Sample the event that locates NODE, else cycles, else cpu-clock; repeatable
    #[arg(long, value_name = "NODE", help_heading = SAMPLING)]
    pub node: Vec<String>,
    /// Record the last branches before each sample (LBR), of user mode
    #[arg(short, long, help_heading = SAMPLING)]
    pub branches: bool,
    /// Sample loads that take at least N cycles, with address, origin and latency
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "0", help_heading = SAMPLING)]
    pub loads: Option<u64>,
    /// Read the counts of level 1 at each sample, for a tree per function
    #[arg(long, conflicts_with_all = ["branches", "loads"], help_heading = SAMPLING)]
    pub per_function: bool,
    /// Record callers: fp (frame pointers), lbr, dwarf or dwarf,BYTES (unwind tables)
    #[arg(short = 'g', long, value_name = "HOW", num_args = 0..=1, default_missing_value = "fp", value_parser = call_chains, help_heading = SAMPLING)]
    pub call_graph: Option<CallChains>,
    /// Record user-mode registers
    #[arg(long, help_heading = SAMPLING)]
    pub registers: bool,
    /// Ring buffer size per CPU; a larger one loses fewer samples
    #[arg(long, value_name = "KIB", default_value = "512", value_parser = clap::value_parser!(u64).range(4..=1_048_576), help_heading = SAMPLING)]
    pub buffer: u64,
    /// Count without sampling
    #[arg(long, conflicts_with_all = ["event", "node", "call_graph", "registers", "branches", "loads"], help_heading = SAMPLING)]
    pub no_samples: bool,
}

impl SampleArgs {
    /// Refuses contradictory options.
    fn check(&self) -> Result<()> {
        if self.branches && self.call_graph == Some(CallChains::Branches) {
            return Err(usage(
                "branch records hold either branches or callers",
                "--branches, or --call-graph lbr",
            ));
        }
        Ok(())
    }

    fn ask(&self) -> Option<SampleAsk> {
        (!self.no_samples).then(|| SampleAsk {
            frequency: self.frequency,
            events: self.event.clone(),
            nodes: self.node.clone(),
            beside: Vec::new(),
            locate: false,
            per_function: self.per_function,
            call_chains: self.call_graph.unwrap_or_default(),
            registers: self.registers,
            branches: self.branches,
            loads: self.loads,
            period: self.period,
            ring: usize::try_from(self.buffer).unwrap_or(512) << 10,
            programs: config::kept_programs(),
        })
    }
}

/// `fp`, `lbr`, `dwarf` or `dwarf,BYTES`, as perf has them.
fn call_chains(text: &str) -> std::result::Result<CallChains, Invalid> {
    let size = match text.split_once(',') {
        None if text == "fp" => return Ok(CallChains::FramePointers),
        None if text == "lbr" => return Ok(CallChains::Branches),
        None if text == "dwarf" => return Ok(CallChains::Stacks(CallChains::USUAL)),
        Some(("dwarf", size)) => size,
        _ => return Err(Invalid::CallChains),
    };
    let largest = CallChains::LARGEST;
    match size.parse::<u16>() {
        // The kernel copies whole words.
        Ok(bytes) if (8..=largest).contains(&bytes) => Ok(CallChains::Stacks(bytes & !7)),
        _ => Err(Invalid::Stack(largest)),
    }
}

impl RecordArgs {
    /// Refuses contradictory options.
    pub fn check(&self) -> Result<()> {
        self.measure.check()?;
        self.sample.check()?;
        if self.measure.targets() == 0 && self.command.is_empty() {
            return Err(usage("nothing to record", "`tdtool record -- COMMAND`, or -p PID, -a"));
        }
        Ok(())
    }
}

pub fn run(global: &Global, args: RecordArgs) -> Result<ExitCode> {
    if args.quiet {
        terminal::be_quiet();
    }
    let settings = global.settings()?;
    let ask = LiveAsk {
        interval: Some(Duration::from_millis(args.interval)),
        ..args.measure.live(&settings, &args.command, pmu::Stdout::Ours)?
    };
    let sample = args.sample.ask();
    let output = args.output.clone().unwrap_or_else(|| unused(Path::new(""), &tma::text::now()));
    let mut is_noted = false;
    let on_update = &mut |update| {
        if let Update::Interrupted(_) = update {
            let what = "interrupted; the session holds the measurement so far";
            note_interrupted(&mut is_noted, what);
        }
    };
    let is_seen = !args.command.is_empty() && std::io::stdout().is_terminal();
    let clock = Clock::start("recording", ask.duration, is_seen);
    let recorded =
        record(settings.machine(), settings.library, &ask, sample.as_ref(), &output, on_update);
    drop(clock);
    let recorded = recorded?;
    let outcome = recorded.outcome;
    ask.core.warning().iter().for_each(|text| note(text));
    note_blocked(&outcome);
    note_unused(&args.measure, &outcome.report);
    // A missing PMU is reported once.
    let says_no_pmu = outcome.blocked.as_ref().is_some_and(|found| found.no_pmu);
    let is_new = |note: &&Note| !says_no_pmu || **note != Note::NoPmu;
    recorded.notes.iter().filter(is_new).for_each(|new| note(&new.to_string()));
    recorded.losses.iter().for_each(|text| message::always(text, None));
    if let Some(sampled) = &recorded.sampled {
        note_sampled(sampled);
    }
    match recorded.failed {
        None => {
            let (file, shown) = (output.display(), quoted(&[&output]));
            let place = format!("the session is in {file}; `tdtool report {shown}` shows it");
            match args.output {
                Some(_) => note(&place),
                None => message::always(&place, None),
            }
            Ok(status(&outcome))
        }
        Some(error) => {
            // The session lacks the report, so it is printed, beside the command's own output.
            let style = Style { ascii: global.ascii, ..Style::default() };
            message::plain(&tma::text::lines(&render(&outcome.report, &style)));
            Err(error)
        }
    }
}

/// The first name of a session of this time, in `folder`, that no file has.
fn unused(folder: &Path, now: &str) -> PathBuf {
    // To the minute, without colons: they are special to `scp` and other systems' files.
    let minute: String = now.chars().take("2026-11-29T07:42".len()).filter(|c| *c != ':').collect();
    let name = |number: u32| match number {
        1 => folder.join(format!("tdtool-{minute}.tds")),
        _ => folder.join(format!("tdtool-{minute}-{number}.tds")),
    };
    // A name in use is not replaced, whatever it is.
    (1..).map(name).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| name(1))
}

/// Notes how many samples were taken and lost, and what that cost.
fn note_sampled(sampled: &Sampled) {
    let Sampled { events, rate, summary } = sampled;
    let rate = match rate {
        Rate::Frequency(hertz) => format!("{hertz} per second"),
        Rate::Period(period) => format!("one every {period} events"),
    };
    let (events, samples) = (events.join(", "), several(summary.samples, "sample"));
    let kib = summary.bytes as f64 / 1024.0;
    note(&format!("{samples} of {events}, {rate}; {kib:.0} KiB of records"));
    if summary.lost > 0 {
        let what = format!("{} lost: a ring buffer was full", several(summary.lost, "record"));
        message::always(&what, Some("a larger --buffer or a lower -F"));
    }
    if summary.throttled > 0 {
        let times = several(summary.throttled, "time");
        let what = format!("the kernel throttled sampling {times}: too many per second");
        message::always(&what, Some("a lower -F"));
    }
    if let Some(share) = summary.overhead() {
        let (cpu, wall) = (summary.cpu.as_secs_f64() * 1e3, summary.wall.as_secs_f64());
        note(&format!(
            "recording took {cpu:.0} ms of CPU time in {wall:.1} s ({:.2} % of a CPU), without \
             interrupts in the kernel",
            share * 100.0
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::unused;

    #[test]
    fn a_session_without_a_name_gets_one_that_no_file_has() {
        let folder = tempfile::tempdir().unwrap();
        let now = "2026-11-29T07:42:05Z";
        for name in ["tdtool-2026-11-29T0742.tds", "tdtool-2026-11-29T0742-2.tds"] {
            assert_eq!(unused(folder.path(), now), folder.path().join(name));
            std::fs::write(folder.path().join(name), "").unwrap();
        }
    }
}
