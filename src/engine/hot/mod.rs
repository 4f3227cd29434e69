//! Hot code: the samples of a recording or a command, and its hottest functions.
//!
//! | file | concern |
//! |---|---|
//! | [`recording`] | a recording with samples, from whatever file it is in |
//! | [`temporary`] | a file for samples that are read once |
//! | [`hottest`](mod@hottest) | the functions of a command that hold most of its samples |
//! | `source` | files of source code, line by line |

pub mod hottest;
pub mod recording;
pub(crate) mod source;
pub mod temporary;
