//! Blocks captured in running programs: what is captured is what the program has, by its own
//! account.

mod allocations;
mod asked;
mod attached;
mod attached_programs;
mod branches;
mod bursts;
mod captured;
mod child_windows;
mod counted_code;
pub mod counts;
mod ends;
mod interrupted;
mod killed;
mod large;
mod live_records;
mod loads;
mod many_branches;
pub mod programs;
mod progress;
mod refused;
mod refused_late;
mod restarts;
mod retries;
mod trips;
mod values;
mod windows;

use crate::support::files::text;
use object::{Object as _, ObjectSymbol as _};
use probe::capture::{
    Afterwards, Breakpoints, Entry, Limits, Place, Request, Snapshot, Stop, capture,
};
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};
use tma::Result;

/// Both ways to find entries.
pub const BOTH: [Breakpoints; 2] = [Breakpoints::Auto, Breakpoints::Int3];

/// The address (p_vaddr) of a symbol.
pub fn symbol(file: &Path, name: &str) -> u64 {
    let data = std::fs::read(file).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let mut all = file.symbols().chain(file.dynamic_symbols());
    all.find(|s| s.name() == Ok(name)).unwrap().address()
}

/// A request for the loop from symbol `loop_start` to `loop_end` of `image`, in a command.
pub fn request(image: &Path, command: &[&str]) -> Request {
    let region = symbol(image, "loop_start")..symbol(image, "loop_end");
    Request {
        command: pmu::Command {
            argv: command.iter().map(OsString::from).collect(),
            stdout: pmu::Stdout::Stderr,
            ..pmu::Command::default()
        },
        image: image.to_owned(),
        place: Place::Address(region.start),
        region: vec![region],
        entry: Entry::Auto,
        executions: 1,
        limits: Limits { stepping: Duration::from_secs(20), ..Limits::default() },
        breakpoints: Breakpoints::Auto,
        afterwards: Afterwards::Kill,
        stop: Stop::default(),
    }
}

/// The capture, which must not take long; `None`, with a message, where tracing is not permitted.
pub fn captured(request: &Request) -> Option<Result<Snapshot>> {
    let begin = Instant::now();
    let result = capture(request);
    assert!(begin.elapsed() < Duration::from_secs(60), "it took {:?}", begin.elapsed());
    if let Err(error) = &result
        && error.kind() == tma::error::ErrorKind::NotPossible
    {
        eprintln!("skipped: {error}");
        return None;
    }
    Some(result)
}

/// Eight bytes of a captured page.
pub fn word(snapshot: &Snapshot, address: u64) -> Option<u64> {
    let page = snapshot.pages.0.get(&(address & !4095))?;
    let at = (address & 4095) as usize;
    Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?))
}

/// The register with this name.
pub fn register(snapshot: &Snapshot, name: &str) -> u64 {
    let number = probe::capture::REGISTERS.iter().position(|r| *r == name).unwrap();
    snapshot.registers.0[number]
}

/// Numbers that a program wrote, one line each call: the words of line `number` from 0.
pub fn line(path: &str, number: usize) -> Vec<u64> {
    let content = std::fs::read_to_string(path).unwrap();
    let line = content.lines().nth(number).unwrap_or_else(|| panic!("{content}"));
    line.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap()).collect()
}

/// The region of a request.
pub fn region(request: &Request) -> Range<u64> {
    request.region[0].clone()
}

/// A path as text.
pub fn name(path: &Path) -> &str {
    text(path)
}
