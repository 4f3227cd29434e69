//! The data that tdtool ships: event tables, node texts and latencies, as files of this folder.
//!
//! A new TOML here is a new microarchitecture on the next build; no Rust changes.

/// Every event table: its name and its text.
pub static TABLES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// Every latency table: its name and its text.
pub static LATENCIES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/latencies.rs"));

/// What the nodes of all tables mean.
pub static NODES: &str = include_str!("nodes.toml");
