//! perf.data files, in file and pipe mode.
//!
//! | file | concern |
//! |---|---|
//! | `attribute` | events: `perf_event_attr` |
//! | `features` | feature sections: host, kernel, event names, build-ids |
//! | `header` | offsets of all of that |
//! | `records` | records one after the other; those of perf itself |
//! | `compressed` | compressed records |
//! | `read` | a whole file |
//!
//! Read by code of our own rather than by the crate linux-perf-data, which stood here before: that
//! refuses files with an event type it does not know, allocates what a damaged file claims, drops
//! bits of `perf_event_attr` it does not know, and gives up records already read where a file
//! breaks off. Every size is checked against the bytes that are there; memory is bounded by the
//! size of the file; errors give the offset.

mod attribute;
mod compressed;
mod features;
mod header;
mod read;
mod records;
#[cfg(test)]
mod tests;

pub use read::{parse, read, read_with, recognise};
