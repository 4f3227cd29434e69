//! The records of a ring buffer or a file.
//!
//! | file | concern |
//! |---|---|
//! | `kinds` | [`Record`]: what a record says |
//! | `ids` | the event of a record, and the ids at the end of records other than samples |
//! | `decode` | the body of a record, by its kind |
//! | `collect` | all records of a recording: decoded, counted, in order of time |
//!
//! One decoder serves live ring buffers, sessions and perf.data files.

mod collect;
mod decode;
mod ids;
mod kinds;
#[cfg(test)]
mod tests;

pub use collect::Collector;
pub use decode::{Decoder, decode};
pub use kinds::{Mapping, Record};
