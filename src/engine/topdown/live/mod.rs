//! A live measurement: tables → nodes → groups → collector → report.
//!
//! | file | concern |
//! |---|---|
//! | `ask` | the question ([`LiveAsk`]) and the outcome ([`Outcome`]) |
//! | `cores` | tables, nodes and groups for each kind of core |
//! | `collect` | runs the collector |
//! | `conclude` | counts → rows, findings and notes of the report |
//! | `drilldown` | level after level, below what is flagged |

mod ask;
mod collect;
mod conclude;
mod cores;
mod drilldown;
mod measure;

pub use ask::{LiveAsk, Outcome, Update};
pub(crate) use collect::Beside;
pub(crate) use collect::Observer;
pub use cores::required;
pub(crate) use cores::{CountedCore, prepare};
pub use measure::live;
pub(crate) use measure::measure_beside;
