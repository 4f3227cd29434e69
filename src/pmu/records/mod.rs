//! The layout of records that the kernel writes into ring buffers and perf into files.
//!
//! | file | concern |
//! |---|---|
//! | [`kind`] | kinds of records |
//! | [`raw`] | splitting bytes into records |
//! | [`format`](mod@format) | the layout of an event's samples |
//!
//! Writers and readers of records share these layouts; records are decoded in `profile`.

pub mod format;
pub mod kind;
pub mod raw;
