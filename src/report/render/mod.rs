//! Documents as text, JSON, CSV and graphs. Renderers compute nothing.
//!
//! | file | concern |
//! |---|---|
//! | [`report`], [`page`] | the top-down report as text and CSV; as a page of HTML |
//! | [`firefox`], [`trace`] | it over time, for the Firefox Profiler and Perfetto |
//! | [`diff`] | two reports compared |
//! | [`flame`] | flame graphs |
//! | [`block`], [`deps`] | measured blocks; dependencies |
//! | [`microbench`], [`model_errors`] | microbenchmarks; cost models judged by measured blocks |
//! | [`count`] | exact counts |
//! | [`branches`], [`recorded_loads`] | recorded branches; recorded loads and stores |
//! | [`prefetch`], `prefetch_loop`, `prefetch_summary` | prefetch advice, its loops, its summary |
//! | [`prefetch_plan`] | plans of prefetches as input of other tools |
//! | [`regions`], `region_trees` | regions; their trees |
//! | [`tables`], [`evaluation`] | event tables; node values for counts from a file |
//! | [`doctor`], [`identity`] | what this machine can measure; which processor it is |
//! | [`workload`] | built-in programs |
//! | [`function_list`], [`function_blocks`] | functions of a program; blocks of a function |
//! | [`census`] | unmodelled instructions of a batch |
//! | `phases` | phases in words |
//! | [`callgrind`], [`csv`], [`json`], [`protobuf`], `markup` | formats that several share |
//! | [`width`], [`fit`] | tables and text as wide as the terminal |

pub mod block;
pub mod branches;
pub mod callgrind;
pub mod census;
pub mod count;
pub mod csv;
pub mod deps;
pub mod diff;
pub mod doctor;
pub mod evaluation;
pub mod firefox;
pub mod fit;
pub mod flame;
pub mod function_blocks;
pub mod function_list;
pub mod identity;
pub mod json;
mod markup;
pub mod microbench;
pub mod model_errors;
pub mod page;
mod phases;
pub mod prefetch;
mod prefetch_loop;
pub mod prefetch_plan;
mod prefetch_summary;
pub mod protobuf;
pub mod recorded_loads;
mod region_trees;
pub mod regions;
pub mod report;
pub mod tables;
pub mod trace;
pub mod width;
pub mod workload;
