//! Counts → report: a live measurement or recorded counts, evaluated.
//!
//! | file | concern |
//! |---|---|
//! | `choose` | which nodes a report is about |
//! | [`live`](mod@live) | tables → nodes → groups → collector → report |
//! | [`imported`](mod@imported) | recorded counts → report |
//! | `software` | software counts under the document's names |
//! | `repeats` | the ± over several runs |
//! | `target` | what was measured, in words and as options |
//! | `advise` | the texts of `events/nodes.toml` for findings |

mod advise;
mod choose;
pub mod imported;
pub mod live;
mod repeats;
pub(crate) mod software;
pub(crate) mod target;

pub use choose::{Ask, Chosen};
pub use imported::{ImportAsk, imported};
pub use live::{LiveAsk, Outcome, Update, live, required};
