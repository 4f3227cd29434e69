//! Samples → hot functions and blocks of a report.
//!
//! | file | concern |
//! |---|---|
//! | [`sampled`] | reports with hot code: of a recording, or of a live measurement |
//! | [`recording`] | a recording with samples, from whatever file it is in |
//! | [`code`] | its hot functions and blocks, into a report |
//! | `temporary` | a folder for samples that are looked at once |
//! | `with_values` | loops around hot blocks, with the program's own values |
//! | [`hottest`](mod@hottest) | the functions of a command that hold most of its samples |
//! | [`entries`] | how often hot blocks are entered |

pub mod code;
pub mod entries;
pub mod hottest;
pub mod recording;
pub mod sampled;
mod temporary;
mod with_values;
