//! Samples → functions, loops and blocks of a report.
//!
//! | file | concern |
//! |---|---|
//! | [`code`] | hot functions and blocks of a recording, into a report |
//! | `attributed` | its samples, as far as it has what is asked for |
//! | `located` | the nodes that sampled events locate; stacks |
//! | `annotated` | the source lines of one function, its callers and callees |
//! | `per_function` | level 1 of each function |
//! | `with_values` | hot blocks in isolation, loops around them with the program's own values |
//! | [`entries`] | how often hot blocks are entered |

mod annotated;
pub mod attributed;
pub mod code;
pub mod entries;
pub(crate) mod located;
pub(crate) mod per_function;
mod with_values;
