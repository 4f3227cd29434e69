//! The command line: one file or folder per command, each arguments → engine calls → output.
//!
//! | file | concern |
//! |---|---|
//! | `run` | parses the command line and carries it out |
//! | `arguments` | every command; `global`: the options that all take |
//! | `suggest` | mistyped commands and misplaced options |
//! | `drill` | `tdtool`, `tdtool FILE`, `tdtool -- CMD` |
//! | `measure`, `outcome` | what `report` and `record` share |
//! | `code` | blocks and initial values named on the command line |
//! | `present` | recordings that are not there |
//! | `reading` | commands that read for long, and signals |
//! | `invalid` | what is wrong with a value of an option |
//! | `output` | standard output, files of `--output` |
//! | `search` | where recorded programs are looked for |

mod arguments;
mod bench;
mod block;
mod branches;
mod code;
mod count;
mod deps;
mod diff;
mod doctor;
mod drill;
mod global;
mod invalid;
mod loads;
mod measure;
mod microbench;
mod outcome;
mod output;
mod prefetch;
mod present;
mod progress;
mod quoted;
mod reading;
mod record;
mod report;
mod run;
mod search;
mod shell;
mod suggest;
mod tables;
mod workload;

pub use run::run;
