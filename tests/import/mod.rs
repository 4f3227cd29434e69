//! Recorded counts as people have them, read back.
//!
//! The `perf-*` fixtures are what perf 6.1 printed on a virtual machine (software events count
//! there, hardware events do not); `zen4-*` come from KeithJH/kinematics-demo (MIT).

mod damage;
mod events;
mod groups;
mod other_formats;
mod perf_output;
mod zen4;

use crate::support::files::fixture;
use profile::counts::{Imported, Options, Recording, counts, read};
use std::io::Write as _;
use std::sync::Arc;
use tma::Result;
use tma::counts::Counts;
use tma::quantity::Missing;
use tma::tables::Table;

/// A recording of tests/fixtures/import.
pub fn recording(name: &str) -> Recording {
    read(&[fixture(&format!("import/{name}"))]).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// A recording of this text.
pub fn of_text(text: &str) -> Result<Recording> {
    of_bytes(text.as_bytes())
}

/// A recording of these bytes.
pub fn of_bytes(bytes: &[u8]) -> Result<Recording> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    read(&[file.path()])
}

/// A table of the library.
pub fn table(name: &str) -> Arc<Table> {
    ::events::library().load(name).unwrap()
}

/// The text, imported for a processor.
pub fn import(text: &str, uarch: &str) -> Imported {
    counts(&of_text(text).unwrap(), &table(uarch), Options::default()).unwrap()
}

/// The count of an event, in the first group that has it.
pub fn total(table: &Table, counts: &Counts, event: &str) -> std::result::Result<f64, Missing> {
    let id = table.event(event).unwrap_or_else(|| panic!("no event {event}"));
    for group in &counts.groups {
        if let Some(at) = group.events().position(|e| e == id) {
            return group.total(at);
        }
    }
    Err(Missing::NotMeasured("not in the import".into()))
}
