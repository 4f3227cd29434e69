//! Samples → functions, loops and blocks of a report.
//!
//! | file | concern |
//! |---|---|
//! | [`reports`] | reports with hot code: of a recording, or of a live measurement |
//! | [`code`] | hot functions and blocks of a recording, into a report |
//! | `attributed` | its samples, as far as it has what is asked for |
//! | `gaps` | what a report does not have of its code, and why |
//! | `located` | the nodes that sampled events locate |
//! | `annotated` | the source lines of one function |
//! | `per_function` | level 1 of each function |
//! | `with_values` | loops around hot blocks, with the program's own values |
//! | [`entries`] | how often hot blocks are entered |

mod annotated;
pub mod attributed;
pub mod code;
pub mod entries;
mod gaps;
mod located;
pub(crate) mod per_function;
pub mod reports;
mod with_values;
