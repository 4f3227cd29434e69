//! Documents as text, JSON, CSV and graphs. Renderers compute nothing.

pub mod block;
pub mod branches;
pub mod census;
pub mod count;
pub mod csv;
pub mod deps;
pub mod diff;
pub mod doctor;
pub mod evaluation;
pub mod flame;
pub mod function_blocks;
pub mod function_list;
pub mod json;
mod loads;
pub mod microbench;
mod mispredicted;
pub mod model_errors;
pub mod prefetch;
mod prefetch_loop;
pub mod prefetch_plan;
pub mod recorded_loads;
pub mod report;
pub mod tables;
mod values;
pub mod workload;
