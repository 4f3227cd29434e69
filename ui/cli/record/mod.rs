//! `tdtool record`: counts and samples of a live measurement, in a session file.
//!
//! | file | concern |
//! |---|---|
//! | `arguments`, `window_options` | its options |
//! | `windows` | `--every`: windows in a ring |

mod arguments;
mod window_options;
mod windows;

pub use arguments::RecordArgs;

use super::measure::{note_blocked, note_interrupted, note_unused, status};
use super::options::Global;
use super::progress::Clock;
use crate::message::{self, note};
use crate::terminal;
use engine::record::{Note, Sampled, record};
use engine::topdown::{LiveAsk, Update};
use pmu::perf::Rate;
use report::render::report::{Style, render};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tma::Result;
use tma::shell::quoted;
use tma::text::several;

pub fn run(global: &Global, args: RecordArgs) -> Result<ExitCode> {
    if args.quiet {
        terminal::be_quiet();
    }
    if args.window.every.is_some() {
        return windows::run(global, &args);
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
