//! Why a block costs what it costs: its bounds, each measured by running a variant of it, and the
//! verdict which of them explains its time.
//!
//! | file | concern |
//! |---|---|
//! | `variants` | the block changed in one thing |
//! | `apart` | the block with its memory kept apart |
//! | `cut` | instructions that cut chains through registers |
//! | `explainer`, `explain` | what explaining takes; bounds, verdict and nodes into a report |
//! | `evidence`, `broken` | measuring the variants; those with chains broken |
//! | `found`, `names` | what was found out; names of bounds |
//! | `meetings` | stores and loads that meet by their initial values alone |
//! | `model` | which bound explains the time |
//! | `refuted` | bounds above the time |
//! | `nodes` | bounds under the names of the top-down tree |
//! | `what_if`, `budget` | chains broken and instructions left out, measured again; how long that may wait |
//!
//! docs/method/blocks.md, "What bounds the block", has the method.

mod apart;
mod broken;
mod budget;
mod cut;
mod evidence;
mod explain;
mod explainer;
mod found;
mod meetings;
mod model;
mod names;
mod nodes;
mod refuted;
mod variants;
mod what_if;

pub use explainer::Explainer;
pub use model::{Chain, Class, Cut, Cycles, Evidence, Judgement, judge};
