//! How the kernel lays out the records that it writes into rings and perf into files.
//!
//! | file | concern |
//! |---|---|
//! | [`kind`] | kinds of records |
//! | [`raw`] | headers: from one record to the next |
//! | [`format`](mod@format) | how the samples of an event are laid out |
//!
//! What writes records and what reads them take the layout from here; decoding is `profile`'s.

pub mod format;
pub mod kind;
pub mod raw;
