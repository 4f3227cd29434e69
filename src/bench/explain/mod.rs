//! Why a block takes its time: bounds, each measured on a variant of the block, and the verdict which
//! of them explains it.
//!
//! | file | concern |
//! |---|---|
//! | `explanation`, `explainer` | the entry point, and its state between blocks |
//! | `evidence`, `slots`, `without_dependencies` | measuring the bounds, and variants with broken dependencies |
//! | `chains` | evidence from loop-carried chains |
//! | `assists` | single instructions that take hundreds of cycles because of operands or state |
//! | `lengthened` | the block with longer encodings |
//! | `variants`, `breakers`, `disjoint_memory`, `one_line` | building the variants |
//! | `findings` | results for the verdict and the document |
//! | `cycles`, `model`, `verdict` | times with their errors, the evidence compared with the time, and the verdict |
//! | `in_words` | the evidence as text |
//! | `explained`, `refuted_bounds` | how much of the time a bound explains; bounds above it |
//! | `nodes` | bounds and verdict in the top-down tree |
//! | `alias_pairs` | stores and loads that alias only because of the initial values |
//! | `what_if`, `wait_budget` | dependencies broken and instructions removed, one at a time |
//!
//! docs/method/blocks.md, "What bounds the block", has the method.

mod alias_pairs;
mod assists;
mod breakers;
mod chains;
mod cycles;
mod disjoint_memory;
mod evidence;
mod explained;
mod explainer;
mod explanation;
mod findings;
mod in_words;
mod lengthened;
mod model;
mod nodes;
mod one_line;
mod refuted_bounds;
mod slots;
mod variants;
mod verdict;
mod wait_budget;
mod what_if;
mod without_dependencies;

pub use explained::{Explained, explained, least};
pub use explainer::Explainer;
