//! Measures, and writes counts and samples to the session file as they arrive.

use super::chooser::{Note, words};
use super::kept_programs::{CountsWriter, SharedFile, keep};
use super::sample::{self, Chosen, SampleAsk};
use crate::topdown::live::{Beside, CountedCore, LiveAsk, Outcome, Update, measure, prepare};
use pmu::Target;
use pmu::machine::{Finding, Machine};
use pmu::perf::{NoHooks, Rate, RunHooks};
use pmu::records::format::SampleFormat;
use pmu::sampling::{Attached, Batch, Output, Plan, Sampler, Sink, Summary};
use profile::session::{
    BuildId, Chunk, CountedEvent, RecordBatch, SampledEvent, SampledEvents, SessionWriter,
    StoredTable,
};
use report::files::{check_output, is_stdout};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use tma::files::is_open_already;
use tma::tables::Library;
use tma::{Error, ErrorKind, Result};

/// A measurement written to a session.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The measurement's result.
    pub outcome: Outcome,
    /// The sampled event; `None` if nothing was sampled.
    pub sampled: Option<Sampled>,
    /// Notes on the sampling, and on a file that was there before.
    pub notes: Vec<Note>,
    /// Parts that the recording lacks, and why.
    pub losses: Vec<String>,
    /// Why the session is not complete, if it is not.
    pub failed: Option<Error>,
}

/// A sampled event.
#[derive(Debug, Clone)]
pub struct Sampled {
    /// The events, with their modifiers.
    pub events: Vec<String>,
    /// How often they were sampled, on each CPU.
    pub rate: Rate,
    /// Number of samples, losses and cost.
    pub summary: Summary,
}

/// Measures as [`crate::topdown::live()`] does and keeps everything in the session file `path`: the counts
/// of every interval as soon as it is over, samples at least every second, and the counts of the
/// whole run at the end. An existing file is renamed to `FILE.old`.
///
/// # Errors
/// As [`crate::topdown::live()`]; the file cannot be created; what `sample` asks for by name cannot be
/// sampled here. A file that cannot be written any more while the command runs ends the writing,
/// not the measurement: see [`Recorded::failed`].
pub fn record(
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
    sample: Option<&SampleAsk>,
    path: &Path,
    update: &mut dyn FnMut(Update),
) -> Result<Recorded> {
    let (cores, blocked) = prepare(machine, library, ask)?;
    let chosen = match sample {
        Some(sample) => sample::choose(machine, &cores, blocked.as_ref(), sample, ask.user_only)?,
        None => Chosen { plan: None, notes: Vec::new() },
    };
    if is_stdout(path) {
        return Err(Error::usage("a recording is a file, and is not written to standard output")
            .because("its end is written when the command has ended")
            .hint("`tdtool record -o FILE -- COMMAND`, then `tdtool report FILE`"));
    }
    check_output(path, &program(ask), "--output")?;
    let old = put_aside(path)?;
    let programs = sample.and_then(|sample| sample.programs.as_deref());
    let is_absent = match ask.target {
        Target::Process(id) | Target::Thread(id) => !Path::new(&format!("/proc/{id}")).exists(),
        _ => false,
    };
    let most = sample.map_or(u64::MAX, |sample| sample.most);
    let session = NewSession { path, most, programs, cores: &cores, blocked, chosen };
    let mut recorded = into(machine, library, ask, session, update);
    if let (Ok(recorded), Some(old)) = (&mut recorded, &old) {
        let (path, old) = (path.display(), old.display());
        let note = format!("the file that was {path} before is {old} now");
        recorded.notes.push(note.into());
    }
    if let Err(error) = &recorded {
        let never_ran = is_absent
            || matches!(error.kind(), ErrorKind::CommandNotFound | ErrorKind::CommandNotExecutable);
        // The session of what never ran is removed, and an old session gets its name back.
        if never_ran && path.is_file() && !is_open_already(path) {
            let _ = fs::remove_file(path);
        }
        if let Some(old) = old.filter(|_| !path.exists()) {
            let _ = fs::rename(old, path);
        }
    }
    recorded
}

/// The file of the command that is measured, if it is named by its path.
fn program(ask: &LiveAsk) -> Vec<PathBuf> {
    let program = ask.command.as_ref().and_then(|command| command.argv.first()).map(PathBuf::from);
    program.into_iter().filter(|program| program.components().count() > 1).collect()
}

/// Renames a file that is there already to `FILE.old`, as perf does.
fn put_aside(path: &Path) -> Result<Option<PathBuf>> {
    if !path.is_file() || is_open_already(path) {
        return Ok(None);
    }
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    let old = PathBuf::from(old);
    match fs::rename(path, &old) {
        Ok(()) => Ok(Some(old)),
        Err(e) => {
            let what = format!("cannot rename {} to {}", path.display(), old.display());
            Err(Error::failed(what).because(e).hint("choose another place with --output"))
        }
    }
}

/// A session to be recorded.
struct NewSession<'a> {
    path: &'a Path,
    /// Most bytes of records.
    most: u64,
    programs: Option<&'a Path>,
    cores: &'a [CountedCore],
    blocked: Option<Finding>,
    chosen: Chosen,
}

fn into(
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
    session: NewSession,
    update: &mut dyn FnMut(Update),
) -> Result<Recorded> {
    let NewSession { path, most, programs, cores, blocked, chosen } = session;
    let writer = begin(machine, library, ask, (path, most), cores).map_err(|not_begun| {
        // The file has nothing to report on yet.
        let is_own = path.is_file() && !is_open_already(path);
        let _ = is_own.then(|| fs::remove_file(path));
        // Nothing of it is saved, whatever was written.
        let known = match &not_begun {
            NotBegun::Unwritten(_) => None,
            NotBegun::Other(error) => error.remedy().map(str::to_owned),
        };
        let error = Error::from(not_begun);
        let why = error.cause().unwrap_or("it cannot be written").to_owned();
        let why = match ask.command {
            Some(_) => format!("{why}; the command was not started"),
            None => why,
        };
        let usual =
            "make room on the disk, or raise its limit (ulimit -f), or choose another place with --output";
        error.because(why).hint(known.unwrap_or_else(|| usual.to_owned()))
    })?;
    let mut counts = CountsWriter { file: writer.clone(), cores };
    let Chosen { plan, notes } = chosen;
    // Without a plan they say why nothing is sampled.
    let (notes, mut losses) =
        if plan.is_some() { (notes, vec![]) } else { (vec![], words(&notes)) };
    let sampled = plan.as_ref().map(names);
    let sink = plan.as_ref().map(|plan| sink(writer.clone(), plan, words(&notes)));
    let mut sampler = plan.zip(sink).map(|(plan, sink)| Sampler::new(machine, plan, sink));
    let companion: &mut dyn RunHooks = match &mut sampler {
        Some(sampler) => sampler,
        None => &mut NoHooks,
    };
    let beside = Beside { observer: &mut counts, companion, kernel: None };
    let outcome = measure(machine, cores, ask, blocked, update, beside)?;
    let summary = sampler.as_mut().map(Sampler::take_summary);
    let sampled = sampled.zip(summary).map(|((events, rate), summary)| {
        losses.extend(summary.notes.iter().cloned());
        Sampled { events, rate, summary }
    });
    end(&writer, &outcome, sampled.as_ref());
    let failed = writer.failed();
    // After the session, which needs the room more.
    let elsewhere = sampled.as_ref().map_or(&[][..], |sampled| &sampled.summary.elsewhere);
    losses.extend(programs.iter().flat_map(|folder| keep(folder, elsewhere)));
    // The measurement is still here: it goes to the caller together with the error.
    Ok(Recorded { outcome, sampled, notes, losses, failed })
}

/// Why a session was not begun.
pub(super) enum NotBegun {
    /// It was created, and what is known before anything runs cannot be written.
    Unwritten(Error),
    /// Any other reason.
    Other(Error),
}

impl From<NotBegun> for Error {
    fn from(not_begun: NotBegun) -> Self {
        match not_begun {
            NotBegun::Unwritten(error) | NotBegun::Other(error) => error,
        }
    }
}

/// Creates the session, which takes at most so many bytes of records, and writes what is known before anything runs.
pub(super) fn begin(
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
    (path, most): (&Path, u64),
    cores: &[CountedCore],
) -> std::result::Result<SharedFile, NotBegun> {
    let mut writer = SessionWriter::create(path).map_err(NotBegun::Other)?;
    let mut append = |chunk: Chunk| writer.append(&chunk).map_err(NotBegun::Unwritten);
    append(Chunk::Header(json!({
        "tool": env!("CARGO_PKG_VERSION"),
        "processor": machine.cpu.signature(),
        "command": ask.typed,
        "target": ask.target,
        "warning": ask.core.warning(),
        "identity": ask.core.identity.as_deref(),
        "fingerprint": ask.core.fingerprint.as_deref(),
        "interval_ms": ask.interval.map(|i| i.as_millis() as u64),
    })))?;
    append(Chunk::Machine(machine_info(machine)))?;
    for core in cores {
        let (text, _) = library.text(&core.table.name).map_err(NotBegun::Other)?;
        let table = StoredTable { name: core.table.name.clone(), text };
        append(Chunk::Table(table))?;
    }
    Ok(SharedFile::new(writer, most))
}

/// Kernel, architecture and host, by uname(2), and the processor.
fn machine_info(machine: &Machine) -> serde_json::Value {
    let uname = nix::sys::utsname::uname().ok();
    let text = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
    json!({
        "system": uname.as_ref().map(|u| text(u.sysname())),
        "host": uname.as_ref().map(|u| text(u.nodename())),
        "kernel": uname.as_ref().map(|u| text(u.release())),
        "boot": pmu::machine::boot_id(),
        "kernel_version": uname.as_ref().map(|u| text(u.version())),
        "architecture": uname.as_ref().map(|u| text(u.machine())),
        "processor": machine.cpu.name,
        "cpus": machine.topology.cpus.len(),
    })
}

/// Names of what a plan samples, and how often.
fn names(plan: &Plan) -> (Vec<String>, Rate) {
    let names = plan.events.iter().map(|e| e.full_name(plan.user_only)).collect();
    (names, plan.events.first().map_or(Rate::Frequency(0), |e| e.rate))
}

/// Writes what the sampler hands over, as chunks.
pub(super) fn sink(file: SharedFile, plan: &Plan, notes: Vec<String>) -> Sink {
    let (format, user_only) = (plan.format(), plan.user_only);
    Box::new(move |output| {
        let chunk = match output {
            Output::Events(attached, tracking_ids) => {
                let stored = |a: Attached| stored(a, user_only, format);
                Chunk::SampledEvents(SampledEvents {
                    events: attached.into_iter().map(stored).collect(),
                    tracking_ids,
                    clock: "monotonic".into(),
                    user_only,
                    notes: notes.clone(),
                })
            }
            Output::Records(Batch { cpu, records, samples, bytes }) => {
                Chunk::Records(RecordBatch { cpu, records, samples, bytes })
            }
        };
        file.append(&chunk);
    })
}

fn stored(attached: Attached, user_only: bool, format: SampleFormat) -> SampledEvent {
    let event = &attached.event;
    let (period, by_frequency) = match event.rate {
        Rate::Frequency(hertz) => (hertz, true),
        Rate::Period(events) => (events, false),
    };
    SampledEvent {
        name: event.full_name(user_only),
        kind: event.encoding.kind,
        config: event.encoding.config,
        config1: event.encoding.config1,
        config2: event.encoding.config2,
        precise: event.precise,
        period,
        by_frequency,
        format: event.extra.added_to(format),
        ids: attached.ids,
        counted: event
            .group
            .iter()
            .zip(attached.counted)
            .map(|(of, ids)| CountedEvent { name: of.name.clone(), ids })
            .collect(),
    }
}

/// Writes how it ended.
fn end(file: &SharedFile, outcome: &Outcome, sampled: Option<&Sampled>) {
    let mut end =
        json!({ "status": outcome.exit.map(|e| e.code()), "interrupted": outcome.interrupted });
    // Times and counts are not of the whole run then.
    end["notes"] = outcome.of_control.iter().cloned().collect();
    close(file, end, sampled.map(|sampled| &sampled.summary));
}

/// Writes the last chunks.
pub(super) fn close(file: &SharedFile, mut end: serde_json::Value, sampled: Option<&Summary>) {
    if let Some(summary) = sampled {
        let files = summary.files.iter().map(|f| BuildId::new(&f.path, &f.build_id));
        file.append(&Chunk::BuildIds(files.collect()));
        end["sampling"] = json!({
            "samples": summary.samples,
            "lost": summary.lost,
            "throttled": summary.throttled,
            "bytes": summary.bytes,
            "cpu_ms": summary.cpu.as_secs_f64() * 1e3,
            "wall_ms": summary.wall.as_secs_f64() * 1e3,
            "notes": summary.notes,
        });
    }
    file.append(&Chunk::End(end));
    file.finish();
}
