//! `tdtool record --every`: continuous profiling, in windows that are kept in a ring.

use super::arguments::RecordArgs;
use crate::cli::measure::exit_code;
use crate::cli::options::Global;
use crate::message::{self, note};
use engine::record::SampleAsk;
use engine::topdown::LiveAsk;
use engine::windows::{Ended, Event, WindowsAsk, windows};
use pmu::{Stdout, Target};
use std::collections::BTreeMap;
use std::process::ExitCode;
use tma::text::several;
use tma::{Error, Result};

/// Samples a second of each CPU unless -F is given.
const FREQUENCY: u64 = 99;

/// Records windows, if the options ask for them.
pub fn run(global: &Global, args: &RecordArgs) -> Result<ExitCode> {
    let settings = global.settings()?;
    let live = args.measure.live(&settings, &args.command, Stdout::Ours)?;
    let ask = ask(args, live)?;
    let (every, length) = (ask.every.as_secs_f64(), ask.length.as_secs_f64());
    note(&format!("a window of {length} s every {every} s in {}", ask.ring.display()));
    let budget = 100.0 * ask.budget;
    let told = &mut |event: Event| match event {
        Event::Thinned { spent, wall } => {
            let (spent, wall) = (1e3 * spent.as_secs_f64(), wall.as_secs_f64());
            let what = format!(
                "windows are skipped: recording took {spent:.0} ms of CPU time in {wall:.1} s, more than {budget} % \
                 of a core"
            );
            message::always(&what, Some("a longer --every, a shorter --for, or another --budget"));
        }
        Event::Lost(lost) => {
            let what = format!("no window: {lost}; recording goes on");
            message::always(&what, None);
        }
    };
    let ended = windows(settings.machine(), settings.library, &ask, told)?;
    note(&summary(&ended));
    Ok(ended.exit.map_or(ExitCode::SUCCESS, |exit| exit_code(exit.code())))
}

fn ask(args: &RecordArgs, mut live: LiveAsk) -> Result<WindowsAsk> {
    let window = &args.window;
    let given = || Some((window.every?, window.length?, window.ring.clone()?, window.max_bytes?));
    let (every, length, ring, most) = given().ok_or_else(|| {
        Error::usage("windows need --every, --for, --ring and --max-bytes")
            .hint("--every 5m --for 10s --ring DIR --max-bytes 100M")
    })?;
    if args.measure.targets() == 0 && args.command.is_empty() {
        live.target = Target::System;
    }
    let sample = args.sample.ask();
    let frequency = args.sample.frequency.unwrap_or(FREQUENCY);
    let sample = sample.map(|sample| SampleAsk { frequency, programs: None, ..sample });
    let labels: BTreeMap<String, String> = window.label.iter().cloned().collect();
    Ok(WindowsAsk { live, sample, every, length, ring, most, budget: window.budget, labels })
}

fn summary(ended: &Ended) -> String {
    let (spent, wall) = (ended.spent.as_secs_f64(), ended.wall.as_secs_f64());
    let windows = several(ended.written, "window");
    format!(
        "{windows} written, {} skipped, {} lost; recording took {spent:.2} s of CPU time in {wall:.0} s ({:.2} % of a \
         core)",
        ended.skipped,
        ended.lost,
        100.0 * spent / wall.max(f64::MIN_POSITIVE)
    )
}
