//! Documents as text, JSON, CSV and graphs. Renderers compute nothing.
//!
//! | file | concern |
//! |---|---|
//! | [`report`], [`page`] | the top-down report as text and CSV; as a page of HTML |
//! | [`over_time`] | it over time, for the Firefox Profiler and Perfetto |
//! | [`diff`] | two reports compared |
//! | [`flame`] | flame graphs |
//! | [`block`], [`deps`] | measured blocks, and cost models judged by them; dependencies |
//! | [`microbench`] | microbenchmarks |
//! | [`count`] | exact counts |
//! | [`branches`], [`recorded_loads`] | recorded branches; recorded loads and stores |
//! | [`prefetch`], [`prefetch_plan`] | prefetch advice; plans of prefetches as input of other tools |
//! | `prefetch_applied` | prefetches that were put into the source |
//! | [`pgo`], `aggregated` | profiles for optimisers, also of recorded branches |
//! | [`trial`] | a program against its optimised copy |
//! | [`regions`] | regions and their trees |
//! | [`tables`] | event tables; node values for counts from a file |
//! | [`doctor`] | what this machine can measure; which processor it is |
//! | [`workload`] | built-in programs |
//! | [`functions`] | functions of a program; blocks of a function |
//! | [`csv`], [`json`], [`formats`], `paired` | formats that several share |
//! | [`width`] | tables and text as wide as the terminal |

mod aggregated;
pub mod block;
pub mod branches;
pub mod count;
pub mod csv;
pub mod deps;
pub mod diff;
pub mod doctor;
pub mod flame;
pub mod formats;
pub mod functions;
pub mod json;
pub mod microbench;
pub mod over_time;
pub mod page;
mod paired;
pub mod pgo;
pub mod prefetch;
mod prefetch_applied;
pub mod prefetch_plan;
pub mod recorded_loads;
pub mod regions;
pub mod report;
pub mod tables;
pub mod trial;
pub mod width;
pub mod workload;
