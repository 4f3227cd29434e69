//! Samples → functions, loops and blocks of a report.
//!
//! | file | concern |
//! |---|---|
//! | [`reports`] | reports with hot code: of a recording, or of a live measurement |
//! | [`code`] | hot functions and blocks of a recording, into a report |
//! | `attributed` | its samples, as far as it has what is asked for |
//! | `gaps` | what a report does not have of its code, and why |
//! | `callers` | the callers of a function |
//! | `stacks` | its folded stacks and flame graph |
//! | `finished` | reports that are documents already |
//! | `isolated` | hot blocks in isolation |
//! | `located` | the nodes that sampled events locate |
//! | `named` | functions by the names that people type |
//! | `annotated` | the source lines of one function |
//! | `per_function` | level 1 of each function |
//! | `with_values` | loops around hot blocks, with the program's own values |
//! | [`entries`] | how often hot blocks are entered |

mod annotated;
pub mod attributed;
mod callers;
pub mod code;
pub mod entries;
mod finished;
mod gaps;
mod isolated;
mod located;
mod named;
pub(crate) mod per_function;
pub mod reports;
mod stacks;
mod with_values;
