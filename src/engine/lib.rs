//! From a question to a document.
//!
//! | module | concern |
//! |---|---|
//! | [`topdown`] | counts, live or recorded → report |
//! | [`record`] | a live measurement recorded in a session file |
//! | [`hot`] | what is hot: samples of a recording or a command, its hottest functions |
//! | [`sampled`] | samples → functions, loops and blocks of a report |
//! | [`phases`] | intervals → phases of a run |
//! | [`evaluated`] | counts of a file → values of a table's nodes |
//! | [`trials`] | counts from rows `trial,event,value` |
//! | [`initial_values`] | register and memory values for a dependency analysis |
//! | [`captured`] | a block with the values of its running program |
//! | `typical` | which execution of its loop is a typical one |
//! | `loop_path` | the path of most iterations of a captured loop |
//! | [`estimate`](mod@estimate) | estimated top-down of a command, without a PMU |
//! | [`core_model`] | the core that a measurement is about, and its latencies |
//! | [`branches`](mod@branches) | recorded branch stacks → edges, ranges, blocks, loops |
//! | [`recorded_loads`] | recorded samples of loads and stores → levels, latencies, shared cache lines |
//! | `recorded_trips` | trips of loops from recorded branches |
//! | [`prefetch`](mod@prefetch) | recorded iterations and loads → prefetch advice |
//! | [`count`] | exact counts of chosen functions of a command |
//! | `mispredicted`, `predicting`, `waits` | mispredictions of the branches of these functions, modelled |
//! | [`tested`] | a core by its self-test: answers, and the table that they leave |
//! | `self_test_words` | the self-test's answers and why one is open, in words |
//! | `places` | addresses of code by file, for further runs |
//! | `values` | what registers hold at the entries of their functions and loops |
//! | [`commands`], `conclusion` | commands that show more of code; what a report comes to |
//! | [`compared`] | two reports or recordings compared |
//! | [`interleaved`] | two commands measured alternately |
//! | `recursion`, `nesting` | functions that may call themselves; their calls and returns |
//! | [`regions`] | regions that a program marks |
//! | [`function_name`], [`function_list`] | functions by the names that people write; the largest of a file |
//! | [`known_functions`] | functions that only a debug file or the run time names |
//! | [`block`] | a block measured and explained |
//! | [`block_pair`] | two blocks measured in turn |
//! | [`judge`] | a cost model's predictions against measured blocks |
//! | [`predict`] | a block predicted from tables, on this core or another |
//! | `missing_code` | notes on modules whose code is not here |
//! | [`deps`] | dependencies of blocks, singly or in batch |
//! | [`doctor`] | what can be measured here |
//! | [`microbenched`] | throughput and latency of instruction forms |
//! | [`measured`] | facts of this core that were measured on it |
//! | [`callback`] | functions that long work calls meanwhile |
//! | [`steps`] | long work step by step, with the time that is left |
//!
//! Nothing here prints, touches a terminal or exits.

pub mod block;
pub mod block_pair;
pub mod branches;
pub mod callback;
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
pub mod function_list;
pub mod function_name;
pub mod hot;
pub mod initial_values;
pub mod interleaved;
pub mod judge;
pub mod known_functions;
mod loads;
mod loop_path;
pub mod measured;
pub mod microbenched;
mod mispredicted;
mod missing_code;
mod nesting;
pub mod phases;
mod places;
pub mod predict;
mod predicting;
pub mod prefetch;
pub mod record;
pub mod recorded_loads;
mod recorded_trips;
mod recursion;
pub mod regions;
pub mod sampled;
mod self_test_words;
pub mod steps;
mod subject;
pub mod tested;
pub mod topdown;
pub mod trials;
mod trips;
mod typical;
mod values;
mod waits;

/// The tables that are built in.
pub use events::library;
