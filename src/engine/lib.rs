//! From a question to a document.
//!
//! | module | concern |
//! |---|---|
//! | [`reports`] | the report of a file, by its kind, or of a live measurement with its samples |
//! | [`topdown`] | counts, live or recorded → report |
//! | [`record`] | a live measurement recorded in a session file |
//! | [`hot`] | what is hot: samples of a recording or a command, its hottest functions |
//! | [`sampled`] | samples → functions, loops and blocks of a report |
//! | [`phases`] | intervals → phases of a run |
//! | [`exported`] | windows and reports of files → windows for the tables of a fleet |
//! | [`evaluated`] | counts of a file, rows `trial,event,value` → values of a table's nodes |
//! | [`initial_values`] | register and memory values for a dependency analysis |
//! | [`captured`] | a block with the values of its running program |
//! | `typical` | which execution of its loop is a typical one |
//! | `loop_path` | the path of most iterations of a captured loop |
//! | [`estimate`](mod@estimate) | estimated top-down of a command, without a PMU |
//! | [`core_model`] | the core that a measurement is about, its latencies and instruction forms |
//! | [`branches`](mod@branches) | recorded branch stacks → edges, ranges, blocks, loops |
//! | [`recorded_loads`] | recorded samples of loads and stores → levels, latencies, shared cache lines |
//! | `loads` | hot loads of chosen functions: access patterns, caches that serve them, allocation sites |
//! | [`prefetch`](mod@prefetch) | recorded iterations and loads → prefetch advice |
//! | [`applied`] | this advice → prefetches in the source, which stay if they gain |
//! | [`count`] | exact counts of chosen functions of a command |
//! | [`pgo`](mod@pgo) | these counts → a profile for optimisers |
//! | `mispredicted`, `predicting` | mispredictions of the branches of these functions, modelled |
//! | [`tested`] | a core by its self-test: answers, in words, and the table that they leave |
//! | `values` | what registers hold at the entries of their functions and loops |
//! | [`commands`], `conclusion` | commands that show more of code; what a report comes to |
//! | [`compared`] | two reports or recordings compared, two commands measured alternately |
//! | `nesting` | functions that may call themselves, their calls and returns; loads that branches wait for |
//! | `notes` | notes on modules whose code is not here |
//! | `trips` | trips of loops, from outcomes of branches |
//! | `processes` | the time that processes use, and those that they start |
//! | [`one_run`] | a command that is measured as a live process |
//! | [`host`] | this host measured interval by interval, for metrics |
//! | [`regions`] | regions that a program marks |
//! | [`function_name`] | functions by the names that people write, also of a debug file; the largest of a file |
//! | [`block`] | a block measured and explained, or two measured in turn |
//! | [`judge`] | a cost model's predictions against measured blocks |
//! | [`predict`] | a block predicted from tables, on this core or another |
//! | [`deps`] | dependencies of blocks, singly or in batch |
//! | [`doctor`] | what can be measured here |
//! | [`measured`] | facts of this core that were measured on it |
//! | [`steps`] | further runs step by step; records of single instructions in them |
//! | [`left`] | further runs that are left, and what they take |
//! | [`windows`](mod@windows) | continuous profiling: windows of counts and samples in a ring |
//!
//! Nothing here prints, touches a terminal or exits.

pub mod applied;
pub mod block;
pub mod branches;
pub mod captured;
pub mod commands;
pub mod compared;
mod conclusion;
pub mod core_model;
pub mod count;
pub mod deps;
pub mod doctor;
pub mod estimate;
pub mod evaluated;
pub mod exported;
pub mod function_name;
pub mod host;
pub mod hot;
pub mod initial_values;
pub mod judge;
pub mod left;
mod loads;
mod loop_path;
pub mod measured;
mod mispredicted;
mod nesting;
mod notes;
pub mod one_run;
pub mod pgo;
pub mod phases;
pub mod predict;
mod predicting;
pub mod prefetch;
mod processes;
pub mod record;
pub mod recorded_loads;
pub mod regions;
pub mod reports;
pub mod sampled;
pub mod steps;
pub mod tested;
pub mod topdown;
mod trips;
mod typical;
mod values;
mod wall_time;
pub mod windows;

/// The tables that are built in.
pub use events::library;
