//! perf.data files, in file and pipe mode.
//!
//! | file | concern |
//! |---|---|
//! | `attribute` | events: `perf_event_attr` |
//! | `features` | feature sections: host, kernel, event names, build-ids |
//! | `header` | the file header: offsets of events, features and records |
//! | `tracing` | names of tracepoints |
//! | `records` | the sequence of records; those of perf itself |
//! | `compressed` | compressed records |
//! | `broken` | what is wrong with a file |
//! | `stat` | counts of `perf stat record` |
//! | `read` | a whole file |
//!
//! The crate linux-perf-data is not used: it refuses files with unknown event types, allocates what
//! a damaged file claims, drops unknown bits of `perf_event_attr`, and discards records already read
//! if a file is truncated. Here every size is checked against the bytes that exist, records are read
//! one by one (128 MiB more for expanding compressed ones), and errors have offsets.

mod attribute;
mod broken;
mod compressed;
mod features;
mod header;
mod read;
mod records;
mod stat;
#[cfg(test)]
mod tests;
mod tracing;
mod walk;

pub use read::{open, parse, read, recognise};
pub use stat::{Round, Stat, StatCount, StatEvent, holds_counts, stat};
