//! One sample. The only decoder of samples, for live ring buffers, sessions and perf.data files.
//!
//! | file | concern |
//! |---|---|
//! | `fields` | [`Sample`]: what a sample holds |
//! | `cursor` | reading a record field by field, never past its end |
//! | `readings`, `chain`, `branch`, `registers` | the fields that have parts |
//! | `decode` | the fields, in the order in which the kernel writes them |

mod branch;
mod chain;
pub(super) mod cursor;
mod decode;
mod fields;
mod readings;
mod registers;
#[cfg(test)]
mod tests;

pub use cursor::Malformed;
pub use decode::decode;
pub use fields::{
    Branch, Context, Details, Frame, Reading, Readings, Recorded, Registers, Sample, Weight,
};
