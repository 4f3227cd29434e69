//! The fleet: windows of many hosts, kept, exported, asked and served.

mod parquet;
mod queries;
mod ring;
mod sample;
mod samples;
mod serve;
