//! Samples → hot functions and blocks of a report.
//!
//! | file | concern |
//! |---|---|
//! | [`sampled`] | reports with hot code: of a recording, or of a live measurement |
//! | [`recording`] | a recording with samples, from whatever file it is in |
//! | [`code`] | its hot functions and blocks, into a report |
//! | `attributed` | its samples, as far as it has what is asked for |
//! | `gaps` | what a report does not have of its code, and why |
//! | `callers` | the callers of a function |
//! | `stacks` | its folded stacks and flame graph |
//! | `finished` | reports that are documents already |
//! | `isolated` | hot blocks in isolation |
//! | `located` | the nodes that sampled events locate |
//! | `named` | functions by the names that people type |
//! | `annotated`, `source` | the source lines of one function |
//! | `per_function` | level 1 of each function |
//! | [`temporary`] | a file for samples that are looked at once |
//! | `with_values` | loops around hot blocks, with the program's own values |
//! | [`hottest`](mod@hottest) | the functions of a command that hold most of its samples |
//! | [`entries`] | how often hot blocks are entered |

mod annotated;
pub mod attributed;
mod callers;
pub mod code;
pub mod entries;
mod finished;
mod gaps;
pub mod hottest;
mod isolated;
mod located;
pub(crate) use located::described;
mod named;
pub(crate) mod per_function;
pub mod recording;
pub mod sampled;
pub(crate) mod source;
mod stacks;
pub mod temporary;
mod with_values;
