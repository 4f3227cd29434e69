//! `tdtool microbench --calibrate`: latencies of common forms, stored for `tdtool deps`.

use super::arguments::{Format, MicrobenchArgs};
use crate::cli::output::print;
use crate::cli::progress::until;
use crate::message;
use crate::settings::Settings;
use bench::microbench::{self, CalibrationSummary};
use isa::latency::Calibration;
use pmu::perf::Signals;
use report::render::json;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Measures until all forms are done, the time limit is over, or a signal comes.
pub fn calibrate(settings: &Settings, args: &MicrobenchArgs) -> Result<ExitCode> {
    let core = settings.core()?;
    core.warning().iter().for_each(|warning| message::note(warning));
    let mut bench = args.effort.bench(core);
    let path = match &args.output {
        Some(path) => path.clone(),
        None => Calibration::path(cache(settings)?, bench.core.name()),
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
    print(&if json { json::pretty(&ended)? } else { text(&ended, &path) })?;
    let Some(signal) = interrupted else { return Ok(ExitCode::SUCCESS) };
    let what = format!("interrupted; results so far are in {}", path.display());
    message::print("note", &what, None, Some("rerun to resume"));
    Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)))
}

fn text(ended: &CalibrationSummary, path: &Path) -> String {
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
fn cache(settings: &Settings) -> Result<&PathBuf> {
    settings.cache.as_ref().ok_or_else(|| {
        Error::failed("there is no cache directory")
            .because("neither XDG_CACHE_HOME nor HOME is set")
            .hint("name a file with --output")
    })
}
