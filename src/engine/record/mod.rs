//! A live measurement whose counts and samples go to a session file while it runs.

mod hardware;
mod locating;
mod names;
mod per_function;
pub(crate) mod sample;
mod session;
mod shared_file;

pub use sample::{NO_PMU, SampleAsk};
pub use session::{Recorded, Sampled, record};
