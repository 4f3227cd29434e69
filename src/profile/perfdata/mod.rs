//! perf.data files, in file and pipe mode.
//!
//! | file | concern |
//! |---|---|
//! | `header`, `features` | offsets in a file; its events and feature sections |
//! | `records`, `walk` | the sequence of records; several files, compressed records |
//! | `stat` | counts of `perf stat record` |
//!
//! The crate linux-perf-data is not used: it refuses files with unknown event types, allocates what
//! a damaged file claims, drops unknown bits of `perf_event_attr`, and discards records already read
//! if a file is truncated. Here every size is checked against the bytes that exist, records are read
//! one by one (128 MiB more for expanding compressed ones), and errors have offsets.

mod features;
mod header;
mod records;
mod stat;
#[cfg(test)]
mod tests;
mod walk;

use crate::event::Event;
use crate::input::Input;
use crate::record::Scan;
use crate::recording::{About, Raw, Recording, Stream};
use features::number;
use header::Header;
use records::{Records, take_feature, user};
use std::fmt;
use std::path::{Path, PathBuf};
use tma::files::name;
use tma::{Error, Result};
use walk::{Files, Part};

pub use stat::{Round, Stat, StatCount, StatEvent, holds_counts, stat};

/// Whether a file begins as perf.data does, so that [`open`] can report more.
pub fn recognise(start: &[u8]) -> bool {
    [b"PERFILE2", b"2ELIFREP", b"PERFFILE"].iter().any(|magic| start.starts_with(*magic))
}

/// Reads a whole perf.data file.
///
/// # Errors
/// It cannot be read, is no perf.data, or is damaged before its first sample.
pub fn read(path: &Path) -> Result<Recording> {
    open(path, true)?.whole()
}

/// Opens a perf.data file; without `chains`, call chains are left out.
pub fn open(path: &Path, chains: bool) -> Result<Stream> {
    let source = path.display().to_string();
    if path.is_dir() {
        return folder(path, chains);
    }
    let input = Input::open(path).map_err(|e| tma::error::unreadable(path, &e))?;
    match folder_of(path).filter(|_| Header::read(&input).is_ok_and(|h| h.has(number::DIR_FORMAT)))
    {
        // The samples are in the other files of its folder.
        Some(around) => folder(&around, chains),
        None => stream(input, Vec::new(), &source, chains),
    }
}

/// The folder that a file `data` is in, if it is one of several.
fn folder_of(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    (path.file_name()? == "data" && folder.join("data.0").is_file()).then(|| folder.to_owned())
}

/// Opens a folder of `perf record --threads`: `data` has the header and what perf wrote itself, `data.0`, `data.1`,
/// … what each of its threads read from ring buffers.
fn folder(path: &Path, chains: bool) -> Result<Stream> {
    let open = |name: &str| {
        let path = path.join(name);
        Input::open(&path).map_err(|e| {
            tma::error::unreadable(&path, &e)
                .hint("a folder of `perf record --threads` has the files data, data.0, data.1, …")
        })
    };
    let main = open("data")?;
    let mut further = Vec::new();
    for number in 0.. {
        let name = format!("data.{number}");
        if path.join(&name).symlink_metadata().is_err() {
            break;
        }
        let input = open(&name)?;
        further.push(Part { range: 0..input.length(), input, name });
    }
    stream(main, further, &path.display().to_string(), chains)
}

/// Reads a perf.data file that is already in memory; `source` names it in messages.
pub fn parse(bytes: &[u8], source: &str) -> Result<Recording> {
    stream(Input::of(bytes), Vec::new(), source, true)?.whole()
}

/// Reads a file, and `further` ones that have only records.
fn stream(input: Input, further: Vec<Part>, source: &str, chains: bool) -> Result<Stream> {
    let failed = |why: &dyn fmt::Display| {
        Error::failed(format!("cannot read {} as a perf.data file", name(Path::new(source))))
            .because(why)
            .hint("see whether `perf report --header-only` reads it, or record again")
    };
    let header = Header::read(&input).map_err(|why| failed(&why))?;
    let range = header.records.clone();
    let is_part = header.has(number::DIR_FORMAT) && further.is_empty();
    let Header { mut events, mut features, mut notes, .. } = header;
    let is_stream = events.is_empty();
    if is_stream {
        events = records::events(Records::new(&input, range.clone()), &mut features);
    }
    if events.is_empty() {
        return Err(failed(&"it has no description of the recorded events"));
    }
    events.iter_mut().for_each(|event| event.format.leave_chains = !chains);
    let mut scan = Scan::new(&events);
    let parts = std::iter::once(Part { input, range, name: "the file".into() }).chain(further);
    let (parts, source) = (parts.collect(), source.to_owned());
    let mut files = Files { parts, damage: Vec::new(), source };
    let mut has_trace = false;
    files.damage =
        files.walk(&mut |record, otherwise| scan.take(record, otherwise), &mut |record| {
            has_trace |= record.kind == user::AUXTRACE;
            if !is_stream {
                take_feature(record, &mut features);
            }
        });
    for (part, damage) in files.parts.iter().zip(&files.damage) {
        let Some(damage) = damage else { continue };
        if scan.samples.iter().all(|samples| *samples == 0) {
            return Err(failed(&format_args!("it is damaged before the first sample: {damage}")));
        }
        let (name, unread) = (&part.name, part.range.end - damage.at);
        notes.push(format!(
            "{name} is damaged: {damage}; the {unread} bytes from there on are not read"
        ));
    }
    if has_trace {
        notes.push(
            "its hardware trace (Intel PT, CoreSight) is not decoded: `perf inject --itrace=i100us -i FILE -o SAMPLES` \
             makes samples of it"
                .into(),
        );
    } else if scan.samples.iter().all(|samples| *samples == 0) {
        notes.push(nothing_sampled(&events, is_part));
    }
    let about = About {
        source: files.source.clone(),
        events,
        counted: Vec::new(),
        build_ids: features.build_ids,
        architecture: features.architecture,
        kernel: features.kernel,
        boot: None,
        processor: features.processor,
        cpuid: features.cpuid,
        host: features.host,
        command: features.command,
        lost: scan.lost,
        samples: scan.samples.clone(),
        notes,
    };
    let (decoder, bounds) = scan.finish();
    Ok(Stream { about, records: Box::new(Raw { replay: files, decoder, bounds }) })
}

/// Why a recording without samples may have none.
fn nothing_sampled(events: &[Event], is_part: bool) -> String {
    if is_part {
        return "`perf record --threads` wrote this file, and its samples into data.0, data.1, … beside \
                it: copy the whole folder"
            .into();
    }
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    format!(
        "no sample of {} was recorded: the run was too short, or it did not happen",
        names.join(", ")
    )
}
