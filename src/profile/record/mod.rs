//! The records of a ring buffer or a file.
//!
//! | file | concern |
//! |---|---|
//! | `kinds` | [`Record`]: what a record says |
//! | `ids` | the event of a record, and the ids at the end of records other than samples |
//! | `decode` | the body of a record, by its kind |
//! | `order` | order of time, without all records in memory |
//! | `pass` | passes over a recording: times and losses first, then decoded records in order of time |
//!
//! One decoder serves live ring buffers, sessions and perf.data files.

mod decode;
mod ids;
mod kinds;
mod order;
mod pass;
#[cfg(test)]
mod tests;

pub use decode::{Decoder, decode};
pub use kinds::{Mapping, Record};
pub use order::Bounds;
pub use pass::{Pass, Scan};
