//! Instruction microbenchmarks as text and as CSV rows.

mod csv;
mod text;

pub use csv::{HEADER, LATENCY_HEADER, latency_rows, list_rows, row};
pub use text::{render, render_latencies, render_list};
