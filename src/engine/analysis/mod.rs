//! From a question to a report: choose nodes, plan, collect or read, evaluate, fill the document.
//!
//! The rooms below know nothing of one another; this one takes a request through them. The
//! program's commands (and later the terminal UI) call it; it never prints.

mod advise;
mod choose;
pub mod code;
mod drilldown;
pub mod entries;
mod examine;
mod fill;
pub mod given;
mod imported;
mod live;
mod plausible;
mod ratio;
mod record;
pub mod recording;
mod repeats;
mod sample;
pub mod sampled;
mod software;
mod which_table;

pub use choose::{Ask, Chosen};
pub use examine::examine;
pub use imported::{ImportAsk, imported};
pub use live::{LiveAsk, Outcome, Update, live, required};
pub use record::{Recorded, Sampled, record};
pub use sample::SampleAsk;
