//! Recorded counts: the output of `perf stat`, toplev, CSV of one's own, and sessions.
//!
//! | file | concern |
//! |---|---|
//! | `recording` | [`Recording`]: counts as they were written, with their lines, or why a line is skipped |
//! | `builder` | rows into blocks: one per interval, scope and run |
//! | `perf_csv`, `perf_json`, `toplev`, `plain` | one line of each format |
//! | `decimal_commas` | a line of perf whose numbers have the separator in them |
//! | `reader`, `mistaken` | the format of a file, from its lines to blocks; files that are given by mistake |
//! | `event_name`, `names` | event names as written → events of a table; tables that a recording fits |
//! | `groups` | which rows were counted together |
//! | `sessions`, `import` | a session, perf.data or recording and a table → [`Imported`] |
//! | `aggregate` | sums over CPUs and intervals |
//!
//! Lines that cannot be parsed are listed, never dropped silently. Recorded values are scaled for
//! multiplexing already and are never scaled again.
//!
//! ```
//! use profile::counts::{self, Options};
//! use tma::quantity::Missing;
//! use tma::tables::Table;
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("stat.csv");
//! // perf stat -x, writes value, unit, event, running time, percentage of the time it ran.
//! let lines = [
//!     "1000000,,ls_not_halted_cyc,250000000,25.00,,",
//!     "<not counted>,,ex_ret_instr,0,0.00,,",
//! ];
//! std::fs::write(&file, lines.join("\n"))?;
//!
//! let table = Table::parse(&std::fs::read_to_string("../../events/amd/zen4.toml")?, "zen4.toml")?;
//! let imported = counts::counts(&counts::read(&[file])?, &table, Options::default())?;
//! // One group, events in the order of the file. perf has scaled the value already.
//! let group = &imported.counts[0].groups[0];
//! assert_eq!((group.total(0), group.running_share()), (Ok(1e6), Some(0.25)));
//! assert!(matches!(group.total(1), Err(Missing::NotCounted(_))), "not a count of 0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aggregate;
mod builder;
mod decimal_commas;
mod event_name;
mod groups;
mod import;
mod mistaken;
pub mod names;
mod perf_csv;
mod perf_json;
mod plain;
mod reader;
mod recording;
mod sessions;
mod toplev;

pub use aggregate::{Over, aggregate};
pub use import::{Options, counts};
pub use names::{Match, Names, SoftwareKind, TableMatch, best_tables, resolve};
pub use reader::{folder_error, read};
pub use recording::{
    Block, Count, Format, Metric, NameId, Recording, Row, SKIPPED_KEPT, Scope, ScopeKind, Skipped,
    Source, Unparsed,
};
pub use sessions::{Imported, Software, UnknownEvent};
